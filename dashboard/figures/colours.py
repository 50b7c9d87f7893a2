"""The colour and the line style of a run: the same on every page, decided by its ordinal.

The ten hues were searched for the largest least distance (OKLab) as seen with full colour vision and with
protanopia, deuteranopia and tritanopia, at a contrast that carries lines and swatches on white and on #14171a.
Neighbouring ordinals get the most distant ones. After ten runs the dash changes as well.
"""

COLOURS = (
    "#367ad1",
    "#d32704",
    "#177820",
    "#f4741e",
    "#b3279c",
    "#3fabdc",
    "#90696a",
    "#b29a7d",
    "#8080fc",
    "#be6d9e",
)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def run_colour(ordinal: int) -> str:
    """Return the colour (`#rrggbb`) of the run with this ordinal (1, 2, 3, …)."""
    return COLOURS[(ordinal - 1) % len(COLOURS)]


def run_dash(ordinal: int) -> str:
    """Return plotly's name of the line style of the run with this ordinal."""
    return DASHES[(ordinal - 1) // len(COLOURS) % len(DASHES)]
