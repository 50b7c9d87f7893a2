"""Floats on their way into columns: SQLite turns NaN into NULL without a word."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

NumberKind = Literal["num", "nan", "+inf", "-inf"]

_BY_KIND = {"nan": math.nan, "+inf": math.inf, "-inf": -math.inf}


def split_number(value: float) -> tuple[float | None, NumberKind]:
    """Return `(value, "num")` for a finite value, and None with the kind for NaN, +inf and -inf."""
    if math.isfinite(value):
        return float(value), "num"
    if math.isnan(value):
        return None, "nan"
    return None, "+inf" if value > 0 else "-inf"


def join_number(value: float | None, kind: str) -> float:
    """Return the float that `split_number` took apart."""
    return _BY_KIND[kind] if value is None else value


def join_numbers(values: Sequence[float | None], kinds: Sequence[str]) -> NDArray[np.float64]:
    """Return the floats that `split_number` took apart, as one array."""
    numbers = np.array(values, np.float64)  # None becomes NaN
    for position in np.flatnonzero(np.isnan(numbers)).tolist():
        numbers[position] = join_number(None, kinds[position])
    return numbers


def finite_or_none(value: float | None) -> float | None:
    """Return `value`, or None where it is missing or not finite (for summaries whose parts are stored too)."""
    return float(value) if value is not None and math.isfinite(value) else None
