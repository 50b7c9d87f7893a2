"""Which tokens count: masks, means over them, and the positions of left-padded rows."""

from collections.abc import Sequence

from array_api_compat import array_namespace, device

from engine.grpo.arrays import Array, widened


def response_mask(lengths: Array, width: int, *, keep: Array | None = None) -> Array:
    """Return a bool mask (B, `width`): the first `lengths` (B,) tokens of each row, the end token included.

    Lengths come from the sampler, so a pad id that equals an end id does no harm. Rows where `keep` (B,)
    is False count nothing at all: completions without a reward, or cut ones where those are filtered.
    """
    xp = array_namespace(lengths)
    mask = xp.arange(width, device=device(lengths))[None, :] < lengths[:, None]
    return mask if keep is None else mask & keep[:, None]


def lengths_to_end(token_ids: Array, end_token_ids: Sequence[int]) -> Array:
    """Return the lengths (B,) of `token_ids` (B, T) up to and including the first end token; T where none is.

    For token ids that come without their lengths (imported rollouts). Of our own sampler, use the lengths it
    returns: it knows why it stopped, and a row that reads T here may be complete or cut.
    """
    xp = array_namespace(token_ids)
    ended = xp.zeros_like(token_ids)
    for end_token_id in end_token_ids:
        ended = ended + xp.astype(token_ids == end_token_id, token_ids.dtype)
    before_the_end = xp.cumulative_sum(ended, axis=1) - ended == 0
    return xp.sum(xp.astype(before_the_end, xp.int64), axis=1)


def masked_mean(values: Array, mask: Array, *, axis: int | None = None) -> Array:
    """Return the mean of `values` where `mask` (bool, same shape), over `axis` or over everything; 0 of 0 is 0.

    Values are selected before they are added, so a NaN at a masked place stays there (0 · NaN is NaN).
    """
    xp = array_namespace(values, mask)
    values = widened(values)
    selected = xp.where(mask, values, xp.zeros_like(values))
    counts = xp.sum(xp.astype(mask, values.dtype), axis=axis)
    return xp.sum(selected, axis=axis) / xp.where(counts > 0, counts, xp.ones_like(counts))


def position_ids(attention_mask: Array) -> Array:
    """Return int64 positions (B, T) that count the real tokens of each row from 0; padding before them is at 0."""
    xp = array_namespace(attention_mask)
    places = xp.cumulative_sum(xp.astype(attention_mask, xp.int64), axis=1) - 1
    return xp.where(places > 0, places, xp.zeros_like(places))
