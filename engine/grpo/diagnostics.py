"""What is reported about an update. Means are over unmasked tokens; of no tokens they are 0.

Arrays may have any one shape. To report a step that ran in micro-batches, concatenate them first: a mean of
micro-batch means is another number.
"""

from typing import NamedTuple

from array_api_compat import array_namespace

from engine.grpo.arrays import Array, detached, widened
from engine.grpo.masking import masked_mean


class ClipMetrics(NamedTuple):
    """Fractions of tokens whose gradient the clip removed (TRL's `clip_ratio/*`)."""

    low_mean: float
    high_mean: float
    region_mean: float


class Spread(NamedTuple):
    """Mean and extremes of one quantity."""

    mean: float
    min: float
    max: float


def clip_metrics(clipped_low: Array, clipped_high: Array, mask: Array) -> ClipMetrics:
    """Return the clipped fractions from the masks that a loss returned."""
    low, high = (float(masked_mean(clipped, mask)) for clipped in (clipped_low, clipped_high))
    return ClipMetrics(low, high, float(masked_mean(clipped_low | clipped_high, mask)))


def ratio_spread(ratio: Array, mask: Array) -> Spread:
    """Return mean, minimum and maximum of the ratio; without tokens all are 0."""
    return _spread(ratio, mask)


def sampling_logp_difference(sampler_log_probs: Array, policy_log_probs: Array, mask: Array) -> Spread:
    """Return the spread of |sampler - policy| in nats: how far sampler and trainer disagree on one policy."""
    xp = array_namespace(sampler_log_probs, policy_log_probs)
    return _spread(xp.abs(detached(sampler_log_probs) - detached(policy_log_probs)), mask)


def _spread(values: Array, mask: Array) -> Spread:
    xp = array_namespace(values, mask)
    values = widened(detached(values))
    if not bool(xp.any(mask)):
        return Spread(0.0, 0.0, 0.0)
    infinity = xp.full_like(values, float("inf"))
    return Spread(
        mean=float(masked_mean(values, mask)),
        min=float(xp.min(xp.where(mask, values, infinity))),
        max=float(xp.max(xp.where(mask, values, -infinity))),
    )
