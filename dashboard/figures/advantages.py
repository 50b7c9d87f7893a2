"""The figure of a group's advantages."""

from collections.abc import Sequence

import plotly.graph_objects as go

from dashboard.figures import style

UP, DOWN = "#1b9a6c", "#d1603d"


def advantages_figure(advantages: Sequence[float | None], labels: Sequence[str]) -> go.Figure:
    """Return one signed bar per completion: pushed up to the right, pushed down to the left.

    A completion without an advantage has no bar and says so.
    """
    height = 70 + 26 * len(advantages)
    figure = style.sheet(x_title="advantage", height=height)
    if not advantages:
        return style.say(figure, "This group has no completions.")
    names = [style.plain(label) for label in labels]
    figure.add_trace(
        go.Bar(
            x=list(advantages),
            y=names,
            orientation="h",
            uid="advantage",
            customdata=list(range(len(advantages))),
            marker={"color": [UP if (value or 0) > 0 else DOWN for value in advantages], "line": {"width": 0}},
            text=["none" if value is None else f"{value:+.3f}" if value else "0" for value in advantages],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x:+.4f}<extra>%{y}</extra>",
        )
    )
    for label, value in zip(names, advantages, strict=True):
        if value is None:
            figure.add_annotation(text="no advantage", x=0, y=label, xanchor="left", showarrow=False, name="none")
    widest = max((abs(value) for value in advantages if value is not None), default=0.0) or 1.0
    figure.update_layout(showlegend=False, hovermode="closest", bargap=0.35, margin={"t": 6})
    # Room beside the bars for their numbers, in a narrow column too.
    figure.update_xaxes(range=[-1.6 * widest, 1.6 * widest], zeroline=True, zerolinecolor=style.QUIET)
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    return figure
