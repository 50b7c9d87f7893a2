"""Figures of one or several metrics of a run as lines over the steps."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.figures import style
from dashboard.figures.points import Points, points
from engine.metrics import metric_of

MIB = 2.0**20


def heading(name: str) -> str:
    """Return what a chart of this metric is called where others stand beside it."""
    title = metric_of(name).title
    for beginning, word in (("eval/validation/", "Held-out"), ("eval/test/", "Test")):
        if name.startswith(beginning):
            return f"{word} {title[0].lower()}{title[1:]}"
    return title


def line(
    drawn: Points,
    *,
    name: str,
    title: str,
    unit: str,
    colour: str,
    dash: str = "solid",
    width: float = 2,
    scale: float = 1.0,
) -> go.Scatter:
    """Return a line that can be clicked: every point is a marker, visible where the line alone would not be."""
    few = np.isfinite(drawn.y).sum() <= 40
    return go.Scatter(
        x=drawn.x,
        y=drawn.y / scale,
        customdata=steps_of(drawn),
        name=style.plain(title),
        uid=name,
        mode="lines+markers",
        line={"color": colour, "width": width, "dash": dash},
        marker={"color": colour, "size": 6 if few else lone(drawn.y)},
        hovertemplate=f"{style.number_format(unit)}<extra>{style.plain(title)}</extra>",
        connectgaps=False,
    )


def steps_of(drawn: Points) -> NDArray[np.int64]:
    """Return the step of every point, which a click hands back; -1 in a gap.

    An optimizer step lies between whole numbers and belongs to the step above it.
    """
    return np.where(np.isnan(drawn.steps), -1, np.ceil(drawn.steps)).astype(np.int64)


def lone(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return marker sizes: visible for points without a neighbour, which no line shows."""
    finite = np.isfinite(y)
    before = np.concatenate([[False], finite[:-1]])
    after = np.concatenate([finite[1:], [False]])
    return np.where(finite & ~before & ~after, 5.0, 0.0)


def share_range(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return an axis for shares that shows small ones too: from 0 to a little above the greatest."""
    greatest = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    top = min(1.0, max(0.05, 1.25 * greatest)) if greatest <= 1 else greatest
    return -0.02 * top, 1.04 * top


def metric_figure(
    frame: pd.DataFrame,
    names: Sequence[str],
    *,
    colours: Mapping[str, str] | None = None,
    start_line: bool = False,
    from_zero: bool = True,
    height: int = style.HEIGHT,
) -> go.Figure:
    """Return the named metrics of one run as lines; they share the unit of the first.

    `start_line` marks the first finite value, to compare a run with its own start. `from_zero` keeps 0 on the axis.
    """
    metrics = [metric_of(name) for name in names]
    unit = metrics[0].unit
    shown = "MiB" if unit == "bytes" else unit
    figure = style.sheet(y_title="" if shown == "share" else shown, percent=shown == "share", height=height)
    palette = dict(zip(names, (style.FIRST, style.THIRD, style.SECOND, style.QUIET), strict=False)) | dict(
        colours or {}
    )
    lost, first = 0, None
    for metric in metrics:
        drawn = points(frame, metric.name)
        lost += drawn.non_finite
        if len(drawn.x):
            figure.add_trace(
                line(
                    drawn,
                    name=metric.name,
                    title=metric.title,
                    unit=shown,
                    colour=palette.get(metric.name, style.QUIET),
                    scale=MIB if unit == "bytes" else 1.0,
                )
            )
            finite = drawn.y[np.isfinite(drawn.y)]
            first = finite[0] if first is None and len(finite) else first
    if not figure.data:
        return style.say(figure, "Nothing logged yet.")
    if start_line and first is not None:
        figure.add_hline(y=first, line={"color": style.QUIET, "width": 1, "dash": "dot"}, name="start")
        figure.add_annotation(
            text="start", x=1, y=first, xref="paper", xanchor="right", yanchor="bottom", showarrow=False, name="start"
        )
    if len(figure.data) == 1:
        style.without_legend(figure)
    values = np.concatenate([trace.y for trace in figure.data])
    if unit == "share":
        figure.update_yaxes(range=share_range(values))
    elif from_zero and not (values < 0).any():
        figure.update_yaxes(rangemode="tozero")
    return style.remark(figure, style.not_drawn(lost))
