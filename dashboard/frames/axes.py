"""What curves are laid against: steps, tokens, or time."""

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Axis = Literal["step", "tokens", "minutes"]
TITLES: dict[Axis, str] = {"step": "step", "tokens": "tokens sampled", "minutes": "minutes of training"}
NEEDED: dict[Axis, tuple[str, ...]] = {"step": (), "tokens": ("num_tokens",), "minutes": ("step_time",)}


def with_x(frame: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """Return a tidy metric frame with a column `x`: where each value stands on the axis.

    Before a run's first step x is 0. A value whose step has no known x is left out.
    """
    if axis == "step":
        return frame.assign(x=frame["step"].astype(float))
    x = pd.Series(np.nan, index=frame.index)
    for _, run in frame.groupby("run_id"):
        steps, places = _places(run, axis)
        if len(steps):
            at = np.searchsorted(steps, run["step"]).clip(max=len(steps) - 1)
            known = np.where(steps[at] == run["step"], places[at], np.nan)
            x.loc[run.index] = np.where(run["step"] < steps[0], 0.0, known)
    return frame.assign(x=x)[x.notna()].reset_index(drop=True)


def _places(run: pd.DataFrame, axis: Axis) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the steps of one run that have a place, ascending, and their places."""
    rows = run[(run["name"] == NEEDED[axis][0]) & np.isfinite(run["value"])].sort_values("step")
    values = rows["value"].to_numpy(dtype=np.float64)
    return rows["step"].to_numpy(dtype=np.int64), values if axis == "tokens" else values.cumsum() / 60
