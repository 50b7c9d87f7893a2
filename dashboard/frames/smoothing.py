"""Smoothing of curves, on every value that was logged (so before any down-sampling)."""

from typing import Literal

import numpy as np
import pandas as pd

Smoothing = Literal["none", "ema", "rolling"]


def ema(values: pd.Series, weight: float) -> pd.Series:
    """Return the exponential moving average without start-up bias; `weight` (0 to below 1) is that of the past.

    A non-finite value is skipped: the average passes over it, and has no value there itself.
    """
    finite = values.where(np.isfinite(values))
    smooth = finite.ewm(alpha=1 - weight, adjust=True, ignore_na=True).mean()
    return smooth.where(finite.notna())


def rolling(values: pd.Series, window: int) -> pd.Series:
    """Return the mean of the last `window` values, of those that are finite."""
    finite = values.where(np.isfinite(values))
    return finite.rolling(window, min_periods=1).mean().where(finite.notna())


def smoothed(frame: pd.DataFrame, how: Smoothing, amount: float) -> pd.DataFrame:
    """Return a tidy metric frame with a column `smooth`, smoothed per run and metric; unchanged for "none"."""
    if how == "none" or not len(frame):
        return frame
    ordered = frame.sort_values(["run_id", "name", "step"])
    groups = ordered.groupby(["run_id", "name"], sort=False)["value"]
    smooth = groups.transform(lambda values: ema(values, amount) if how == "ema" else rolling(values, int(amount)))
    return ordered.assign(smooth=smooth)
