"""The memory planner: what a run will need, before it starts."""

from engine.planner.memory import (
    PHASES,
    PROMPT_TOKENS,
    MemoryPlan,
    Part,
    Phase,
    cache_places,
    plan_memory,
    usual_prompt_tokens,
)
from engine.planner.remedies import Fit, Remedy, fits, remedies, ways_to_fit, with_field
from engine.planner.shapes import ModelShape, find_shape, shape_of_config
from engine.planner.size import GIB, MIB, size

__all__ = [
    "GIB",
    "MIB",
    "PHASES",
    "PROMPT_TOKENS",
    "Fit",
    "MemoryPlan",
    "ModelShape",
    "Part",
    "Phase",
    "Remedy",
    "cache_places",
    "find_shape",
    "fits",
    "plan_memory",
    "remedies",
    "shape_of_config",
    "size",
    "usual_prompt_tokens",
    "ways_to_fit",
    "with_field",
]
