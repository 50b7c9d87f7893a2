"""The answers that a regrading judges in another way: filtered, listed, and looked at one by one."""

from typing import Any, cast

import streamlit as st

from dashboard.components.completions import VERDICTS, literal
from dashboard.components.navigation import open_groups
from dashboard.frames.numbers import number
from dashboard.frames.regrades import flip_table
from engine.rewards.tally import FlipKind, Tally, flip_kind, verdicts_of
from engine.store.database import Database
from engine.store.reads import flips, flips_by_step
from engine.store.records import FlipRow, Regrade
from engine.types import Verdict

MOST = 200
_TABLE_ROWS = 8
KIND_HELP: dict[FlipKind, str] = {
    "false negative": "was wrong or unreadable, and is correct by the new grader",
    "false positive": "was correct, and is not by the new grader",
    "became readable": "was unreadable, and is wrong",
    "became unreadable": "was wrong, and is unreadable",
    "newly graded": "was not graded, and is now",
    "no longer graded": "was graded, and is not now: the grader gave up or failed",
    "value alone": "has the same verdict and another value",
}


def draw_flips(db: Database, regrade: Regrade, tally: Tally) -> None:
    """Draw the flips of a regrading: a filter, the table, and the chosen one whole."""
    verdicts, step = _filter(db, regrade, tally)
    found = flips(db, regrade, verdicts=verdicts, step=step, limit=MOST + 1)
    if not found:
        st.info("No answer of this kind and step has changed. Choose another kind or step.")
        return
    if len(found) > MOST:
        st.caption(f"The first {MOST} of more; choose a kind or a step to see others.")
        found = found[:MOST]
    key = f"flips:{regrade.regrade_id}:{len(verdicts or ())}:{step}"
    event = st.dataframe(
        flip_table(found),
        hide_index=True,
        placeholder="–",
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        height="auto" if len(found) <= _TABLE_ROWS else 36 + 35 * _TABLE_ROWS,
        column_config=_columns(),
    )
    rows = cast(Any, event)["selection"]["rows"]
    _draw_flip(regrade, found[rows[0]] if rows and rows[0] < len(found) else found[0])


def _filter(db: Database, regrade: Regrade, tally: Tally) -> tuple[list[tuple[Verdict, Verdict]] | None, int | None]:
    kinds, steps = tally.kinds, flips_by_step(db, regrade)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox(
            "Kind",
            [None, *kinds],
            format_func=lambda each: f"all · {tally.flips:,}" if each is None else f"{each} · {kinds[each]:,}",
            key=f"flip_kind:{regrade.regrade_id}",
            width=260,
            help="By the new grader's word. "
            + " ".join(f"{each.capitalize()}: {words}." for each, words in KIND_HELP.items() if each in kinds),
        )
        step = st.selectbox(
            "Step",
            [None, *steps],
            format_func=lambda each: "all" if each is None else f"{each:,} · {steps[each]:,}",
            key=f"flip_step:{regrade.regrade_id}",
            width=160,
            help="Steps in which an answer has changed, with their number",
        )
    return None if kind is None else verdicts_of(kind), step


def _draw_flip(regrade: Regrade, flip: FlipRow) -> None:
    with st.container(border=True, key=f"flip_{regrade.regrade_id}"):
        kind = flip_kind(flip.old_verdict, flip.verdict)
        where = f"step {flip.step:,}" + (
            f", {flip.split}, {flip.mode}, answer {flip.answer_index}"
            if flip.index is None
            else f", group {flip.index}"
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{kind.capitalize()}** · {where}", help=f"This answer {KIND_HELP[kind]}.")
            if flip.index is not None and st.button(
                "Open its group", icon=":material/account_tree:", key=f"flip_group:{regrade.regrade_id}:{flip.place}"
            ):
                open_groups(regrade.run_id, flip.step, flip.index)
        stored, now = st.columns(2)
        with stored:
            _draw_judgement("Stored", flip.old_verdict, flip.old_value, flip.old_answer, flip.old_reason)
        with now:
            _draw_judgement("Now", flip.verdict, flip.value, flip.answer, flip.reason)
        st.caption("Gold answer")
        literal(flip.gold)
        st.caption("Question")
        literal(flip.question)
        st.caption("The text that was graded")
        literal(flip.text or "(empty)")


def _draw_judgement(title: str, verdict: Verdict, value: float | None, answer: str | None, reason: str) -> None:
    st.markdown(f"**{title}: {VERDICTS[verdict]}** · value {number(value)}")
    st.caption("Answer read")
    literal("(none)" if answer is None else answer or "(empty)")
    st.caption("Reason")
    literal(reason or "(none given)")


def _columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "step": column.NumberColumn("Step", width=55),
        "kind": column.TextColumn("Kind", width=130, help="By the new grader's word"),
        "problem": column.TextColumn("Problem", width=220, help="The question, at most 300 characters of it"),
        "gold": column.TextColumn("Gold", width=80, help="The right answer, as it is stored"),
        "old_answer": column.TextColumn("Answer stored", width=110, help="What was read from the text then"),
        "answer": column.TextColumn("Answer now", width=110, help="What is read from it now"),
        "old": column.NumberColumn(
            "Value stored", width=100, format="%.3f", help="Reward as stored, with all its parts"
        ),
        "new": column.NumberColumn("Value now", width=90, format="%.3f", help="What the reward gives now"),
        "reason": column.TextColumn("Reason now", width="large"),
        "seconds": column.NumberColumn("Took", width=80, format="%.2f ms", help="Time of judging; empty where untimed"),
    }
