"""Run: one run live, in charts and in every detail."""

import streamlit as st

from dashboard.components.charts import CHARTS, UPDATE_CHARTS, draw_charts, logged_charts
from dashboard.components.evaluations_tab import evaluations_tab
from dashboard.components.follow import Followed, follow, follow_updates
from dashboard.components.grader import grader_caption
from dashboard.components.markdown import escape_markdown
from dashboard.components.navigation import open_groups
from dashboard.components.plot import plot_library
from dashboard.components.regrade_tab import regrade_tab
from dashboard.components.run_header import run_header
from dashboard.components.run_picker import pick_run
from dashboard.components.run_tabs import checkpoints_tab, config_tab, events_tab, every_metric, log_tab
from dashboard.data import store
from engine.config import RunConfig
from engine.errors import ConfigError
from engine.store.reads import get_run
from engine.store.records import Run
from engine.store.status import LIVE

db = store()


def active(run: Run) -> bool:
    return run.status in LIVE or run.status == "queued"


def now(run: Run) -> Run:
    return get_run(db, run.run_id) or run


def head(run: Run) -> None:
    current = now(run)
    run_header(db, current)
    if active(run) and not active(current):
        st.rerun()  # The whole page, so that nothing refreshes any more.


def config_of(run: Run) -> RunConfig | None:
    try:
        return run.run_config()
    except ConfigError:
        return None


def followed(run: Run) -> Followed:
    return follow(db, [now(run)], scope=run.run_id)


def charts(run: Run) -> None:
    if run.total_steps == 0:
        st.info("This run has no steps, so it has no curves; what it measured is in the tab Evaluations.")
        return
    data = followed(run)
    if not len(data.frame) and not active(run):
        st.info("This run ended before it logged anything; see the tabs Log and Events.")
        return
    st.caption("Click a point to open the groups of that step. Drag to zoom, double-click to zoom out.")
    config = config_of(run)
    step = draw_charts(logged_charts(CHARTS, data), data, run.run_id, config)
    updates = follow_updates(db, now(run), scope=run.run_id)
    if len(updates.frame):
        st.subheader(
            "Optimizer steps",
            help="Each point is one optimizer step; the last of a rollout batch lies on "
            "its step, the others before it.",
        )
        at_update = draw_charts(logged_charts(UPDATE_CHARTS, updates), updates, f"{run.run_id}_updates", config)
        step = step if step is not None else at_update
    if step is not None:
        open_groups(run.run_id, step)


def every(run: Run) -> None:
    step = every_metric(followed(run), run.run_id)
    if step is not None:
        open_groups(run.run_id, step)


def measured(run: Run) -> None:
    evaluations_tab(db, now(run))


def log(run: Run) -> None:
    log_tab(db, now(run))


def happened(run: Run) -> None:
    events_tab(db, now(run))


def settings(run: Run) -> None:
    grader_caption(db, run)
    config_tab(run)


def again(run: Run) -> None:
    regrade_tab(db, now(run))


def saved(run: Run) -> None:
    checkpoints_tab(db, now(run))


def page(run: Run) -> None:
    st.title(escape_markdown(run.name))
    refresh = "1.5s" if active(run) else None
    st.fragment(head, run_every=refresh)(run)
    bodies = {
        "Charts": charts,
        "Evaluations": measured,
        "Every metric": every,
        "Log": log,
        "Config": settings,
        "Checkpoints": saved,
        "Events": happened,
        "Regrade": again,
    }
    key = "run_tab"
    if run.total_steps == 0:
        bodies = {"Evaluations": measured} | bodies
        key = "run_tab_without_steps"
    tabs = st.tabs(list(bodies), key=key, on_change="rerun")
    for tab, (title, body) in zip(tabs, bodies.items(), strict=True):
        if tab.open:
            with tab:
                st.fragment(body, run_every=None if title in ("Config", "Regrade") else refresh)(run)


plot_library()
chosen = pick_run(db)
if chosen is not None:
    page(chosen)
