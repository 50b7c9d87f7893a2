"""Whether a run fits a device, and which switches would make it fit."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isqrt
from typing import Any, Literal

from pydantic import ValidationError

from engine.config import RunConfig
from engine.config.rules import check_rules
from engine.errors import ConfigError
from engine.planner.memory import PROMPT_TOKENS, MemoryPlan, plan_memory, rows_at_once
from engine.planner.part import PHASES, Phase
from engine.planner.sampler import samples_on_gpu, smallest_share
from engine.planner.shapes import ModelShape
from engine.planner.size import MIB

Fit = Literal["fits", "tight", "too_large", "no_room"]

# What is left above it goes to the libraries, a CUDA context and the gaps of the allocator.
TIGHT_ABOVE = 0.9
SMALLEST_LOGITS_MEMORY = 64
ADAPTER_RANK = 16
# vLLM's share of a GPU is changed by this much at a time.
SHARES = 20


@dataclass(frozen=True, slots=True)
class Remedy:
    """One field changed: to what, the bytes it saves in the phase it helps most, the peak after it, and the fit.

    What gives vLLM room for a sequence saves nothing.
    """

    path: str
    value: Any
    saves: int
    peak: int
    fit: Fit


def fits(plan: MemoryPlan, device_bytes: int) -> Fit:
    """Return whether the plan leaves a tenth of the device free ("fits"), less ("tight"), or is "too_large".

    "no_room": it would go in, but vLLM has no room for a single sequence, and refuses to start.
    """
    if plan.peak > device_bytes:
        return "too_large"
    if not plan.sampler_starts:
        return "no_room"
    return "tight" if plan.peak > TIGHT_ABOVE * device_bytes else "fits"


def remedies(
    config: RunConfig, shape: ModelShape, device_bytes: int, *, prompt_tokens: int = PROMPT_TOKENS
) -> tuple[Remedy, ...]:
    """Return single changes that save memory where it lacks, the least harmful first; none where the run fits.

    The first change memory and time alone: smaller micro-batches, recomputation, smaller chunks of logits, another
    share for vLLM. Then come precision (8-bit moments, bfloat16), what is trained (LoRA) and last how many completions
    are sampled at once.
    """
    plan = plan_memory(config, shape, prompt_tokens=prompt_tokens, device_bytes=device_bytes)
    tried = (
        _best_value(config, shape, device_bytes, path, values, prompt_tokens=prompt_tokens)
        for path, values in _candidates(config, shape, device_bytes, plan)
    )
    return tuple(remedy for remedy in tried if remedy is not None)


def ways_to_fit(
    config: RunConfig, shape: ModelShape, device_bytes: int, *, prompt_tokens: int = PROMPT_TOKENS
) -> tuple[Remedy, ...]:
    """Return changes to be made one upon another, in the order of `remedies`, until the run fits.

    The `peak` of each is that with all before it. Where even all do not suffice, the last one's `fit` says so.
    """
    made: list[Remedy] = []

    def candidates() -> dict[str, Sequence[Any]]:
        plan = plan_memory(config, shape, prompt_tokens=prompt_tokens, device_bytes=device_bytes)
        return dict(_candidates(config, shape, device_bytes, plan))

    for path in candidates():
        values = candidates().get(path, ())
        remedy = _best_value(config, shape, device_bytes, path, values, prompt_tokens=prompt_tokens)
        changed = with_field(config, path, remedy.value) if remedy else None
        if remedy is not None and changed is not None:
            made.append(remedy)
            config = changed
    return tuple(made)


def with_field(config: RunConfig, path: str, value: Any) -> RunConfig | None:
    """Return the config with one field of a section (`section.key`) changed; None where that breaks a rule."""
    section, _, key = path.partition(".")
    before = getattr(config, section)
    try:
        after = type(before).model_validate({**before.model_dump(), key: value})
        changed = config.model_copy(update={section: after})
        check_rules(changed)
    except (ConfigError, ValidationError):
        return None
    return changed


def _best_value(
    config: RunConfig, shape: ModelShape, device_bytes: int, path: str, values: Sequence[Any], *, prompt_tokens: int
) -> Remedy | None:
    """Return the mildest of `values` with which the run fits, else the strongest; None where that helps nothing.

    They come from the mildest to the strongest, so that only a few need be tried; those that break a rule are passed
    over.
    """
    plan = plan_memory(config, shape, prompt_tokens=prompt_tokens, device_bytes=device_bytes)
    short = _short_phases(plan, device_bytes)

    def tried(value: Any) -> Remedy | None:
        changed = with_field(config, path, value)
        if changed is None:
            return None
        after = plan_memory(changed, shape, prompt_tokens=prompt_tokens, device_bytes=device_bytes)
        saves = max((plan.bytes_in(phase) - after.bytes_in(phase) for phase in short), default=0)
        if after.sampler_starts and not plan.sampler_starts:
            return Remedy(path, value, max(saves, 0), after.peak, fits(after, device_bytes))
        return Remedy(path, value, saves, after.peak, fits(after, device_bytes)) if saves > 0 else None

    def suffices(value: Any) -> bool:
        remedy = tried(value)
        return remedy is not None and remedy.fit == "fits"

    strongest = next(filter(None, map(tried, reversed(values))), None)
    if strongest is None:
        return None
    mildest = bisect_left(values, True, key=suffices)
    return strongest if mildest == len(values) else tried(values[mildest])


def _short_phases(plan: MemoryPlan, device_bytes: int) -> tuple[Phase, ...]:
    return tuple(phase for phase in PHASES if plan.bytes_in(phase) > TIGHT_ABOVE * device_bytes)


def _candidates(
    config: RunConfig, shape: ModelShape, device_bytes: int, plan: MemoryPlan
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield fields with the values to try, the mildest first; nothing where nothing is short of memory."""
    short = _short_phases(plan, device_bytes)
    if not short and plan.sampler_starts:
        return
    accumulation = config.grpo.gradient_accumulation_steps
    more = [steps for steps in _divisors(config.train_batch_size) if steps > accumulation]
    yield "grpo.gradient_accumulation_steps", more
    yield "model.gradient_checkpointing", [] if config.model.gradient_checkpointing else [True]
    yield "model.logits_memory", _halved(config.model.logits_memory, SMALLEST_LOGITS_MEMORY)
    if samples_on_gpu(config):
        yield "vllm.gpu_memory_utilization", _shares(config, shape, device_bytes, plan, short)
    elif plan.sampler is not None and not plan.sampler_starts:
        yield "vllm.cpu_cache", [ceil(plan.sampler.longest / MIB)]
    on_cpu = config.model.device == "cpu"
    yield "optimizer.name", [] if on_cpu or config.optimizer.name == "adamw_8bit" else ["adamw_8bit"]
    yield "model.dtype", [] if config.model.dtype == "bfloat16" else ["bfloat16"]
    yield "lora.rank", [] if config.lora.rank is not None else [ADAPTER_RANK]
    if "rollout" in short:
        rows = config.rollout.rollout_batch_size
        yield "rollout.rollout_batch_size", _halved(rows, config.rollout.group_size)


def _shares(
    config: RunConfig, shape: ModelShape, device_bytes: int, plan: MemoryPlan, short: Sequence[Phase]
) -> list[float]:
    """Return other shares for vLLM: smaller ones with which it starts; where it does not, the smallest that does."""
    least = ceil(SHARES * smallest_share(config, shape, rows=rows_at_once(config), device_bytes=device_bytes))
    if not plan.sampler_starts:
        return [least / SHARES] if least < SHARES else []
    if "rollout" not in short:
        return []
    below = ceil(SHARES * config.vllm.gpu_memory_utilization) - 1
    return [twentieths / SHARES for twentieths in range(below, least - 1, -1)]


def _halved(value: int, least: int) -> list[int]:
    """Return half of the value, half of that and so on, down to `least`."""
    values = []
    while (value := value // 2) >= least:
        values.append(value)
    return values


def _divisors(number: int) -> list[int]:
    low = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return sorted({*low, *(number // divisor for divisor in low)})
