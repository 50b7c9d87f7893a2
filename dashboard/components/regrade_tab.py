"""The tab Regrade: what another grader, or a newer version of the same, says of a run's stored answers."""

from datetime import UTC, datetime

import streamlit as st

from dashboard.components.flips import draw_flips
from dashboard.components.grader import grader_messages, own_reward
from dashboard.components.markdown import escape_markdown
from dashboard.components.plot import plot
from dashboard.data.regrade_process import start_regrade
from dashboard.figures.verdict_matrix import matrix_figure
from dashboard.frames.numbers import number, share
from dashboard.frames.regrades import WHAT, error_table, regrade_line
from engine.errors import GrpoLabError, RewardError, StoreError
from engine.rewards.choice import reward_names
from engine.rewards.identity import headline_of, reward_identity
from engine.rewards.tally import Tally, from_document
from engine.store.database import Database
from engine.store.reads import get_regrade, regrades
from engine.store.records import Covers, Regrade, Run
from engine.store.regrades import begin_regrade, end_silent, request_regrade_stop
from engine.store.stored_answers import extent

SAMPLE = 64
_AMOUNTS = {"sample": f"Sample of {SAMPLE}", "last": "Last steps", "all": "All"}
_COVERS: dict[Covers, str] = {"completions": "Training completions", "evaluations": "Evaluation answers"}
_EVERY = "1s"


def regrade_tab(db: Database, run: Run) -> None:
    """Draw the choice of a grader, and the regrading that was asked for or is chosen among the earlier ones."""
    end_silent(db, run.run_id, datetime.now(UTC))
    found = regrades(db, run.run_id)
    _form(db, run, busy=any(each.status == "running" for each in found))
    if not found:
        return
    by_id = {each.regrade_id: each for each in found}
    if st.session_state.get(_chosen_key(run)) not in by_id:
        st.session_state.pop(_chosen_key(run), None)  # a resume has discarded it
    chosen = by_id[
        st.selectbox(
            "Regradings of this run",
            list(by_id),
            format_func=lambda regrade_id: regrade_line(by_id[regrade_id]),
            key=_chosen_key(run),
            help="Each is kept with the run; the stored rewards are never changed. Times are UTC.",
        )
    ]
    if chosen.status == "running":
        st.fragment(_watch, run_every=_EVERY)(db, chosen.regrade_id)
    else:
        _draw(db, chosen)


def _form(db: Database, run: Run, *, busy: bool) -> None:
    own = own_reward(run)
    names = reward_names()
    options = [own, *(name for name in names if name != own)] if own else names
    with st.container(horizontal=True, vertical_alignment="bottom", key="regrade_form"):
        reward = st.selectbox(
            "Reward",
            options,
            format_func=lambda name: f"{name} (this run's)" if name == own else name,
            key=f"regrade_reward:{run.run_id}",
            width=260,
            help="The grader that judges the stored texts again",
        )
        covers = st.segmented_control(
            "Answers", list(_COVERS), default="completions", required=True, key=f"regrade_covers:{run.run_id}",
            format_func=lambda each: _COVERS[each],
        )  # fmt: skip
        amount = st.segmented_control(
            "How many",
            list(_AMOUNTS),
            default="sample",
            required=True,
            key=f"regrade_amount:{run.run_id}",
            format_func=lambda each: _AMOUNTS[each],
            help="The sample is drawn evenly from all steps: enough to try a reward out. All takes about as long as "
            "the grading of the whole run took.",
        )
        stored = extent(db, run.run_id, covers)
        last = 10
        if amount == "last":
            last = int(st.number_input("Steps", 1, None, 10, key=f"regrade_last:{run.run_id}", width=110))
        reason = _why_not(stored.count, covers, busy=busy)
        st.button(
            "Regrade",
            type="primary",
            icon=":material/rule:",
            key=f"regrade_start:{run.run_id}",
            disabled=bool(reason),
            help=reason or "Judges them in a process of its own; nothing stored is changed",
            on_click=_start,
            args=(db, run, reward, covers, SAMPLE if amount == "sample" else None),
            kwargs={"step_from": (stored.last or 0) - last + 1 if amount == "last" else None},
        )
    st.caption(f"{stored.count:,} {WHAT[covers]} are stored. {_grader_words(db, run, reward)}")
    error = st.session_state.get(_error_key(run))
    if error:
        st.error(escape_markdown(error))


def _why_not(count: int, covers: Covers, *, busy: bool) -> str:
    if busy:
        return "One regrading at a time: stop the one that is running, or wait for its end"
    return "" if count else f"No {WHAT[covers]} of this run are stored"


