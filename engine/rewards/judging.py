"""The verdict on one answer, by the rule of its format; docs/grading.md has the rules in words."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import RewardError
from engine.rewards import extraction
from engine.rewards.equality import Comparison, Leaf
from engine.rewards.reading import LONGEST_ANSWER, read
from engine.rewards.readings import Equation, Expression, Listing, Quantity, Reading, Words
from engine.rewards.spelling import key, plain

if TYPE_CHECKING:  # it imports numpy, which a grader process does without
    from engine.types import Verdict

_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,18})\s*", re.ASCII)
# Digits joined by + − × ÷ alone: arithmetic that was left undone.
_UNDONE = re.compile(r"(?:[0-9.,+\-*/(){}:\s]|\\(?:frac|times|cdot|div)(?![a-zA-Z]))+")
_TIMES = re.compile(r"(?<=[0-9)])\s*[xX]\s*(?=[0-9(])")
_YES_NO = frozenset(("yes", "no", "true", "false"))


@dataclass(frozen=True, slots=True)
class Format:
    """How the answer of a completion is found, and how it is compared.

    `numeric`: gold is one number. `accounts`: `(5)` is −5, and either side may be a rounding of the other.
    """

    extract: Callable[[str], str | None]
    missing: str
    numeric: bool = False
    accounts: bool = False


FORMATS: dict[str, Format] = {
    "gsm8k": Format(extraction.hash_line, "no line with ####", numeric=True),
    "boxed": Format(extraction.boxed, r"no complete \boxed{}"),
    "answer_tag": Format(extraction.answer_tag, "no complete <answer> tag"),
    "plain": Format(extraction.whole, "an empty completion"),
    "finqa": Format(extraction.answer_line, "no 'Answer:' and no complete <answer> tag", accounts=True),
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is said of one answer. `verdict` is "not_graded" where the grader was stopped."""

    verdict: "Verdict"
    reason: str


def undecided(answer: Reading, gold: Reading) -> None:
    """Leave expressions to an algebra system: the leaf of a first, cheap look."""


def judge(answer: str, gold: str, format_name: str, leaf: Leaf = undecided) -> Judgement | None:
    """Return the judgement on the text of an answer, or None where `leaf` could not decide.

    Raises:
        RewardError: if `gold` says nothing that could be compared.
    """
    gold = final_gold(gold)
    ours, theirs = _INTEGER.fullmatch(answer), _INTEGER.fullmatch(gold)
    if ours is not None and theirs is not None:
        return _of(int(ours.group(1)) == int(theirs.group(1)), gold)
    form = FORMATS[format_name]
    expected = read_gold(gold, format_name)
    if not answer.strip():
        return Judgement("unreadable", "empty answer")
    if len(answer) > LONGEST_ANSWER:
        return Judgement("unreadable", f"the answer is longer than {LONGEST_ANSWER} characters")
    reading = read(answer, accounts=form.accounts)
    if reading is None:
        return Judgement("unreadable", "the answer is not one number" if _is_number(expected) else "no answer in it")
    if isinstance(expected, Words) and expected.text in _YES_NO:
        return _of(_first_word(answer) == expected.text, gold)
    if _is_number(expected) and not _may_be_number(reading):
        return Judgement("unreadable", "the answer is not one number")
    if key(plain(answer)) == key(plain(gold)):
        return _of(True, gold)
    same = Comparison(leaf, rounded=form.accounts).same(reading, expected)
    return None if same is None else _of(same, gold)


def final_gold(gold: str) -> str:
    r"""Return the answer that a whole worked solution ends in: after the last `####`, else in the last `\boxed{}`."""
    if "####" in gold:
        return extraction.hash_line(gold) or ""
    return (extraction.boxed(gold) or "") if "\\boxed" in gold else gold


@lru_cache(maxsize=4096)
def read_gold(gold: str, format_name: str) -> Reading:
    """Return what `gold` says.

    Raises:
        RewardError: if it says nothing, or is no number where `format_name` compares numbers.
    """
    form = FORMATS[format_name]
    reading = read(final_gold(gold), accounts=form.accounts)
    if reading is None:
        raise RewardError(f"gold: {gold!r} is not an answer; give a number, an expression or a word, or drop it.")
    if form.numeric and not _is_number(reading):
        raise RewardError(f"gold: {gold!r} is not a number, and {format_name} compares numbers; correct the problem.")
    return reading


def needs_algebra(reading: Reading) -> bool:
    """Whether a reading holds anything that is compared by an algebra system."""
    if isinstance(reading, Listing):
        return any(needs_algebra(item) for item in reading.items)
    return needs_algebra(reading.value) if isinstance(reading, Equation) else isinstance(reading, Expression)


def _of(same: bool, gold: str) -> Judgement:
    gold = gold.strip()
    return Judgement("correct", f"equal to {gold}") if same else Judgement("wrong", f"not equal to {gold}")


def _is_number(reading: Reading) -> bool:
    return isinstance(reading, Quantity)


def _may_be_number(reading: Reading) -> bool:
    """Whether one number may be meant, to be worked out or not."""
    if isinstance(reading, Equation):
        return _may_be_number(reading.value)
    if isinstance(reading, Listing):
        return len(reading.items) == 1 and _may_be_number(reading.items[0])
    if isinstance(reading, Expression):
        return _UNDONE.fullmatch(_TIMES.sub("*", reading.text)) is None
    return isinstance(reading, Quantity)


def _first_word(answer: str) -> str:
    found = re.match(r"\W*(\w+)\b(.*)", plain(answer).lower(), re.DOTALL)
    if found is None or _YES_NO & set(re.findall(r"\w+", found.group(2))) - {found.group(1)}:
        return ""
    return found.group(1)
