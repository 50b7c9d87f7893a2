"""The line of a run in a chart, as a small picture beside its name."""

import base64

from dashboard.figures.colours import run_colour, run_dash

_DASHES = {"solid": "none", "dash": "8 4", "dot": "2 4", "dashdot": "9 3 2 3", "longdash": "14 4"}


def swatch(ordinal: int) -> str:
    """Return a picture (a data URI) with the colour and dash of the run with this ordinal."""
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="20"><line x1="2" y1="10" x2="30" y2="10" '
        f'stroke="{run_colour(ordinal)}" stroke-width="5" stroke-dasharray="{_DASHES[run_dash(ordinal)]}"/></svg>'
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()}"
