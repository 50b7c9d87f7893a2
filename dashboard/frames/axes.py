"""What curves are laid against: steps, tokens, or time."""

from typing import Literal

import numpy as np
import pandas as pd

Axis = Literal["step", "tokens", "minutes"]
TITLES: dict[Axis, str] = {"step": "step", "tokens": "tokens sampled", "minutes": "minutes of training"}
NEEDED: dict[Axis, tuple[str, ...]] = {"step": (), "tokens": ("num_tokens",), "minutes": ("step_time",)}


def with_x(frame: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """Return a tidy metric frame with a column `x`: where each value stands on the axis.

    Before a run's first step x is 0. A value whose step has no known x is left out.
    """
    if axis == "step":
        return frame.assign(x=frame["step"].astype(float))
    rows = frame[frame["name"] == NEEDED[axis][0]].sort_values(["run_id", "step"])
    rows = rows[np.isfinite(rows["value"])]
    x = rows["value"] if axis == "tokens" else rows.groupby("run_id")["value"].cumsum() / 60
    places = pd.DataFrame({"run_id": rows["run_id"], "step": rows["step"], "x": x.astype(float)})
    placed = frame.merge(places, on=["run_id", "step"], how="left")
    first = placed["run_id"].map(places.groupby("run_id")["step"].min().to_dict()).astype(float)
    placed["x"] = placed["x"].mask(placed["step"].astype(float) < first, 0.0)
    return placed[placed["x"].notna()].reset_index(drop=True)
