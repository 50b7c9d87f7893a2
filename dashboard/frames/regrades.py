"""Regradings as tables and as lines of a list."""

from collections.abc import Sequence

import pandas as pd

from dashboard.frames.text import preview
from engine.rewards.tally import Tally, flip_kind
from engine.store.records import FlipRow, Regrade

WHAT = {"completions": "completions", "evaluations": "answers of evaluations"}


def regrade_line(regrade: Regrade) -> str:
    """Return a regrading in one line: number, time, grader, what it covers; nothing that changes while it goes on.

    A list in the browser is told apart by its lines, and would lose the chosen one with a line that changes.
    """
    covers = f"{regrade.total:,} {WHAT[regrade.covers]}" + (" (a sample)" if regrade.sample else "")
    when = f"{regrade.created_at:%Y-%m-%d %H:%M:%S}"
    first, last = regrade.step_from, regrade.step_to
    steps = f"step {last:,}" if first == last else f"steps {first:,}–{last:,}"
    return f"#{regrade.regrade_id} · {when} · {regrade.reward} · {covers}, {steps}"


def flip_table(flips: Sequence[FlipRow]) -> pd.DataFrame:
    """Return one row per flip; texts are previews."""
    columns = ["step", "kind", "problem", "gold", "old_answer", "answer", "old", "new", "reason", "seconds"]
    rows = [
        (
            flip.step,
            flip_kind(flip.old_verdict, flip.verdict),
            preview(flip.question),
            preview(flip.gold, 60),
            None if flip.old_answer is None else preview(flip.old_answer, 60),
            None if flip.answer is None else preview(flip.answer, 60),
            flip.old_value,
            flip.value,
            preview(flip.reason),
            None if flip.seconds is None else 1000 * flip.seconds,
        )
        for flip in flips
    ]
    return pd.DataFrame(rows, columns=columns).astype({"old": "float64", "new": "float64", "seconds": "float64"})


def error_table(tally: Tally) -> pd.DataFrame:
    """Return the reasons for which answers were not graded, the commonest first, with their counts."""
    rows = sorted(((count, preview(reason, 500)) for reason, count in tally.errors.items()), key=lambda row: -row[0])
    if tally.other_errors:
        rows.append((tally.other_errors, "(other reasons)"))
    return pd.DataFrame(rows, columns=["count", "reason"])
