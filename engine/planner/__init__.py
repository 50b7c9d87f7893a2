"""The memory planner: what a run will need, before it starts."""

from engine.planner.catalogue import CATALOGUE
from engine.planner.memory import (
    PROMPT_TOKENS,
    MemoryPlan,
    cache_places,
    plan_memory,
    usual_prompt_tokens,
    weight_bytes,
)
from engine.planner.part import PHASES, Part, Phase
from engine.planner.presence import Presence, find_presence
from engine.planner.remedies import Fit, Remedy, fits, remedies, ways_to_fit, with_field
from engine.planner.sampler import SamplerRoom
from engine.planner.shapes import ModelShape, find_shape, shape_of_config
from engine.planner.size import GIB, MIB, size

__all__ = [
    "CATALOGUE",
    "GIB",
    "MIB",
    "PHASES",
    "PROMPT_TOKENS",
    "Fit",
    "MemoryPlan",
    "ModelShape",
    "Part",
    "Phase",
    "Presence",
    "Remedy",
    "SamplerRoom",
    "cache_places",
    "find_presence",
    "find_shape",
    "fits",
    "plan_memory",
    "remedies",
    "shape_of_config",
    "size",
    "usual_prompt_tokens",
    "ways_to_fit",
    "weight_bytes",
    "with_field",
]
