"""The figure of a regrading: how many answers went from each verdict to each."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from dashboard.figures import style

NAMES = ("correct", "wrong", "unreadable", "not graded")
_HEIGHT = 250
_SAME, _CHANGED = "rgba(128, 132, 140, {})", "rgba(217, 130, 43, {})"


def matrix_figure(matrix: Sequence[Sequence[int]], *, height: int = _HEIGHT) -> go.Figure:
    """Return stored verdicts (rows) against new ones (columns), each field with its count; what changed is coloured.

    The colour grows with the logarithm of the count, so that a few flips among thousands are seen.
    """
    figure = style.without_legend(style.sheet(x_title="verdict now", y_title="verdict stored", height=height))
    most = max((count for row in matrix for count in row), default=0)
    if not most:
        return style.say(figure, "Nothing graded yet.")
    for diagonal, colour in ((True, _SAME), (False, _CHANGED)):
        # None leaves a field to the other trace.
        depth = [
            [
                _depth(count, most) if (row == column) == diagonal and count else None
                for column, count in enumerate(counts)
            ]
            for row, counts in enumerate(matrix)
        ]
        figure.add_trace(
            go.Heatmap(
                x=list(NAMES),
                y=list(NAMES),
                z=depth,
                zmin=0,
                zmax=1,
                customdata=None,
                text=[[f"{count:,}" for count in counts] for counts in matrix],
                uid="same" if diagonal else "changed",
                colorscale=[[0, colour.format(0.08)], [1, colour.format(0.75)]],
                showscale=False,
                xgap=2,
                ygap=2,
                hovertemplate="stored %{y}, now %{x}: %{text}<extra></extra>",
            )
        )
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            figure.add_annotation(
                x=NAMES[column],
                y=NAMES[row],
                text=f"{count:,}" if count else "·",
                showarrow=False,
                font={"size": 14 if count else 12, "color": None if count else style.QUIET},
                name=f"{NAMES[row]}→{NAMES[column]}",
            )
    figure.update_layout(hovermode="closest", dragmode=False)
    figure.update_xaxes(side="top", ticks="", fixedrange=True, showspikes=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", fixedrange=True)
    return figure


def _depth(count: int, most: int) -> float:
    return math.log1p(count) / math.log1p(most)
