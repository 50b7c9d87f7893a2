"""The figure of completion lengths: mean within its band, and the share that the limit cut off."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures import style
from dashboard.figures.lines import line
from dashboard.figures.points import points, segments

MEAN, LEAST, GREATEST = (f"completions/{part}_length" for part in ("mean", "min", "max"))
CLIPPED = "completions/clipped_ratio"


def length_figure(frame: pd.DataFrame, *, height: int = style.HEIGHT) -> go.Figure:
    """Return the mean completion length in its min–max band above the share of truncated completions."""
    figure = style.sheet(height=height)
    lost = _band(figure, frame)
    mean, clipped = points(frame, MEAN), points(frame, CLIPPED)
    if len(mean.x):
        figure.add_trace(line(mean, name=MEAN, title="Mean length", unit="tokens", colour=style.FIRST))
    if len(clipped.x):
        trace = line(clipped, name=CLIPPED, title="Truncated", unit="share", colour=style.THIRD, width=1.5)
        figure.add_trace(trace.update(yaxis="y2"))
    if not figure.data:
        return style.say(figure, "Nothing logged yet.")
    quiet = {"gridcolor": style.FAINT, "zeroline": False, "automargin": True}
    figure.update_layout(
        yaxis={**quiet, "domain": [0.36, 1], "title": style.axis_title("tokens"), "rangemode": "tozero"},
        yaxis2={**quiet, "domain": [0, 0.24], "tickformat": ".0%", "range": [-0.04, 1.04], "nticks": 3, "anchor": "x"},
    )
    figure.update_xaxes(anchor="y2")
    return style.remark(figure, style.not_drawn(lost + mean.non_finite + clipped.non_finite))


def _band(figure: go.Figure, frame: pd.DataFrame) -> int:
    low, high = points(frame, LEAST), points(frame, GREATEST)
    both = pd.DataFrame({"low": pd.Series(low.y, low.steps), "high": pd.Series(high.y, high.steps)}).dropna()
    for number, stretch in enumerate(segments(both.index)):
        part = both.iloc[stretch]
        for edge, title, fill in (("low", "Shortest", None), ("high", "Longest", "tonexty")):
            figure.add_trace(
                go.Scatter(
                    x=part.index.to_numpy(dtype=float),
                    y=part[edge].to_numpy(),
                    customdata=np.asarray(part.index, dtype=int),
                    uid=f"{edge}-{number}",
                    name=title if edge == "low" else "Shortest to longest",
                    legendgroup="band",
                    showlegend=edge == "high" and number == 0,
                    mode="lines",
                    line={"color": "rgba(54, 122, 209, 0.35)", "width": 1},
                    fill=fill,
                    fillcolor="rgba(54, 122, 209, 0.14)",
                    hovertemplate=f"%{{y:,.6~g}} tokens<extra>{title}</extra>",
                )
            )
    return low.non_finite + high.non_finite