def _grader_words(db: Database, run: Run, reward: str) -> str:
    try:
        grader = reward_identity(reward)
    except RewardError as error:
        return escape_markdown(str(error))
    words = f"Grades by {escape_markdown(grader.headline)}: {escape_markdown(grader.rule)}"
    said = grader_messages(db, run)
    if not said:
        return words
    trained = headline_of(said[-1])
    if trained == grader.headline:
        return f"{words} It is the very grader that the run was trained with."
    return f"{words} The run was trained with {escape_markdown(trained)}."


def _start(db: Database, run: Run, reward: str, covers: Covers, sample: int | None, *, step_from: int | None) -> None:
    st.session_state.pop(_error_key(run), None)
    try:
        version = reward_identity(reward).version
        regrade_id = begin_regrade(
            db, run.run_id, reward=reward, version=version, covers=covers, step_from=step_from, sample=sample
        )
    except GrpoLabError as error:
        st.session_state[_error_key(run)] = str(error)
        return
    start_regrade(db, regrade_id)
    st.session_state[_chosen_key(run)] = regrade_id


def _watch(db: Database, regrade_id: int) -> None:
    try:
        now = get_regrade(db, regrade_id)
    except StoreError:  # the run was resumed from an earlier step, and the regrading went with what it covered
        st.rerun()
    end_silent(db, now.run_id, datetime.now(UTC))
    if now.status != "running":
        st.rerun()
    words = f"{now.done:,} of {now.total:,} {WHAT[now.covers]} graded again"
    st.progress(min(1.0, now.done / now.total), text=words)
    if now.done:
        st.caption(_sentence(from_document(now.counts), now))
    asked = now.stop_requested
    st.button(
        "Stop",
        icon=":material/stop:",
        key=f"regrade_stop:{regrade_id}",
        disabled=asked,
        help="Stopping after the answers in hand" if asked else "What was found so far is kept",
        on_click=request_regrade_stop,
        args=(db, regrade_id),
    )


def _draw(db: Database, regrade: Regrade) -> None:
    tally = from_document(regrade.counts)
    if regrade.status == "failed":
        st.error(f"Failed after {regrade.done:,} of {regrade.total:,}: {escape_markdown(regrade.error or '')}")
    elif regrade.status == "stopped":
        st.warning(f"Stopped after {regrade.done:,} of {regrade.total:,}; this is what was found until then.")
    if not tally.total:
        return
    st.markdown(f"**{_sentence(tally, regrade)}**")
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        version = (regrade.regrade_id, regrade.done)
        plot(f"regrade_matrix:{regrade.run_id}", version, lambda: matrix_figure(tally.matrix))
    with right:
        _draw_means(tally, values=bool(regrade.counts.get("values")))
        st.caption(f"By {escape_markdown(regrade.reward)} ({escape_markdown(regrade.version)}).")
    if tally.errors:
        st.markdown("**Not graded, by reason**", help="An error of a reward of one's own names its file and line")
        st.dataframe(
            error_table(tally),
            hide_index=True,
            column_config={"count": st.column_config.NumberColumn("Answers", width=80)},
            key=f"regrade_errors:{regrade.regrade_id}",
        )
    if tally.flips:
        draw_flips(db, regrade, tally)


def _draw_means(tally: Tally, *, values: bool) -> None:
    with st.container(horizontal=True):
        st.metric(
            "Accuracy now",
            share(tally.new_accuracy),
            delta=_difference(tally.old_accuracy, tally.new_accuracy, percent=True),
            help=f"Share of these answers that are correct; as stored {share(tally.old_accuracy)}",
            width="content",
        )
        if values:
            st.metric(
                "Mean reward now",
                number(tally.new_mean),
                delta=_difference(tally.old_mean, tally.new_mean),
                help=f"Mean over the answers that were graded; as stored {number(tally.old_mean)}",
                width="content",
            )
    if not values:
        st.caption(
            "The stored rewards of this run hold more than the grader's word (weights, penalties, a placebo), so "
            "verdicts alone are compared."
        )


def _difference(old: float | None, new: float | None, *, percent: bool = False) -> str | None:
    """Return the change with its sign; None where there is none, or nothing to compare."""
    if old is None or new is None or old == new:
        return None
    return f"{100 * (new - old):+.1f} points" if percent else f"{new - old:+.4g}"


def _sentence(tally: Tally, regrade: Regrade) -> str:
    words = tally.sentence(WHAT[regrade.covers])
    return f"{words[0].upper()}{words[1:]}."


def _chosen_key(run: Run) -> str:
    return f"regrade_chosen:{run.run_id}"


def _error_key(run: Run) -> str:
    return f"regrade_error:{run.run_id}"
