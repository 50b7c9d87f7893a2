"""The figure of pass@k over the number of answers k."""

import pandas as pd
import plotly.graph_objects as go

from dashboard.figures import style
from dashboard.figures.colours import COLOURS, DASHES


def pass_figure(frame: pd.DataFrame, *, height: int = style.HEIGHT) -> go.Figure:
    """Return one curve per evaluation with its interval as a band, k on a logarithmic axis; majority@k as a star.

    `frame` has the columns curve (a label, any text), k, share, low, high and majority, as `pass_curve` gives them.
    """
    figure = style.sheet(x_title="answers per problem, k", percent=True, height=height)
    for number, (label, rows) in enumerate(frame.groupby("curve", sort=False) if len(frame) else ()):
        colour, name = COLOURS[number % len(COLOURS)], style.plain(str(label))
        dash = DASHES[number // len(COLOURS) % len(DASHES)]
        figure.add_trace(_band(rows, colour, group=str(number)))
        figure.add_trace(
            go.Scatter(
                x=rows["k"].to_numpy(),
                y=rows["share"].to_numpy(),
                customdata=rows[["low", "high"]].to_numpy(),
                uid=f"pass-{number}",
                name=name,
                legendgroup=str(number),
                mode="lines+markers",
                line={"color": colour, "width": 2, "dash": dash},
                marker={"color": colour, "size": 6},
                hovertemplate="pass@%{x}: %{y:.1%} (%{customdata[0]:.1%} to %{customdata[1]:.1%})"
                f"<extra>{name}</extra>",
            )
        )
        voted = rows[rows["majority"].notna()]
        if len(voted):
            figure.add_trace(
                go.Scatter(
                    x=voted["k"].to_numpy(),
                    y=voted["majority"].to_numpy(),
                    uid=f"majority-{number}",
                    name="majority@k",
                    legendgroup="majority",
                    showlegend=not any(trace.name == "majority@k" for trace in figure.data),
                    mode="markers",
                    marker={"color": colour, "size": 11, "symbol": "star"},
                    hovertemplate=f"majority@%{{x}}: %{{y:.1%}}<extra>{name}</extra>",
                )
            )
    if not figure.data:
        return style.say(figure, "No answers to draw.")
    ticks = sorted({int(k) for k in frame["k"]})
    figure.update_xaxes(type="log", tickmode="array", tickvals=ticks, ticktext=[f"{k:,}" for k in ticks])
    figure.update_yaxes(range=[-0.02, 1.04])
    return figure.update_layout(hovermode="closest")


def _band(rows: pd.DataFrame, colour: str, *, group: str) -> go.Scatter:
    """Return the interval as one closed area: along its lower ends, back along its upper ones."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return go.Scatter(
        x=[*rows["k"], *rows["k"][::-1]],
        y=[*rows["low"], *rows["high"][::-1]],
        uid=f"band-{group}",
        legendgroup=group,
        showlegend=False,
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=f"rgba({red}, {green}, {blue}, 0.14)",
        hoverinfo="skip",
    )
