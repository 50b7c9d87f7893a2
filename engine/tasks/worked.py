"""Worked arithmetic: the steps of a problem written out, and the answer in the form that a prompt asks for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul, sub

_APPLY: Mapping[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}


@dataclass(frozen=True, slots=True)
class Work:
    """A problem with its steps written out: ` 7+12=19; 19-3=16`, and the value they end in."""

    steps: str
    value: int


def worked(operands: Sequence[int], operators: Sequence[str], slip_at: int | None = None, slip: int = 0) -> Work:
    """The steps from left to right, products before sums and differences: `2 + 3 * 4` gives ` 3*4=12; 2+12=14`.

    At step `slip_at` the result is off by `slip`, and kept.
    """
    values, left = list(operands), list(operators)
    steps: list[str] = []
    while left:
        place = left.index("*") if "*" in left else 0
        first, second, op = values[place], values[place + 1], left.pop(place)
        result = _APPLY[op](first, second) + (slip if len(steps) == slip_at else 0)
        values[place : place + 2] = [result]
        steps.append(f" {first}{op}{second}={result}")
    return Work(";".join(steps), values[0])


def tagged(work: Work) -> str:
    """The steps as thoughts that `r1_zero` has opened already, and the answer in its tag."""
    return f"{work.steps} </think> <answer> {work.value} </answer>"


def boxed(work: Work) -> str:
    """The steps, and the answer in a box."""
    return f"{work.steps}. So \\boxed{{{work.value}}}"


# By prompt: how a solution is written that its reward reads.
SOLUTIONS: Mapping[str, Callable[[Work], str]] = {"r1_zero": tagged, "question_only": boxed}
