"""What a step gives back to the loop, be it one of SFT or of GRPO."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.training.in_hand import StepInHand
from engine.training.state import TrainingState
from engine.types import Reward, StepRecord


@dataclass(frozen=True, slots=True)
class Finished:
    """A whole step: the state with all that the step itself has moved, its learning rate, and how it is recorded.

    `summarize` makes the record of it, given what the loop has measured besides. `judged` are the rewards of all that
    was drawn, trained on or not.
    """

    state: TrainingState
    learning_rate: float
    summarize: Callable[[Mapping[str, float]], StepRecord]
    judged: Sequence[Reward] = ()


@dataclass(frozen=True, slots=True)
class CutShort:
    """A step that a stop came into: what is kept of it, or None where it is begun again."""

    in_hand: StepInHand | None = None
