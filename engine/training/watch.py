"""What is unusual about a step and worth a warning: told once in a process of a run, so that events stay few."""

from collections.abc import Iterator, Mapping
from statistics import median

from engine.config import RunConfig
from engine.planner.sampler import sampler_dtype
from engine.store.recorder import Recorder

DIFFERENCE = "sampling/sampling_logp_difference/mean"
RATIO = "sampling/importance_sampling_ratio/mean"
RATIO_BAND = (0.85, 1.15)
# Of the mean |policy − sampler| log-prob, in nats: what rounding makes of it, and far above what a run has shown.
ROUNDING = {"float32": 1e-3, "bfloat16": 0.15}
FAR_ABOVE = 20.0
CUT_OFF = 0.9  # share of completions at the length limit


class StepWatch:
    """Looks at the metrics of every step."""

    def __init__(self, config: RunConfig, recorder: Recorder) -> None:
        self._config, self._recorder = config, recorder
        self._told: set[str] = set()
        self._differences: list[float] = []

    def look(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Record a warning for each thing that is unusual for the first time."""
        for kind, message in (*self._mismatch(metrics), *self._length_limit(metrics)):
            if kind not in self._told:
                self._told.add(kind)
                self._recorder.event(kind, message, step=step, level="warning")

    def _mismatch(self, metrics: Mapping[str, float]) -> Iterator[tuple[str, str]]:
        difference, ratio = metrics.get(DIFFERENCE), metrics.get(RATIO)
        if difference is None or ratio is None:
            return
        usual = median(self._differences) if self._differences else None
        bound = ROUNDING[sampler_dtype(self._config)]
        outside = not RATIO_BAND[0] <= ratio <= RATIO_BAND[1]
        jumped = usual is not None and difference > max(FAR_ABOVE * usual, bound / 10)
        if outside or jumped or difference > bound:
            beside = "" if usual is None else f", before {usual:.2g}"
            yield (
                "sampler_mismatch",
                f"sampler and trainer disagree: mean |difference| of their log-probs {difference:.2g} nats{beside}, "
                f"mean ratio {ratio:.3g} (usually {RATIO_BAND[0]:g} to {RATIO_BAND[1]:g}). Likely cause: "
                f"{likely_cause(self._config, jumped=jumped)}.",
            )
        else:
            self._differences.append(difference)

    def _length_limit(self, metrics: Mapping[str, float]) -> Iterator[tuple[str, str]]:
        share = metrics.get("completions/clipped_ratio", 0.0)
        if share >= CUT_OFF:
            longest = self._config.rollout.max_tokens
            yield (
                "length_limit",
                f"{share:.0%} of the completions were cut off at max_tokens={longest}: most rewards say that the "
                "answer did not fit, not that it was wrong; raise rollout.max_tokens, or see if the policy rambles",
            )


def likely_cause(config: RunConfig, *, jumped: bool) -> str:
    """Return what most likely makes sampler and trainer differ; `jumped` where they agreed in earlier steps."""
    rollout = config.rollout
    if jumped:
        return "weights that did not reach the sampler after an update"
    if config.cuts_distribution:
        return (
            "top_p, top_k, min_p or a repetition penalty: the sampler draws from another distribution than the policy's"
        )
    if sampler_dtype(config) != config.model.dtype:
        return f"the sampler's number format {sampler_dtype(config)}, where the trainer has {config.model.dtype}"
    if rollout.min_tokens:
        return f"min_tokens={rollout.min_tokens}, which forbids the sampler its end tokens for so long"
    if rollout.temperature != 1:
        return f"log-probs at another temperature than {rollout.temperature:g}"
    return f"rounding in {config.model.dtype}" if config.model.dtype == "bfloat16" else "two programs of one model"
