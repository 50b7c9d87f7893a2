"""The evaluations of a run as tables, and their answers counted."""

from collections.abc import Mapping, Sequence

import pandas as pd

from dashboard.frames.text import preview
from engine.stats.intervals import accuracy_interval, mean_interval
from engine.stats.pass_at_k import curve_points, pass_at_k
from engine.store.records import AnswerCounts, EvaluationAnswerRow, EvaluationProblemRow, EvaluationRow
from engine.types import Verdict

CURVE = ["curve", "k", "share", "low", "high", "majority"]


def in_order(rows: Sequence[EvaluationRow]) -> list[EvaluationRow]:
    """Return evaluations as they are made, step by step and sampled before greedy, so that new ones come last."""
    return sorted(rows, key=lambda row: (row.step, row.split, row.mode != "sampled"))


def evaluation_label(row: EvaluationRow) -> str:
    """Return what an evaluation is called beside others of its run."""
    how = "greedy" if row.mode == "greedy" else f"sampled at T = {row.temperature:g}"
    return f"step {row.step:,}, {how}"


def evaluation_table(rows: Sequence[EvaluationRow], counts: Mapping[int, AnswerCounts]) -> pd.DataFrame:
    """Return one row per evaluation, shares in percent; `counts` by evaluation id give the 95 % interval.

    There is a column `pass@k` for every k that one of them has; `majority` is that of all its answers.
    """
    several = sorted({_at(name) for row in rows for name in row.metrics if name.startswith("pass@")})
    records = [
        {
            "step": row.step,
            "split": row.split,
            "mode": row.mode,
            "temperature": row.temperature,
            "problems": row.problems,
            "samples": row.samples,
            "accuracy": _percent(row.accuracy),
            "interval": _interval(counts[row.evaluation_id]),
            **{f"pass@{k}": _percent(row.metrics.get(f"pass@{k}")) for k in several},
            "majority": _percent(row.metrics.get(f"majority@{row.samples}")),
            "format": _percent(row.metrics.get("format")),
            "not_graded": _percent(row.metrics.get("not_graded")),
            "length": row.metrics.get("mean_length"),
        }
        for row in rows
    ]
    frame = pd.DataFrame(records)
    numbers = ["accuracy", *(f"pass@{k}" for k in several), "majority", "format", "not_graded", "length"]
    return frame.astype({column: "float64" for column in numbers if column in frame})


def pass_curve(row: EvaluationRow, counts: AnswerCounts) -> pd.DataFrame:
    """Return pass@k of an evaluation for k = 1, 2, 4, … and all its answers, with the 95 % interval over the problems.

    `majority` is set in the last row alone; no rows where the answers are not stored.
    """
    if not len(counts):
        return pd.DataFrame(columns=CURVE)
    rows = []
    for k in (1, *curve_points(int(counts.n.min()))):
        shares = pass_at_k(counts.n, counts.right, k)
        ends = accuracy_interval(counts.n, counts.right) if k == 1 else mean_interval(shares)
        rows.append((evaluation_label(row), k, float(shares.mean()), ends.low, ends.high, None))
    frame = pd.DataFrame(rows, columns=CURVE).astype({"majority": "float64"})
    frame.loc[frame.index[-1], "majority"] = row.metrics.get(f"majority@{row.samples}")
    return frame


def with_verdict(problems: Sequence[EvaluationProblemRow], verdict: Verdict | None) -> list[EvaluationProblemRow]:
    """Return the problems that have an answer with this verdict; all of them for None."""
    return [problem for problem in problems if verdict is None or getattr(problem, verdict) > 0]


def problem_table(problems: Sequence[EvaluationProblemRow]) -> pd.DataFrame:
    """Return one row per problem; the question is a preview."""
    columns = ["id", "question", "gold", "right", "share", "wrong", "unreadable", "not_graded"]
    rows = [
        (
            preview(each.problem_id, 60),
            preview(each.question),
            preview(each.gold, 60),
            f"{each.correct} of {each.n}",
            100 * each.correct / each.n,
            each.wrong,
            each.unreadable,
            each.not_graded,
        )
        for each in problems
    ]
    return pd.DataFrame(rows, columns=columns)


def answer_table(
    answers: Sequence[EvaluationAnswerRow], verdicts: Mapping[str, str], finishes: Mapping[str, str]
) -> pd.DataFrame:
    """Return one row per answer to a problem; texts are previews. The mappings give the words that are shown."""
    columns = ["sample", "verdict", "answer", "reason", "length", "finish", "text"]
    rows = [
        (
            each.sample,
            verdicts[each.verdict],
            None if each.answer is None else preview(each.answer, 60),
            preview(each.reason, 120),
            each.length,
            finishes[each.finish_reason],
            preview(each.text),
        )
        for each in answers
    ]
    return pd.DataFrame(rows, columns=columns)


def _interval(counts: AnswerCounts) -> str | None:
    if not len(counts):
        return None
    found = accuracy_interval(counts.n, counts.right)
    return f"{100 * found.low:.1f}–{100 * found.high:.1f} %"


def _at(name: str) -> int:
    return int(name.partition("@")[2])


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share
