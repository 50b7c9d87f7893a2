"""Passes: a micro-batch taken apart by length, so that short rows are not padded to the longest."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.training.batch import Batch

PASS_COST = {"cpu": 128, "cuda": 4096}
"""How many tokens of padding a further pass must save, by type of device.

On a CPU measured with tiny-math, whose passes cost the least: from 256 tokens down to 32 the time hardly changes. On a
GPU an estimate: starting the kernels of a pass takes as long as some thousand tokens.
"""


def length_passes(rows: Tensor, batch: Batch) -> list[Tensor]:
    """Return the `rows` (int64) of `batch` in passes, those of like length together: as they are if lengths are equal.

    A loss that is a sum over tokens has the same gradient in any passes, but for the rounding of the sums.
    """
    lengths = (batch.prompt_lengths + batch.response_lengths)[rows.to(batch.device)].cpu().numpy()
    order = np.argsort(lengths, kind="stable")
    cuts = length_cuts(lengths[order], PASS_COST.get(batch.device.type, PASS_COST["cuda"]))
    if not cuts:
        return [rows] if len(rows) else []
    return [rows[torch.from_numpy(part)] for part in np.split(order, cuts)]


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
