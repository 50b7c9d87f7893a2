"""Stacked figures: what became of the groups, and where the time went."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures import style
from dashboard.figures.points import segments, table
from engine.metrics import metric_of

# A legend gives every name the room of the longest.
_SHORT = {"time/write": "Hand-over"}


def groups_figure(frame: pd.DataFrame, *, height: int = style.HEIGHT) -> go.Figure:
    """Return the shares of groups all right, mixed, all wrong and tied as stacked areas.

    A step without one of them is left out, never drawn as zero.
    """
    names = tuple(style.GROUP_COLOURS)
    wide, size = table(frame, names)
    lost = len(wide)
    wide = wide.dropna()
    lost -= len(wide)
    figure = style.sheet(percent=True, height=height)
    for number, stretch in enumerate(segments(wide.index)):
        part = wide.iloc[stretch]
        for name in part.columns:
            colour = style.GROUP_COLOURS[name]
            figure.add_trace(
                go.Scatter(
                    x=part.index.to_numpy(dtype=float),
                    y=part[name].to_numpy(),
                    customdata=np.asarray(part.index, dtype=int),
                    uid=f"{name}-{number}",
                    name=metric_of(name).title,
                    legendgroup=name,
                    showlegend=number == 0 and bool((wide[name] > 0).any()),
                    stackgroup=f"stretch-{number}",
                    mode="lines",
                    line={"width": 0.5, "color": colour},
                    fillcolor=colour,
                    hovertemplate=f"%{{y:.1%}}<extra>{metric_of(name).title}</extra>",
                )
            )
    if not figure.data:
        return style.say(figure, "Nothing logged yet.")
    figure.update_yaxes(range=[0, 1])
    return _averaged(figure, size, style.not_drawn(lost))


def phases_figure(frame: pd.DataFrame, *, height: int = style.HEIGHT, limit: int = 500) -> go.Figure:
    """Return the seconds that each step spent in each phase, as stacked bars; a phase not timed has no bar."""
    wide, size = table(frame, tuple(style.PHASE_COLOURS), limit=limit)
    figure = style.sheet(y_title="s per step", height=height)
    for name, colour in _present(wide, style.PHASE_COLOURS).items():
        values = wide[name].dropna()
        figure.add_trace(
            go.Bar(
                x=values.index.to_numpy(dtype=float),
                y=values.to_numpy(),
                customdata=np.asarray(values.index, dtype=int),
                uid=name,
                name=_SHORT.get(name, metric_of(name).title),
                marker={"color": colour, "line": {"width": 0}},
                hovertemplate=f"%{{y:.3~g}} s<extra>{metric_of(name).title}</extra>",
            )
        )
    if not figure.data:
        return style.say(figure, "Nothing logged yet.")
    figure.update_layout(barmode="stack", bargap=0)
    return _averaged(figure, size)


def _present(wide: pd.DataFrame, colours: Mapping[str, str]) -> dict[str, str]:
    return {name: colour for name, colour in colours.items() if name in wide and wide[name].notna().any()}


def _averaged(figure: go.Figure, size: int, more: str = "") -> go.Figure:
    words = [f"each point is the mean of {size} steps"] if size > 1 else []
    return style.remark(figure, "; ".join([*words, *([more] if more else [])]))
