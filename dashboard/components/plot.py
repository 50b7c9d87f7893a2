"""Drawing a plotly figure so that zoom and hidden series outlive new data, and a click comes back."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

_HERE = Path(__file__).parent
_KEPT = "plots_kept"

# The library goes to the browser once per page, out of the plotly package: nothing is fetched from elsewhere.
_library = st.components.v2.component(
    "grpo_lab_plot_library",
    js=files("plotly").joinpath("package_data/plotly.min.js").read_text("utf-8") + "\nexport default () => {}\n",
    css=(_HERE / "plot.css").read_text("utf-8"),
    isolate_styles=False,
)
_plot = st.components.v2.component(
    "grpo_lab_plot", js=(_HERE / "plot.js").read_text("utf-8"), html="", isolate_styles=False
)


def plot_library() -> None:
    """Load what `plot` needs in the browser; call once on a page, outside of fragments."""
    _library(key="plot_library", height=1)


@dataclass(frozen=True, slots=True)
class Pick:
    """A point that was clicked: the uid of its trace and its `customdata`, a step where steps are drawn."""

    series: str
    value: int


def plot(key: str, version: Hashable, draw: Callable[[], go.Figure]) -> Pick | None:
    """Show a figure and return the point that was just clicked, or None.

    The figure is drawn anew only where `version` differs from that of the last call with this key.
    """
    kept: dict[str, tuple[Hashable, str, int]] = st.session_state.setdefault(_KEPT, {})
    if key not in kept or kept[key][0] != version:
        figure = draw()
        kept[key] = version, str(figure.to_json(remove_uids=False)), int(figure.layout.height)
    _, spec, height = kept[key]
    result = _plot(key=f"plot:{key}", data={"figure": spec}, height=height, on_pick_change=_seen)
    picked = result.pick
    return Pick(str(picked["series"]), int(picked["value"])) if picked else None


def _seen() -> None:
    """Be the callback without which a component reports nothing."""
