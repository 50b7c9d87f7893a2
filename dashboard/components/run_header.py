"""The head of a run's page: what it is, how far it is, how good it is, and what can be done with it."""

from collections.abc import Callable
from datetime import UTC, datetime

import streamlit as st

from dashboard.components.duration import duration
from dashboard.components.markdown import escape_markdown
from dashboard.components.navigation import open_compare, open_groups, open_new_run
from dashboard.components.run_actions import Choice, resumable, stoppable
from dashboard.components.run_table import accuracy_help
from dashboard.components.run_tabs import no_checkpoint
from dashboard.components.status import status_text
from dashboard.data.pace import seconds_left
from dashboard.data.workers import worker_alive
from dashboard.frames.numbers import share
from dashboard.frames.text import visible
from engine.errors import StoreError
from engine.store.database import Database
from engine.store.queue import request_stop, requeue
from engine.store.reads import attempts, checkpoints
from engine.store.records import Run
from engine.store.status import LIVE

LAST_LINES = 12
_STEP_HELP = "Last finished step, and the step at which it ends"


def run_header(db: Database, run: Run) -> None:
    """Draw the head of the page of a run."""
    _facts(db, run)
    _actions(db, run)
    if run.status == "queued" and not worker_alive(db):
        st.warning("This run waits, but no worker is running: start one with `make run` or `make worker`.")
    if run.status in ("failed", "lost"):
        _failure(db, run)


def _facts(db: Database, run: Run) -> None:
    measured = accuracy_help([run])
    left = seconds_left(db, run) if run.status in LIVE else None
    with st.container(horizontal=True, gap="medium", key="run_facts"):
        st.metric("Status", status_text(run.status), help=f"Attempt {run.attempts}", width="content")
        step = f"{run.step:,} of {run.total_steps:,}" if run.total_steps else "none"
        st.metric(
            "Step", step, help=_STEP_HELP if run.total_steps else "It evaluates, and trains nothing", width="content"
        )
        if run.status in LIVE and run.total_steps:
            words = f"about {duration(left)}" if left is not None else "–"
            st.metric("Time left", words, help="Steps left × mean time of the last 20 steps", width="content")
        st.metric("Duration", duration(_spent(run)) or "–", help="Time of all its attempts", width="content")
        if run.total_steps:
            _accuracies(run, measured)
        else:
            st.metric("Accuracy", share(run.last_accuracy), help=measured, width="content")
        st.metric("Seed", str(run.seed), help="Seed of sampling and data order", width="content")
    if run.total_steps:
        st.progress(min(1.0, run.step / run.total_steps))


def _accuracies(run: Run, measured: str) -> None:
    st.metric("First accuracy", share(run.first_accuracy), help=f"{measured}; the start policy", width="content")
    best = f"{measured}; the best so far" + (f", at step {run.best_step}" if run.best_step is not None else "")
    st.metric("Best accuracy", share(run.best_accuracy), help=best, width="content")
    st.metric("Last accuracy", share(run.last_accuracy), help=f"{measured}; the newest", width="content")


def _spent(run: Run) -> float | None:
    if run.seconds or run.started_at is None or run.status not in LIVE:
        return run.seconds or None
    return (datetime.now(UTC) - run.started_at).total_seconds()


def _actions(db: Database, run: Run) -> None:
    stop, resume = stoppable([run]), resumable([run])
    steps = [checkpoint.step for checkpoint in checkpoints(db, run.run_id)]
    none_yet = "" if steps else no_checkpoint(run)
    last = f"step {max(steps)}" if steps else "the start"
    with st.container(horizontal=True, gap="small", key="run_buttons"):
        if _button("Stop", ":material/stop:", run, stop, "Ask to stop after the step in hand; it can be resumed"):
            _try(lambda: request_stop(db, run.run_id))
        if _button("Resume", ":material/resume:", run, resume, f"Queue again; it goes on from {last}"):
            _try(lambda: requeue(db, run.run_id))
        fork = Choice((run,) if steps else (), none_yet)
        if _button("Fork", ":material/fork_right:", run, fork, f"New run that goes on from {last} of this one"):
            open_new_run(fork=run.run_id, step=max(steps))
        no_groups = (
            "There are no groups before the first step" if run.total_steps else "A run without steps has no groups"
        )
        groups = Choice((run,) if run.step else (), no_groups)
        if _button("Groups", ":material/account_tree:", run, groups, "Open the completions of its newest step"):
            open_groups(run.run_id)
        if _button("Compare", ":material/stacked_line_chart:", run, Choice((run,)), "Lay other runs over this one"):
            open_compare([run.run_id])


def _button(label: str, icon: str, run: Run, choice: Choice, purpose: str) -> bool:
    reason = choice.reason.replace("Choose a run first: tick the box at its left", "")
    key = f"{label}:{run.run_id}"
    return st.button(label, icon=icon, key=key, disabled=not choice.runs, help=purpose if choice.runs else reason)


def _try(act: Callable[[], None]) -> None:
    try:
        act()
    except StoreError as error:
        st.toast(escape_markdown(str(error)), icon=":material/error:")
    st.rerun()


def _failure(db: Database, run: Run) -> None:
    if run.status == "lost":
        st.error("Lost: its process is gone and left no word, so it was probably killed or the machine went down.")
    else:
        where = f"at step {run.step + 1}" if run.total_steps else "in its evaluation"
        st.error(f"Failed {where}: {escape_markdown(run.error or 'without a message')}")
    ended = [attempt for attempt in attempts(db, run.run_id) if attempt.traceback]
    if ended and ended[-1].traceback:
        lines = visible(ended[-1].traceback).strip().splitlines()
        st.code("\n".join(lines[-LAST_LINES:]), language=None, wrap_lines=True)
    steps = [checkpoint.step for checkpoint in checkpoints(db, run.run_id)]
    way = f"from its checkpoint at step {max(steps)}" if steps else "from the start, since it has no checkpoint"
    st.caption(f"Resume goes on {way}; Fork does so with a changed config. The whole log is in the tab Log.")
