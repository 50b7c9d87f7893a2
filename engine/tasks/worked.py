"""Worked arithmetic: the steps of a problem written out, and the answer in the form that a prompt asks for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """A problem with its steps written out: ` 7+12=19; 19-3=16`, and the value they end in."""

    steps: str
    value: int


def worked(operands: Sequence[int], operators: Sequence[str], slip_at: int | None = None, slip: int = 0) -> Work:
    """The steps of sums and differences from left to right. At step `slip_at` the result is off by `slip`, and kept."""
    value = operands[0]
    steps = []
    for index, (op, operand) in enumerate(zip(operators, operands[1:], strict=True)):
        result = value + operand if op == "+" else value - operand
        if index == slip_at:
            result += slip
        steps.append(f" {value}{op}{operand}={result}")
        value = result
    return Work(";".join(steps), value)


def tagged(work: Work) -> str:
    """The steps as thoughts that `r1_zero` has opened already, and the answer in its tag."""
    return f"{work.steps} </think> <answer> {work.value} </answer>"


def boxed(work: Work) -> str:
    """The steps, and the answer in a box."""
    return f"{work.steps}. So \\boxed{{{work.value}}}"


# By prompt: how a solution is written that its reward reads.
SOLUTIONS: Mapping[str, Callable[[Work], str]] = {"r1_zero": tagged, "question_only": boxed}
