"""A part of a run's memory, and the phases in which it is there."""

from dataclasses import dataclass
from typing import Literal

Phase = Literal["rollout", "update"]
PHASES: tuple[Phase, ...] = ("rollout", "update")
BOTH: tuple[Phase, ...] = PHASES
WIDTH = {"float32": 4, "bfloat16": 2}
"""Bytes of a number."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that takes memory: its bytes, in which phases, and the formula with its numbers."""

    name: str
    bytes: int
    phases: tuple[Phase, ...]
    sentence: str


def completions(number: int) -> str:
    """Return `1 completion` or `256 completions`."""
    return f"{number:,} completion{'' if number == 1 else 's'}"
