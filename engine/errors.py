"""Errors a person can act on.

Every message names, in this order: the field, its value, the rule, the way out.
"""

from collections.abc import Iterable
from dataclasses import dataclass


class GrpoLabError(Exception):
    """Base of every error that this program raises on purpose."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong with one field (`path` is dotted, as in `rollout.group_size`)."""

    path: str
    message: str


class ConfigError(GrpoLabError):
    """A configuration that cannot be run; `problems` has one entry per fault, for the form to place."""

    def __init__(self, problems: Iterable[FieldProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problem.message for problem in self.problems))


class TaskError(GrpoLabError):
    """A task that cannot be read or generated."""


class RewardError(GrpoLabError):
    """A reward function broke its contract (wrong count, wrong type)."""


class PolicyError(GrpoLabError):
    """A model that cannot be loaded."""


class CheckpointError(GrpoLabError):
    """A checkpoint that is missing, unfinished or does not fit the run."""


class StoreError(GrpoLabError):
    """The store cannot be opened, or refuses what was asked of it."""


class TransitionError(StoreError):
    """A run cannot go from its present status to the one asked for."""


class NonFiniteUpdateError(GrpoLabError):
    """Too many optimizer steps in a row had a non-finite loss or gradient."""
