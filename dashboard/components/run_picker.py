"""Choosing the run that a page is about."""

from collections.abc import Sequence

import streamlit as st

from dashboard.components.markdown import escape_markdown
from dashboard.components.navigation import asked_run
from dashboard.components.status import in_reading_order
from engine.store.database import Database
from engine.store.reads import get_run, list_runs
from engine.store.records import Run


def run_label(run: Run) -> str:
    """Return a run as it stands in a list to choose from: without its status, which would grow stale there."""
    return f"{run.name} · seed {run.seed} · {run.run_id}"


def pick_run(db: Database) -> Run | None:
    """Draw the choice of a run and return it: the one in the address, else the first in reading order.

    With an empty store, say so and return None.
    """
    runs = in_reading_order(list_runs(db))
    asked = asked_run()
    named = get_run(db, asked) if asked else None
    if asked and named is None:
        st.error(f"No run has the id {escape_markdown(asked)}. Choose one below, or open one on the page Runs.")
    if not runs and named is None:
        st.info("There are no runs yet. Start one on the page New run; it will appear here within seconds.")
        return None
    if named is not None and all(run.run_id != named.run_id for run in runs):
        runs = [named, *runs]
    return _select(runs, named or runs[0])


def _select(runs: Sequence[Run], current: Run) -> Run:
    by_id = {run.run_id: run for run in runs}
    st.session_state["picked_run"] = current.run_id

    def go() -> None:
        st.query_params.from_dict({"run": st.session_state["picked_run"]})

    st.selectbox(
        "Run",
        list(by_id),
        format_func=lambda run_id: run_label(by_id[run_id]),
        key="picked_run",
        on_change=go,
        label_visibility="collapsed",
    )
    return current
