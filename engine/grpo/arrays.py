"""What the array API leaves out: a type for the signatures, and what several modules need."""

from typing import Any, TypeAlias

from array_api_compat import array_namespace

Array: TypeAlias = Any
"""A numpy array or a torch tensor. The standard has no type for it yet."""


def widened(array: Array) -> Array:
    """Return `array` in float32, or unchanged where it is float32 or float64 already.

    Rewards of 2 and 2.015625 are neighbours in bfloat16: their mean does not exist there.
    """
    xp = array_namespace(array)
    if array.dtype in (xp.float32, xp.float64):
        return array
    return xp.astype(array, xp.float32)


def detached(array: Array) -> Array:
    """Return `array` outside of any autograd graph (numpy arrays are outside already)."""
    return array.detach() if hasattr(array, "detach") else array


def per_token(rows: Array) -> Array:
    """Return one value per row, (B,), as a column (B, 1) that broadcasts over tokens; (B, T) stays."""
    return rows[:, None] if rows.ndim == 1 else rows
