"""What grading again comes to: how old and new verdicts go together, and what each mean reward is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from engine.types import Reward, Verdict

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FlipKind = Literal[
    "false negative",
    "false positive",
    "became readable",
    "became unreadable",
    "newly graded",
    "no longer graded",
    "value alone",
]
KINDS: tuple[FlipKind, ...] = get_args(FlipKind)
MOST_REASONS = 50
"""Distinct reasons that are counted by themselves; the others are counted together."""

_LONGEST_REASON = 500


def flip_kind(old: Verdict, new: Verdict) -> FlipKind:
    """Return what the change of a verdict is, taking the new grader's word for what is right.

    A verdict that was withheld is neither: "not_graded" before or after has kinds of its own. Between equal verdicts
    only the value has changed.
    """
    if old == new:
        return "value alone"
    if old == "not_graded":
        return "newly graded"
    if new == "not_graded":
        return "no longer graded"
    if new == "correct":
        return "false negative"
    if old == "correct":
        return "false positive"
    return "became readable" if old == "unreadable" else "became unreadable"


def verdicts_of(kind: FlipKind) -> list[tuple[Verdict, Verdict]]:
    """Return the pairs of old and new verdict that are of a kind."""
    return [(old, new) for old in VERDICTS for new in VERDICTS if flip_kind(old, new) == kind]


@dataclass(slots=True)
class Tally:
    """Counts of answers by old and new verdict; sums of old and new values over the answers that have one.

    `flips` counts the answers whose verdict or value differs. `errors` counts, by reason, those that the new grader
    did not judge.
    """

    counts: dict[tuple[Verdict, Verdict], int] = field(default_factory=dict)
    flips: int = 0
    old_sum: float = 0.0
    old_valued: int = 0
    new_sum: float = 0.0
    new_valued: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    other_errors: int = 0

    def add(self, old_value: float | None, old: Verdict, reward: Reward, *, compare_values: bool = True) -> bool:
        """Count one answer, and return whether it is a flip: its verdict, or (where they compare) its value differs."""
        self.counts[old, reward.verdict] = self.count(old, reward.verdict) + 1
        if old_value is not None:
            self.old_sum, self.old_valued = self.old_sum + old_value, self.old_valued + 1
        if reward.value is not None:
            self.new_sum, self.new_valued = self.new_sum + reward.value, self.new_valued + 1
        if reward.verdict == "not_graded":
            self._add_error(reward.reason)
        flip = old != reward.verdict or (compare_values and old_value != reward.value)
        self.flips += flip
        return flip

    def count(self, old: Verdict, new: Verdict) -> int:
        """Return how many answers had the verdict `old` and now have `new`."""
        return self.counts.get((old, new), 0)

    @property
    def total(self) -> int:
        """The number of answers."""
        return sum(self.counts.values())

    @property
    def old_mean(self) -> float | None:
        """The mean of the stored rewards, None where there is none."""
        return self.old_sum / self.old_valued if self.old_valued else None

    @property
    def new_mean(self) -> float | None:
        """The mean of the new rewards, None where there is none."""
        return self.new_sum / self.new_valued if self.new_valued else None

    @property
    def old_accuracy(self) -> float | None:
        """The share of all answers that were correct."""
        return self._share(sum(self.count("correct", new) for new in VERDICTS))

    @property
    def new_accuracy(self) -> float | None:
        """The share of all answers that are correct now."""
        return self._share(sum(self.count(old, "correct") for old in VERDICTS))

    @property
    def kinds(self) -> dict[FlipKind, int]:
        """The number of flips of each kind that there is, in the order of `KINDS`."""
        found = dict.fromkeys(KINDS, 0)
        for (old, new), count in self.counts.items():
            if old != new:
                found[flip_kind(old, new)] += count
        found["value alone"] = self.flips - sum(found.values())
        return {kind: count for kind, count in found.items() if count}

    @property
    def matrix(self) -> list[list[int]]:
        """The counts as rows of old verdicts and columns of new ones, both in the order of `VERDICTS`."""
        return [[self.count(old, new) for new in VERDICTS] for old in VERDICTS]

    def sentence(self, what: str) -> str:
        """Say it in words: `of 12,800 completions 31 changed: 28 false negatives, 3 false positives`."""
        start = f"of {self.total:,} {what} {self.flips:,} changed"
        return (
            f"{start}: {', '.join(_counted(kind, count) for kind, count in self.kinds.items())}"
            if self.flips
            else (f"of {self.total:,} {what} none changed")
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it; `from_document` reads it back."""
        return {
            "matrix": {old: {new: self.count(old, new) for new in VERDICTS} for old in VERDICTS},
            "flips": self.flips,
            "old": {"mean": self.old_mean, "sum": self.old_sum, "valued": self.old_valued},
            "new": {"mean": self.new_mean, "sum": self.new_sum, "valued": self.new_valued},
            "errors": self.errors,
            "other_errors": self.other_errors,
        }

    def _share(self, count: int) -> float | None:
        return count / self.total if self.total else None

    def _add_error(self, reason: str) -> None:
        reason = reason[:_LONGEST_REASON]
        if reason in self.errors or len(self.errors) < MOST_REASONS:
            self.errors[reason] = self.errors.get(reason, 0) + 1
        else:
            self.other_errors += 1


def from_document(document: Mapping[str, Any]) -> Tally:
    """Return the tally of a document; an empty one where nothing was counted yet."""
    if not document:
        return Tally()
    counts = {(old, new): document["matrix"][old][new] for old in VERDICTS for new in VERDICTS}
    old, new = document["old"], document["new"]
    return Tally(
        counts={pair: count for pair, count in counts.items() if count},
        flips=document["flips"],
        old_sum=old["sum"],
        old_valued=old["valued"],
        new_sum=new["sum"],
        new_valued=new["valued"],
        errors=dict(document["errors"]),
        other_errors=document["other_errors"],
    )


def _counted(kind: FlipKind, count: int) -> str:
    plural = "s" if kind.startswith("false") and count != 1 else ""
    return f"{count:,} {kind}{plural}"
