"""The figure of one metric for several runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures import style
from dashboard.figures.colours import run_colour, run_dash
from dashboard.figures.lines import MIB, lone, share_range, steps_of
from dashboard.figures.points import Points, drawable
from engine.metrics import metric_of

# More names than this leave no room for the curves; the table beneath the charts then is the legend.
LEGEND_LIMIT = 6


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as it stands in a legend: its label may hold any text."""

    run_id: str
    label: str
    ordinal: int


def overlay_figure(
    frame: pd.DataFrame,
    lines: Sequence[RunLine],
    name: str,
    *,
    x_title: str = "step",
    height: int = 320,
) -> go.Figure:
    """Return one metric of several runs.

    `frame` has the columns run_id, step, x, value and, where the line is smoothed, smooth; it holds this metric only.
    A smoothed line lies over its raw one, which stays faintly visible.
    """
    metric = metric_of(name)
    scale, unit = (MIB, "MiB") if metric.unit == "bytes" else (1.0, metric.unit)
    figure = style.sheet(
        y_title="" if unit == "share" else unit, x_title=x_title, percent=unit == "share", height=height
    )
    lost = 0
    traces = []
    of_run = dict(iter(frame.groupby("run_id"))) if len(frame) else {}
    for run in lines:
        if run.run_id not in of_run:
            continue
        rows = of_run[run.run_id].sort_values("step")
        raw = drawable(rows["step"], rows["value"] / scale, rows["x"])
        lost += raw.non_finite
        smooth = drawable(rows["step"], rows["smooth"] / scale, rows["x"]) if "smooth" in rows else None
        if smooth is not None:
            traces.append(_trace(raw, run, unit, faint=True))
        traces.append(_trace(raw if smooth is None else smooth, run, unit, faint=False))
    figure.add_traces(traces)
    if not figure.data:
        return style.say(figure, "None of these runs has logged this.")
    values = np.concatenate([trace.y for trace in figure.data])
    if unit == "share":
        figure.update_yaxes(range=share_range(values))
    elif not (values < 0).any():
        figure.update_yaxes(rangemode="tozero")
    if len(lines) > LEGEND_LIMIT:
        style.without_legend(figure)
    return style.remark(figure, style.not_drawn(lost))


def run_of(uid: str) -> str:
    """Return the id of the run whose trace has this uid."""
    return uid.partition(":")[0]


def _trace(drawn: Points, run: RunLine, unit: str, *, faint: bool) -> go.Scatter:
    colour = run_colour(run.ordinal)
    few = np.isfinite(drawn.y).sum() <= 40
    return go.Scatter(
        x=drawn.x,
        y=drawn.y,
        customdata=steps_of(drawn),
        uid=f"{run.run_id}:{'raw' if faint else 'line'}",
        name=style.plain(run.label),
        legendgroup=run.run_id,
        showlegend=not faint,
        opacity=0.28 if faint else 1,
        mode="lines+markers",
        line={"color": colour, "width": 1 if faint else 2, "dash": "solid" if faint else run_dash(run.ordinal)},
        marker={"color": colour, "size": 5 if few and not faint else lone(drawn.y)},
        hoverinfo="skip" if faint else None,
        hovertemplate=None if faint else f"{style.number_format(unit)}<extra>{style.plain(run.label)}</extra>",
        connectgaps=False,
    )
