"""What the planner says of a run on a device, worked out once for each form's contents."""

from dataclasses import dataclass
from functools import lru_cache

from engine.config import RunConfig
from engine.planner import Fit, MemoryPlan, ModelShape, Remedy, fits, plan_memory, remedies, ways_to_fit


@dataclass(frozen=True, slots=True)
class Outlook:
    """The plan and its fit; single changes after which the run fits; without any, changes to be made together."""

    plan: MemoryPlan
    fit: Fit
    alone: tuple[Remedy, ...]
    together: tuple[Remedy, ...]


@lru_cache(maxsize=128)
def outlook(config: RunConfig, shape: ModelShape, device_bytes: int, prompt_tokens: int) -> Outlook:
    """Return what is to be expected of a run of a model of this shape on a device with so many bytes."""
    plan = plan_memory(config, shape, prompt_tokens=prompt_tokens, device_bytes=device_bytes)
    single = remedies(config, shape, device_bytes, prompt_tokens=prompt_tokens)
    alone = tuple(remedy for remedy in single if remedy.fit == "fits")
    together = () if alone else ways_to_fit(config, shape, device_bytes, prompt_tokens=prompt_tokens)
    return Outlook(plan, fits(plan, device_bytes), alone, together)
