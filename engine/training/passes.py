"""Passes: which rows of a micro-batch the model takes at once."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.training.batch import Batch
from engine.training.cuts import length_cuts
from engine.training.packing import packs_rows

PASS_TOKENS = {"cpu": 2048}
"""How many packed tokens a pass takes at most, by type of device; any number elsewhere.

On a CPU measured with tiny-math: what one operation leaves must still be in the cache for the next. Passes of 1,000 to
2,500 tokens cost the same, one of 5,000 a quarter more.
"""
PASS_COST = {"cpu": 128, "cuda": 4096}
"""How many tokens of padding a further pass of padded rows must save, by type of device.

On a CPU measured with tiny-math, whose passes cost the least: from 256 tokens down to 32 the time hardly changes. On a
GPU an estimate: starting the kernels of a pass takes as long as some thousand tokens.
"""


def row_passes(model: Any, rows: Tensor, batch: Batch) -> list[Tensor]:
    """Return the `rows` (int64) of `batch` in the passes that `model` takes; none if there are no rows."""
    if not len(rows):
        return []
    return packed_passes(rows, batch) if packs_rows(model) else length_passes(rows, batch)


def packed_passes(rows: Tensor, batch: Batch) -> list[Tensor]:
    """Return the `rows` (int64) of `batch` in passes of like size, those of one prompt together where that can be.

    A loss that is a sum over tokens has the same gradient in any passes, but for the rounding of the sums.
    """
    chosen = rows.cpu().numpy()
    owners = chosen if batch.prompts is None else batch.prompts.cpu().numpy()[chosen]
    order = np.argsort(owners, kind="stable")
    chosen, owners = chosen[order], owners[order]
    begins_prompt = np.diff(owners, prepend=-1) != 0
    tokens = batch.response_lengths.cpu().numpy()[chosen] + begins_prompt * batch.prompt_lengths.cpu().numpy()[chosen]
    so_far = tokens.cumsum()
    count = -(-so_far[-1] // PASS_TOKENS.get(batch.device.type, so_far[-1]))
    ends = np.searchsorted(so_far, so_far[-1] * np.arange(1, count) / count) + 1
    return [torch.from_numpy(part) for part in np.split(chosen, ends) if len(part)]


def length_passes(rows: Tensor, batch: Batch) -> list[Tensor]:
    """Return the `rows` (int64) of `batch` in passes, those of like length together: as they are if lengths are equal.

    A loss that is a sum over tokens has the same gradient in any passes, but for the rounding of the sums.
    """
    lengths = (batch.prompt_lengths + batch.response_lengths)[rows.to(batch.device)].cpu().numpy()
    order = np.argsort(lengths, kind="stable")
    cuts = length_cuts(lengths[order], PASS_COST.get(batch.device.type, PASS_COST["cuda"]))
    return [rows[torch.from_numpy(part)] for part in np.split(order, cuts)] if cuts else [rows]
