"""Where ascending lengths are cut, so that short rows are not padded to the longest."""

import numpy as np
from numpy.typing import NDArray


def length_cuts(lengths: NDArray[np.int64], cost: int) -> list[int]:
    """Return the places, ascending, at which ascending `lengths` (rows,) are cut.

    A cut after n rows saves n times the difference between the longest row before it and the longest after it. The
    cut that saves most is made if it saves more than `cost` tokens, and then either side is looked at by itself.
    """
    if len(lengths) < 2:
        return []
    saved = np.arange(1, len(lengths)) * (lengths[-1] - lengths[:-1])
    best = int(saved.argmax())
    if saved[best] <= cost:
        return []
    cut = best + 1
    return [*length_cuts(lengths[:cut], cost), cut, *(cut + later for later in length_cuts(lengths[cut:], cost))]
