"""The tab of a run's evaluations: what was measured, pass@k over k, and the answers problem by problem."""

from collections.abc import Sequence
from typing import Any, cast

import pandas as pd
import streamlit as st

from dashboard.components.completions import FINISHES, VERDICTS, literal
from dashboard.components.markdown import escape_markdown
from dashboard.components.plot import plot
from dashboard.data.evaluations import answer_counts, evaluation_problems
from dashboard.figures.pass_at_k import pass_figure
from dashboard.frames.evaluations import (
    answer_table,
    evaluation_label,
    evaluation_table,
    in_order,
    pass_curve,
    problem_table,
    with_verdict,
)
from engine.store.database import Database
from engine.store.reads import evaluation_answers, evaluations
from engine.store.records import EvaluationProblemRow, EvaluationRow, Run
from engine.store.status import ENDED
from engine.types import Verdict

_ROWS = 8  # of a table before it scrolls
_ALL = "all"


def evaluations_tab(db: Database, run: Run) -> None:
    """Draw the tab; what is chosen in it stays while new evaluations come in."""
    _subject(run)
    rows = in_order(evaluations(db, [run.run_id]))
    if not rows:
        _nothing_yet(run)
        return
    chosen = _chosen(db, run, rows)
    several = [row for row in chosen if row.samples > 1]
    if several:
        with st.container(border=True):
            st.markdown("**pass@k**", help=_CURVE_HELP)
            ids = tuple(row.evaluation_id for row in several)
            plot(f"{run.run_id}:pass_at_k", ids, lambda: pass_figure(_curves(db, several)))
    elif all(row.mode == "sampled" for row in chosen):
        st.caption("With `evaluation.samples` of 2 or more there are pass@k and majority@k, and a curve here.")
    _answers(db, run, chosen[-1])


def _subject(run: Run) -> None:
    """Say what a run without steps evaluates."""
    if run.total_steps == 0:
        model = run.config.get("model", {})
        what = model.get("init_from") or model.get("name", "?")
        st.caption(f"This run trains nothing: it evaluates **{escape_markdown(str(what))}**.")


def _nothing_yet(run: Run) -> None:
    if run.status in ENDED:
        st.info("This run ended before its first evaluation; see the tabs Log and Events.")
        return
    wanted = run.config.get("evaluation", {})
    number = f"{wanted.get('size', '?'):,} × {wanted.get('samples', 1):,}"
    st.info(f"No evaluation yet: the first one appears once all of its answers ({number} at most) are judged.")


def _chosen(db: Database, run: Run, rows: Sequence[EvaluationRow]) -> list[EvaluationRow]:
    """Draw the table and return the ticked evaluations; without a tick the newest sampled one, or the one in hand."""
    counts = {row.evaluation_id: answer_counts(db, row.evaluation_id) for row in rows}
    frame = evaluation_table(rows, counts)
    event: Any = st.dataframe(
        frame,
        hide_index=True,
        key=f"evaluations:{run.run_id}",
        on_select="rerun",
        selection_mode="multi-row",
        column_config=_columns(frame),
        placeholder="–",
        height="content" if len(rows) <= _ROWS else 35 * (_ROWS + 1),
    )
    ticked = [rows[row] for row in sorted(event["selection"]["rows"]) if row < len(rows)]
    if ticked:
        return ticked
    kept = [row for row in rows if row.evaluation_id == st.session_state.get(_in_hand(run))]
    sampled = [row for row in rows if row.mode == "sampled"]
    return kept or (sampled or list(rows))[-1:]


def _curves(db: Database, rows: Sequence[EvaluationRow]) -> pd.DataFrame:
    return pd.concat([pass_curve(row, answer_counts(db, row.evaluation_id)) for row in rows], ignore_index=True)


def _answers(db: Database, run: Run, row: EvaluationRow) -> None:
    st.subheader(
        f"Answers: {evaluation_label(row)}", help="Tick another evaluation above for its answers; of several, the last"
    )
    problems = evaluation_problems(db, row.evaluation_id)
    if not problems:
        st.info("The answers of this evaluation are not stored.")
        return
    verdict = st.segmented_control(
        "With an answer that is",
        [_ALL, *VERDICTS],
        default=_ALL,
        required=True,
        key=f"evaluation_verdict:{run.run_id}",
        format_func=lambda each: _filter_words(each, problems),
        help="How many problems have an answer with this verdict",
    )
    shown = with_verdict(problems, None if verdict == _ALL else cast(Verdict, verdict))
    if not shown:
        st.caption("No problem has such an answer.")
        return
    event: Any = st.dataframe(
        problem_table(shown),
        hide_index=True,
        key=f"evaluation_problems:{row.evaluation_id}:{verdict}",
        on_select="rerun",
        selection_mode="single-row",
        column_config=_PROBLEM_COLUMNS,
        height="content" if len(shown) <= _ROWS else 35 * (_ROWS + 1),
    )
    picked = [shown[place] for place in event["selection"]["rows"] if place < len(shown)]
    # Whoever reads an evaluation keeps it, though a newer one comes in.
    st.session_state[_in_hand(run)] = row.evaluation_id if picked else None
    if picked:
        _problem(db, row, picked[0])
    else:
        st.caption("Tick a problem to see its answers.")


