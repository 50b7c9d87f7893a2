"""Runs: what runs, what waits, what ended, and what can be done about it."""

import streamlit as st

from dashboard.components.navigation import NEW_RUN
from dashboard.components.quick_start import quick_start
from dashboard.components.run_actions import action_bar
from dashboard.components.run_table import choose_runs, run_frame
from dashboard.components.status import count_line, in_reading_order
from dashboard.components.worker_notice import worker_notice
from dashboard.data import store
from dashboard.data.pace import seconds_left
from dashboard.data.sparkline import reward_line
from engine.store.reads import list_runs
from engine.store.status import LIVE

db = store()


@st.fragment(run_every="2s")
def live_runs() -> None:
    every_run = in_reading_order(list_runs(db, include_archived=True))
    worker_notice(db, n_waiting=sum(run.status == "queued" for run in every_run))
    if not every_run:
        quick_start(db)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        show_archived = st.toggle("Show archived", key="show_archived", persist_state="session")
        runs = [run for run in every_run if show_archived or not run.archived]
        st.caption(count_line(runs))
    if not runs:
        st.caption("Every run is archived.")
        return
    actions = st.container()
    frame = run_frame(
        runs,
        rewards={run.run_id: reward_line(db, run) for run in runs},
        seconds_left={run.run_id: seconds_left(db, run) for run in runs if run.status in LIVE},
    )
    chosen = choose_runs(runs, frame)
    with actions:
        action_bar(db, chosen)


with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    st.title("Runs", width="content")
    st.page_link(NEW_RUN, label="New run", icon=":material/add:")
live_runs()
