"""Compare: runs over one another, how they stand, and what sets them apart."""

import streamlit as st

from dashboard.components.compare_charts import compared, draw_config_differences, draw_final_table, draw_overlays
from dashboard.components.compare_controls import View, pick_runs, pick_view
from dashboard.components.navigation import open_groups
from dashboard.components.plot import plot_library
from dashboard.data import store
from engine.store.reads import list_runs, metric_names
from engine.store.status import LIVE

db = store()


def live(run_ids: list[str], view: View, was_live: bool) -> None:
    known = {run.run_id: run for run in list_runs(db, include_archived=True)}
    runs = [known[run_id] for run_id in run_ids if run_id in known]
    data = compared(db, runs, view)
    point = draw_overlays(runs, view, data)
    draw_final_table(runs, data)
    if point is not None:
        open_groups(*point)
    if was_live and not any(run.status in LIVE for run in runs):
        st.rerun()  # The whole page, so that nothing refreshes any more.


def page() -> None:
    runs = list_runs(db, include_archived=True)
    if not runs:
        st.info("There are no runs yet. Start two on the page New run, with one field changed, and compare them here.")
        return
    picked = pick_runs(runs)
    if not picked:
        st.info("Choose the runs to compare above, or tick them on the page Runs and press Compare.")
        return
    ids = [run.run_id for run in picked]
    logged = metric_names(db, ids)
    if not logged:
        st.info("None of these runs has logged anything yet.")
        return
    view = pick_view(logged)
    st.caption("Click a point to open the groups of that run and step. Click a name in a legend to hide its run.")
    is_live = any(run.status in LIVE for run in picked)
    st.fragment(live, run_every="2s" if is_live else None)(ids, view, is_live)
    draw_config_differences(picked)


plot_library()
st.title("Compare")
page()
