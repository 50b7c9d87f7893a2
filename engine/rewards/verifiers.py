"""The rewards by name. Each judges one completion against the gold answer.

All share one rule, that of Stanford CS336 assignment 5: `value` is 1.0 where the format is kept and the
answer is right, else 0.0. The verdict goes with the value: "correct" exactly where it is 1.0; "unreadable"
where no number could be read; else "wrong", also for a right answer in a wrong form. `parts` keeps the two
apart: `format` and `answer`, each 0.0 or 1.0.
"""

from collections.abc import Callable

from engine.errors import RewardError
from engine.rewards import extraction
from engine.rewards.equality import read_number
from engine.rewards.format import holds_box, keeps_r1_zero_format
from engine.types import Reward

RewardFn = Callable[[str, str], Reward]


def answer_tag(completion: str, gold: str) -> Reward:
    """Judges the last complete `<answer>…</answer>`, and the `</think> <answer>` form of `r1_zero`."""
    return _judge(
        answer=extraction.answer_tag(completion),
        gold=gold,
        format_kept=keeps_r1_zero_format(completion),
        missing="no complete <answer> tag",
        broken="no '</think> <answer>'",
    )


def boxed(completion: str, gold: str) -> Reward:
    r"""Judges the last complete `\boxed{…}`; the box is all the form there is."""
    return _judge(
        answer=extraction.boxed(completion),
        gold=gold,
        format_kept=holds_box(completion),
        missing=r"no complete \boxed{}",
        broken=r"no complete \boxed{}",
    )


# A new reward is a function (completion, gold) -> Reward and a line here.
REWARDS: dict[str, RewardFn] = {
    "answer_tag": answer_tag,
    "boxed": boxed,
}


def _judge(answer: str | None, gold: str, format_kept: bool, missing: str, broken: str) -> Reward:
    expected = read_number(gold)
    if expected is None:
        raise RewardError(f"gold: {gold!r} is not a number, and this reward compares numbers; correct the problem.")
    number = None if answer is None else read_number(answer)
    right = number == expected
    parts = {"format": float(format_kept), "answer": float(right)}
    if answer is None:
        return Reward(0.0, parts, None, "unreadable", missing)
    if number is None:
        return Reward(0.0, parts, answer, "unreadable", "the answer is not one number" if answer else "empty answer")
    if not right:
        return Reward(0.0, parts, answer, "wrong", f"not equal to {gold}")
    if not format_kept:
        return Reward(0.0, parts, answer, "wrong", f"right answer, but {broken}")
    return Reward(1.0, parts, answer, "correct", f"equal to {gold}")
