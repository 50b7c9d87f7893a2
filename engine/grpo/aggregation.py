"""From per-token losses to one number: weights that add up over the micro-batches of an optimizer step.

The loss of an optimizer step is the sum over all of its tokens of weight · token loss. Because every weight
is known from counts over the whole step, the sum can be taken in any number of micro-batches.
"""

from typing import Literal, NamedTuple

from array_api_compat import array_namespace

from engine.grpo.arrays import Array

Aggregation = Literal["mean", "constant", "microbatch", "token"]


class AggregationTotals(NamedTuple):
    """Counts over one whole optimizer step, all micro-batches together."""

    sequences: int
    """Rows with at least one unmasked token."""
    tokens: int
    """Unmasked tokens."""


def aggregation_totals(response_mask: Array) -> AggregationTotals:
    """Return the counts of `response_mask` (B, T), the mask of all rows of the optimizer step."""
    xp = array_namespace(response_mask)
    lengths = xp.sum(xp.astype(response_mask, xp.int64), axis=1)
    return AggregationTotals(sequences=int(xp.sum(xp.astype(lengths > 0, xp.int64))), tokens=int(xp.sum(lengths)))


def aggregation_weights(
    response_mask: Array, mode: Aggregation, *, totals: AggregationTotals, constant: int | None = None
) -> Array:
    """Return float32 weights (B, T) for one micro-batch; 0 at masked places.

    With N sequences and `len` unmasked tokens in a row, a token weighs
    - "mean": 1 / (len · N), the mean over sequences of each sequence's mean (DeepSeekMath eq. 3);
    - "constant": 1 / (constant · N) (Liu et al. 2025, "Dr. GRPO");
    - "token": 1 / (tokens of the optimizer step) (Yu et al. 2025, "DAPO", eq. 8);
    - "microbatch": 1 / (longest row of this micro-batch · N). Alone among the four its gradient depends, by
      definition, on how the step was split; published runs used it.

    A row without unmasked tokens weighs nothing and is not among the N. Raises ValueError when `mode` is
    "constant" and `constant` is missing or below 1.
    """
    xp = array_namespace(response_mask)
    lengths = xp.sum(xp.astype(response_mask, xp.float32), axis=1, keepdims=True)
    sequences = max(totals.sequences, 1)
    if mode == "mean":
        shares = 1 / (_at_least_one(lengths) * sequences)
    elif mode == "constant":
        if constant is None or constant < 1:
            raise ValueError(f"constant={constant} for aggregation=constant; give a length of at least 1 token")
        shares = xp.full_like(lengths, 1 / (constant * sequences))
    elif mode == "token":
        shares = xp.full_like(lengths, 1 / max(totals.tokens, 1))
    else:
        shares = 1 / (_at_least_one(xp.max(lengths, axis=0, keepdims=True)) * sequences)
    return xp.where(response_mask, shares, xp.zeros_like(lengths))


def aggregate(token_loss: Array, weights: Array) -> Array:
    """Return the scalar sum of weight · loss; losses (B, T) of weight 0 are left out, even a NaN."""
    xp = array_namespace(token_loss, weights)
    return xp.sum(xp.where(weights > 0, token_loss, xp.zeros_like(token_loss)) * weights)


def _at_least_one(lengths: Array) -> Array:
    xp = array_namespace(lengths)
    return xp.where(lengths > 0, lengths, xp.ones_like(lengths))
