"""What can be done with the chosen runs, and why not where it cannot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard.components.markdown import escape_markdown
from dashboard.components.navigation import open_compare, open_new_run, open_run
from dashboard.components.run_tabs import no_checkpoint
from engine.errors import StoreError
from engine.store.database import Database
from engine.store.queue import archive, request_stop, requeue
from engine.store.reads import checkpoints
from engine.store.records import Run
from engine.store.status import ENDED, TRANSITIONS


@dataclass(frozen=True, slots=True)
class Choice:
    """The runs that an action applies to, `among` how many were chosen; or the reason why there is none."""

    runs: tuple[Run, ...]
    reason: str = ""
    among: int = 1


def stoppable(chosen: Sequence[Run]) -> Choice:
    """Return what can be stopped: what waits or runs and has not been asked yet."""
    able = tuple(run for run in chosen if run.status in ("queued", "starting", "running"))
    return _choice(chosen, able, "Only a run that waits or runs can be stopped")


def resumable(chosen: Sequence[Run]) -> Choice:
    """Return what can be resumed: what ended before its time."""
    able = tuple(run for run in chosen if "queued" in TRANSITIONS[run.status])
    return _choice(chosen, able, "Only a run that failed, was stopped or was lost can be resumed")


def archivable(chosen: Sequence[Run]) -> Choice:
    """Return what can be archived: what ended and is still in the list."""
    able = tuple(run for run in chosen if run.status in ENDED and not run.archived)
    return _choice(chosen, able, "Only a run that has ended can be archived: stop it first")


def action_bar(db: Database, chosen: Sequence[Run]) -> None:
    """Draw the actions; each acts on the runs it was drawn for, whatever else has changed meanwhile."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="run_actions"):
        one = _one(chosen)
        if _button("Open", "open", one, ":material/open_in_new:", "Show the charts of this run"):
            open_run(one.runs[0].run_id)
        several = (
            Choice(tuple(chosen), among=len(chosen))
            if len(chosen) > 1
            else Choice((), "Choose two or more runs to compare")
        )
        if _button("Compare", "compare", several, ":material/stacked_line_chart:", "Lay the curves over one another"):
            open_compare(run.run_id for run in several.runs)
        fork, step = _forkable(db, chosen)
        if _button("Fork", "fork", fork, ":material/fork_right:", f"New run that goes on from step {step} of this one"):
            open_new_run(fork=fork.runs[0].run_id, step=step)
        stop = stoppable(chosen)
        if _button("Stop", "stop", stop, ":material/stop:", "Ask to stop after the step in hand; it can be resumed"):
            _each(stop, lambda run: request_stop(db, run.run_id))
        resume = resumable(chosen)
        if _button("Resume", "resume", resume, ":material/resume:", "Queue again, from the last checkpoint"):
            _each(resume, lambda run: requeue(db, run.run_id))
        if chosen and all(run.archived for run in chosen):
            back = Choice(tuple(chosen), among=len(chosen))
            if _button("Unarchive", "unarchive", back, ":material/unarchive:", "Back into the list"):
                _each(back, lambda run: archive(db, run.run_id, False))
            return
        hide = archivable(chosen)
        if _button("Archive", "archive", hide, ":material/archive:", "Take out of the list; nothing is deleted"):
            _each(hide, lambda run: archive(db, run.run_id))


def _choice(chosen: Sequence[Run], able: tuple[Run, ...], reason: str) -> Choice:
    if able:
        return Choice(able, among=len(chosen))
    return Choice((), reason if chosen else "Choose a run first: tick the box at its left")


def _one(chosen: Sequence[Run]) -> Choice:
    return _choice(chosen, tuple(chosen) if len(chosen) == 1 else (), "Choose one run only")


def _forkable(db: Database, chosen: Sequence[Run]) -> tuple[Choice, int]:
    one = _one(chosen)
    if not one.runs:
        return one, 0
    run = one.runs[0]
    steps = [checkpoint.step for checkpoint in checkpoints(db, run.run_id)]
    if not steps:
        return Choice((), no_checkpoint(run)), 0
    return one, max(steps)


def _button(label: str, action: str, choice: Choice, icon: str, purpose: str) -> bool:
    """The key names the runs: a click that arrives after the choice has changed finds no button and does nothing."""
    number = f" {len(choice.runs)}" if choice.among > 1 and choice.runs else ""
    return st.button(
        label + number,
        icon=icon,
        key=f"{action}:{','.join(run.run_id for run in choice.runs)}",
        disabled=not choice.runs,
        help=choice.reason or purpose,
    )


def _each(choice: Choice, act: Callable[[Run], None]) -> None:
    for run in choice.runs:
        try:
            act(run)
        except StoreError as error:
            st.toast(escape_markdown(str(error)), icon=":material/error:")
    st.rerun()
