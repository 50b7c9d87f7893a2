"""What all figures share: their empty sheet, colours of kinds and phases, and how text gets into them."""

from html import escape

import plotly.graph_objects as go

FAINT = "rgba(128, 132, 140, 0.18)"
QUIET = "#8a9099"
FIRST, SECOND, THIRD = "#367ad1", "#1b9a6c", "#d9822b"
GROUP_COLOURS = {
    "groups/all_correct": "#1b9a6c",
    "groups/mixed": "#5b8fd9",
    "groups/all_wrong": "#d1603d",
    "groups/tied": "#9aa0a8",
}
PHASE_COLOURS = {
    "time/rollout": "#367ad1",
    "time/score": "#8fb8ea",
    "time/update": "#d9822b",
    "time/evaluate": "#1b9a6c",
    "time/checkpoint": "#b3279c",
    "time/write": "#9aa0a8",
}
HEIGHT = 270


def sheet(*, y_title: str = "", x_title: str = "step", percent: bool = False, height: int = HEIGHT) -> go.Figure:
    """Return a figure without traces, in the look of all others.

    `uirevision` never changes, so zoom and hidden series outlive new data.
    """
    figure = go.Figure()
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 34, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "Source Sans, Source Sans Pro, system-ui, sans-serif", "size": 12, "color": QUIET},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        showlegend=True,
        hovermode="x unified",
        dragmode="zoom",
        uirevision="kept",
        template=go.layout.Template(),
    )
    figure.update_xaxes(title=axis_title(x_title), showgrid=False, zeroline=False, automargin=True, linecolor=FAINT)
    figure.update_xaxes(ticks="outside", tickcolor=FAINT, hoverformat=",.6~g")
    figure.update_xaxes(spikecolor=QUIET, spikethickness=1, spikedash="dot")
    figure.update_yaxes(title=axis_title(y_title), gridcolor=FAINT, zeroline=False, automargin=True)
    figure.update_yaxes(exponentformat="e")
    if percent:
        figure.update_yaxes(tickformat=".0%")
    return figure


def without_legend(figure: go.Figure) -> go.Figure:
    """Drop the legend and the room kept for it; return the figure."""
    return figure.update_layout(showlegend=False, margin={"t": 10})


def axis_title(text: str) -> dict[str, object]:
    """Return a small axis title, close to its axis."""
    return {"text": plain(text), "font": {"size": 12}, "standoff": 6}


def say(figure: go.Figure, text: str) -> go.Figure:
    """Add a sentence in the middle of the sheet (for "nothing yet") and return the figure."""
    figure.add_annotation(
        text=plain(text), x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font={"size": 13}, name="nothing"
    )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.update_layout(showlegend=False)
    return figure


def remark(figure: go.Figure, text: str) -> go.Figure:
    """Add a small remark beneath the title of the x axis, where it covers no data, and return the figure."""
    if text:
        title = figure.layout.xaxis.title.text or ""
        figure.update_xaxes(title_text=f"{title}<br><i>{plain(text)}</i>")
    return figure


def not_drawn(count: int) -> str:
    """Say how many points could not be drawn; "" for none."""
    return f"{count:,} non-finite point{'' if count == 1 else 's'} not drawn" if count else ""


def plain(text: str) -> str:
    """Return text so that plotly shows it as it is: it would read tags, entities and `$…$` otherwise."""
    return escape(text, quote=False).replace("$", "&#36;")


def number_format(unit: str) -> str:
    """Return the hover part for a value in this unit, with the unit."""
    if unit == "share":
        return "%{y:.1%}"
    if unit == "tokens":
        return "%{y:,.6~g} tokens"
    return f"%{{y:.4~g}} {unit}".rstrip()
