"""What a run must remember from step to step besides weights, optimizer and reference policy."""

from dataclasses import dataclass, replace

from engine.config import RunConfig
from engine.grpo.controllers import active_entropy_bonus, adapted_beta, adapted_entropy_bonus
from engine.training.update import Coefficients


@dataclass(frozen=True, slots=True)
class TrainingState:
    """Kept in every checkpoint, as plain numbers."""

    step: int = 0
    draws: int = 0
    """Batches of prompts drawn so far: the position in the data. Under dynamic sampling a step may take several."""
    num_tokens: int = 0
    skipped_in_a_row: int = 0
    seconds: float = 0.0
    weight_version: int = 0
    """Optimizer steps that have changed the weights, up to the end of `step`."""
    accuracy: float | None = None
    """On held-out problems, where this very step was evaluated."""
    best_accuracy: float | None = None
    evaluations_without_gain: int = 0
    beta: float = 0.0
    entropy_bonus: float = 0.0
    entropy: float | None = None
    """As last measured, in nats per token; None before the first step."""


def start_state(config: RunConfig) -> TrainingState:
    """Return the state of a run that begins."""
    return TrainingState(beta=config.kl.beta, entropy_bonus=config.entropy.bonus)


def forked_state(parent: TrainingState, config: RunConfig) -> TrainingState:
    """Return the state of a run that begins at a parent's checkpoint: its place in the data, and controllers anew."""
    return replace(
        start_state(config),
        step=parent.step,
        draws=parent.draws,
        num_tokens=parent.num_tokens,
        seconds=parent.seconds,
        weight_version=parent.weight_version,
    )


def coefficients(state: TrainingState, config: RunConfig) -> Coefficients:
    """Return the weights of the terms of the loss in the next step."""
    bonus = active_entropy_bonus(state.entropy_bonus, state.entropy, target=config.entropy.target)
    return Coefficients(beta=0.0 if config.kl.placement == "reward" else state.beta, entropy_bonus=bonus)


def with_controllers_moved(
    state: TrainingState, config: RunConfig, *, kl: float | None, entropy: float | None
) -> TrainingState:
    """Return the state after a step in which `kl` and `entropy` (nats per token) were measured.

    `kl` is that of the last optimizer step: no other is above 0 where the reference is a copy made at every step.
    """
    if config.kl.target is not None and kl is not None:
        state = replace(state, beta=adapted_beta(state.beta, kl, target=config.kl.target, gain=config.kl.gain))
    if config.entropy.target is not None and entropy is not None:
        bonus = adapted_entropy_bonus(
            state.entropy_bonus, entropy, target=config.entropy.target, change=config.entropy.change
        )
        state = replace(state, entropy_bonus=bonus)
    return replace(state, entropy=entropy)


def with_evaluation(state: TrainingState, accuracy: float, *, min_gain: float) -> TrainingState:
    """Return the state after an evaluation; a gain is more than `min_gain` above the best accuracy before."""
    best = state.best_accuracy
    gained = best is None or accuracy - best > min_gain
    return replace(
        state,
        accuracy=accuracy,
        best_accuracy=accuracy if gained else best,
        evaluations_without_gain=0 if gained else state.evaluations_without_gain + 1,
    )
