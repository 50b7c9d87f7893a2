"""Why a run ends before its last step."""

from typing import NamedTuple

from engine.config.sections import StoppingConfig
from engine.training.state import TrainingState


class EarlyEnd(NamedTuple):
    """The kind of the event that is recorded, and its sentence."""

    kind: str
    message: str


def early_end(state: TrainingState, config: StoppingConfig) -> EarlyEnd | None:
    """Return why the run ends after the step of `state`, or None while it goes on."""
    if config.max_minutes is not None and state.seconds > config.max_minutes * 60:
        return EarlyEnd("time_limit", f"stopped at max_minutes={config.max_minutes:g}")
    if config.max_sampled_tokens is not None and state.num_tokens >= config.max_sampled_tokens:
        return EarlyEnd(
            "token_limit",
            f"stopped at max_sampled_tokens={config.max_sampled_tokens} with {state.num_tokens} tokens sampled",
        )
    if config.patience is not None and state.evaluations_without_gain >= config.patience:
        return EarlyEnd(
            "no_gain",
            f"stopped after {state.evaluations_without_gain} evaluations without a gain of more than "
            f"min_gain={config.min_gain:g} over the best validation accuracy, {state.best_accuracy:.3f}",
        )
    return None
