"""Curves of several runs over one another, and the tables beneath."""

from collections.abc import Sequence
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components.charts import definitions
from dashboard.components.compare_controls import View
from dashboard.components.follow import Followed, follow
from dashboard.components.plot import plot
from dashboard.components.run_table import accuracy_help
from dashboard.components.status import status_text
from dashboard.components.swatch import swatch
from dashboard.figures.lines import heading
from dashboard.figures.overlay import RunLine, overlay_figure, run_of
from dashboard.frames.axes import NEEDED, TITLES, with_x
from dashboard.frames.comparison import FINAL, config_differences, final_table, labels
from dashboard.frames.smoothing import smoothed
from engine.metrics import metric_of
from engine.store.database import Database
from engine.store.records import Run


def compared(db: Database, runs: Sequence[Run], view: View) -> Followed:
    """Return the metrics that the charts and the table need."""
    names = {*view.metrics, *FINAL, *NEEDED[view.axis]}
    return follow(db, runs, sorted(names), scope="compare")


def draw_overlays(runs: Sequence[Run], view: View, followed: Followed) -> tuple[str, int] | None:
    """Draw one chart per metric; return run and step of the point that was just clicked, or None."""
    if not view.metrics:
        st.info("Choose a metric to draw.")
        return None
    names = labels(runs)
    lines = [RunLine(run.run_id, names[run.run_id], run.ordinal) for run in runs]
    version = (followed.version, view, tuple(lines))
    clicked = []
    with st.container(key="chart_grid_compare"):
        for name in view.metrics:
            with st.container(border=True, height="stretch"):
                st.markdown(f"**{heading(name)}**", help=definitions([name]))
                draw = partial(_overlay, followed.frame, lines, name, view)
                clicked.append(plot(f"compare:{name}", version, draw))
    picked = next((pick for pick in clicked if pick and pick.value > 0), None)
    return (run_of(picked.series), picked.value) if picked else None


def _overlay(frame: pd.DataFrame, lines: Sequence[RunLine], name: str, view: View) -> go.Figure:
    wanted = frame[frame["name"].isin([name, *NEEDED[view.axis]])]
    placed = with_x(wanted, view.axis)
    rows = smoothed(placed[placed["name"] == name], view.smoothing, view.amount)
    return overlay_figure(rows, lines, name, x_title=TITLES[view.axis])


def draw_final_table(runs: Sequence[Run], followed: Followed) -> None:
    """Draw how the runs stand, one row each."""
    table = final_table(runs, followed.frame)
    table.insert(0, "line", [swatch(run.ordinal) for run in runs])
    table["status"] = [status_text(run.status) for run in runs]
    for share in ("first", "best", "last"):
        table[share] = 100 * table[share].astype("float64")
    column = st.column_config
    measured = accuracy_help(runs)
    st.subheader("How they stand")
    st.dataframe(
        table,
        hide_index=True,
        key="final_table",
        placeholder="–",
        column_config={
            "line": column.ImageColumn("", width=44, help="The run's line in the charts"),
            "run": column.TextColumn("Run", width=230),
            "status": column.TextColumn("Status", width=105, help="A run that did not succeed is marked in its name"),
            "seed": column.NumberColumn("Seed", width=55, format="%d"),
            "steps": column.NumberColumn("Steps", width=65, help="Last finished step"),
            "first": column.NumberColumn("First", width=75, format="%.1f %%", help=f"{measured}; the start policy"),
            "best": column.NumberColumn("Best", width=75, format="%.1f %%", help=f"{measured}; the best so far"),
            "last": column.NumberColumn("Last", width=75, format="%.1f %%", help=f"{measured}; the newest"),
            "reward": column.NumberColumn("Reward", width=80, format="%.3f", help=_newest("reward")),
            "entropy": column.NumberColumn("Entropy", width=80, format="%.3f", help=_newest("entropy")),
            FINAL[2]: column.NumberColumn("Length", width=75, format="%.1f", help=_newest(FINAL[2])),
            "minutes": column.NumberColumn("Minutes", width=80, format="%.1f", help="Time of all attempts"),
        },
    )


def draw_config_differences(runs: Sequence[Run]) -> None:
    """Draw the fields in which the configs differ."""
    st.subheader("What differs in their configs")
    if len(runs) < 2:
        st.caption("Choose a second run to see in which fields they differ.")
        return
    differences = config_differences(runs)
    if not len(differences):
        st.caption("Nothing: every field is equal, the seed included.")
        return
    st.dataframe(differences, hide_index=True, key="config_differences", width="content")


def _newest(name: str) -> str:
    metric = metric_of(name)
    unit = f" In {metric.unit}." if metric.unit else ""
    return f"At the last step: {metric.sentence[0].lower()}{metric.sentence[1:]}{unit}"