def _problem(db: Database, row: EvaluationRow, problem: EvaluationProblemRow) -> None:
    with st.container(border=True):
        st.markdown(f"**{problem.correct} of {problem.n} right** · {escape_markdown(problem.problem_id)}")
        left, right = st.columns([3, 1])
        with left:
            st.caption("Question")
            literal(problem.question)
        with right:
            st.caption("Gold answer")
            literal(problem.gold)
        answers = evaluation_answers(db, row.evaluation_id, problem.answers)
        event: Any = st.dataframe(
            answer_table(answers, VERDICTS, FINISHES),
            hide_index=True,
            key=f"evaluation_answers:{row.evaluation_id}:{problem.first}",
            on_select="rerun",
            selection_mode="single-row",
            column_config=_ANSWER_COLUMNS,
            placeholder="–",
            height="content" if len(answers) <= _ROWS else 35 * (_ROWS + 1),
        )
        read = [answers[place] for place in event["selection"]["rows"] if place < len(answers)]
        if len(answers) == 1:
            read = answers
        if not read:
            st.caption("Tick an answer to read its whole text.")
        for each in read:
            st.caption(f"Text of answer {each.sample}, {each.length:,} tokens")
            literal(each.text or "(empty)")


def _filter_words(verdict: str, problems: Sequence[EvaluationProblemRow]) -> str:
    if verdict == _ALL:
        return f"all {len(problems):,}"
    return f"{VERDICTS[cast(Verdict, verdict)]} {len(with_verdict(problems, cast(Verdict, verdict))):,}"


def _in_hand(run: Run) -> str:
    return f"evaluation_in_hand:{run.run_id}"


def _columns(frame: pd.DataFrame) -> dict[str, Any]:
    column = st.column_config

    def share(title: str, width: int, hint: str) -> Any:
        return column.NumberColumn(title, width=width, format="%.1f %%", help=hint)

    return {
        "step": column.NumberColumn("Step", width=55, format="%d", help="Steps of training before it; 0 is the start"),
        "split": column.TextColumn("Split", width=85, help="Which held-out problems"),
        "mode": column.TextColumn("Mode", width=75, help="Sampled, or greedy: the likeliest token throughout"),
        "temperature": column.NumberColumn("T", width=40, format="%g", help="Sampling temperature; 0 is greedy"),
        "problems": column.NumberColumn("Problems", width=75, format="%d", help="Held-out problems answered"),
        "samples": column.NumberColumn("k", width=40, format="%d", help="Answers to each problem"),
        "accuracy": share("Accuracy", 80, "Share of all answers that are right: pass@1"),
        "interval": column.TextColumn("95 % interval", width=100, help=_INTERVAL_HELP),
        **{
            name: share(name, 75, f"Chance that at least one of {name[5:]} answers is right, mean over the problems")
            for name in map(str, frame.columns)
            if name.startswith("pass@")
        },
        "majority": share("Majority@k", 90, "Share of problems whose most frequent answer of the k is right"),
        "format": share("Format", 70, "Share of answers in the form asked for"),
        "not_graded": share("Not graded", 85, "Share of answers that the reward could not judge; they are not right"),
        "length": column.NumberColumn("Tokens", width=65, format="%.1f", help="Mean length, the end token counted"),
    }


_INTERVAL_HELP = (
    "For one answer to each problem Wilson's interval over the problems; for several, ± 1.96 standard errors of the "
    "mean over the problems. It says nothing of other training seeds."
)
_CURVE_HELP = (
    "Chance that at least one of k answers is right, the unbiased estimate from all answers (Chen et al. 2021), mean "
    "over the problems; the band is its 95 % interval. The star is majority@k: how often the most frequent answer is "
    "right."
)
_PROBLEM_COLUMNS = {
    "id": st.column_config.TextColumn("Problem", width=110, help="Its id in the task"),
    "question": st.column_config.TextColumn("Question", width="medium", help="At most 300 characters; whole below"),
    "gold": st.column_config.TextColumn("Gold", width=80, help="The right answer"),
    "right": st.column_config.TextColumn("Right", width=70, help="Answers judged correct, of all"),
    "share": st.column_config.ProgressColumn("Share right", width=100, min_value=0, max_value=100, format="%.0f %%"),
    "wrong": st.column_config.NumberColumn("Wrong", width=60, help="Answers judged wrong"),
    "unreadable": st.column_config.NumberColumn("Unreadable", width=85, help="Out of which no answer could be read"),
    "not_graded": st.column_config.NumberColumn("Not graded", width=85, help="Which the reward could not judge"),
}
_ANSWER_COLUMNS = {
    "sample": st.column_config.NumberColumn("#", width=40, help="Number of the answer, from 0"),
    "verdict": st.column_config.TextColumn("Verdict", width=105, help="What the reward function found"),
    "answer": st.column_config.TextColumn("Answer read", width=95, help="What was extracted from the text"),
    "reason": st.column_config.TextColumn("Reason", width=170, help="Why it was judged so"),
    "length": st.column_config.NumberColumn("Tokens", width=65, help="Length, the end token counted"),
    "finish": st.column_config.TextColumn("Ended by", width=120, help="End token, stop string, or the length limit"),
    "text": st.column_config.TextColumn("Text", width="large", help="At most 300 characters; tick it for the whole"),
}
