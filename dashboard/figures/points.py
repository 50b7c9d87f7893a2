"""From values per step to points that can be drawn: gaps kept, spikes kept, non-finite values counted."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

LIMIT = 2_000
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Points:
    """Points in the order of their steps; a NaN in `y` is a gap in the line.

    `non_finite` counts the NaN and infinite values that were logged.
    """

    x: Floats
    y: Floats
    steps: Floats
    non_finite: int


def points(frame: pd.DataFrame, name: str) -> Points:
    """Return the points of one metric out of a tidy frame (columns name, step, value), against the step."""
    rows = frame[frame["name"] == name].sort_values("step") if len(frame) else frame
    return drawable(rows["step"], rows["value"]) if len(rows) else drawable([], [])


def drawable(steps: ArrayLike, y: ArrayLike, x: ArrayLike | None = None, *, limit: int = LIMIT) -> Points:
    """Return what is drawn of `y` at `x` (by default the steps, which must ascend).

    Logged NaN and infinities become gaps and are counted. Steps without a value become gaps too, where they are
    more than the usual distance apart. Above `limit` points, each bin keeps its least and its greatest value.
    """
    steps_ = np.asarray(steps, dtype=float)
    values = np.asarray(y, dtype=float)
    places = steps_ if x is None else np.asarray(x, dtype=float)
    finite = np.isfinite(values)
    values = np.where(finite, values, np.nan)
    places, values, steps_ = _with_gaps(places, values, steps_)
    kept = extremes(values, limit)
    return Points(places[kept], values[kept], steps_[kept], int((~finite).sum()))


def extremes(values: Floats, limit: int = LIMIT) -> NDArray[np.intp]:
    """Return the indices to keep, ascending: all up to `limit`, else least, greatest and first gap of each bin."""
    count = len(values)
    if count <= limit:
        return np.arange(count)
    size = int(np.ceil(count / max(1, limit // 3)))
    bins = int(np.ceil(count / size))
    missing = np.isnan(values)
    padding = bins * size - count
    starts = np.arange(bins) * size
    least = np.pad(np.where(missing, np.inf, values), (0, padding), constant_values=np.inf)
    greatest = np.pad(np.where(missing, -np.inf, values), (0, padding), constant_values=-np.inf)
    gap = np.pad(missing, (0, padding), constant_values=False).reshape(bins, size)
    picked = [
        least.reshape(bins, size).argmin(axis=1) + starts,
        greatest.reshape(bins, size).argmax(axis=1) + starts,
        (gap.argmax(axis=1) + starts)[gap.any(axis=1)],
        np.array([0, count - 1]),
    ]
    return np.unique(np.concatenate(picked))


def segments(steps: ArrayLike) -> list[slice]:
    """Return the stretches of `steps` without a gap, as slices; areas are drawn one per stretch."""
    values = np.asarray(steps, dtype=float)
    if not len(values):
        return []
    cuts = [0, *(_gap_starts(values) + 1).tolist(), len(values)]
    return [slice(start, end) for start, end in pairwise(cuts)]


def table(frame: pd.DataFrame, names: tuple[str, ...], *, limit: int = LIMIT) -> tuple[pd.DataFrame, int]:
    """Return one row per step and one column per metric that was logged, and how many steps each row averages.

    Above `limit` steps, neighbours are averaged; the index is then the last step of each row.
    """
    rows = frame[frame["name"].isin(names)] if len(frame) else frame
    if not len(rows):
        return pd.DataFrame(index=pd.Index([], name="step", dtype=int)), 1
    wide = rows.pivot_table(index="step", columns="name", values="value", aggfunc="last", dropna=False)
    wide = wide.where(np.isfinite(wide))[[name for name in names if name in wide]]
    size = int(np.ceil(len(wide) / limit))
    if size > 1:
        bins = np.arange(len(wide)) // size
        last = wide.index.to_series().groupby(bins).last()
        wide = wide.groupby(bins).mean().set_axis(pd.Index(last, name="step"), axis=0)
    return wide, size


def _with_gaps(x: Floats, y: Floats, steps: Floats) -> tuple[Floats, Floats, Floats]:
    starts = _gap_starts(steps)
    if not len(starts):
        return x, y, steps
    after = starts + 1
    middle = (x[starts] + x[after]) / 2
    return np.insert(x, after, middle), np.insert(y, after, np.nan), np.insert(steps, after, np.nan)


def _gap_starts(steps: Floats) -> NDArray[np.intp]:
    """Return the indices after which steps are missing: wider than 1.5 times the usual distance."""
    distances = np.diff(steps)
    if len(distances) < 3:
        return np.array([], dtype=np.intp)
    return np.flatnonzero(distances > 1.5 * np.median(distances))
