"""The importance ratio ρ = p / p_old, per token or per sequence, as its logarithm."""

from typing import Literal

from array_api_compat import array_namespace

from engine.grpo.arrays import Array, detached

RatioLevel = Literal["token", "sequence"]


def log_ratio(log_probs: Array, old_log_probs: Array, response_mask: Array, level: RatioLevel = "token") -> Array:
    """Return log ρ (B, T), 0 at masked places: they are left out before any exp sees them.

    "token": log p - log p_old. "sequence": the mean of these over the row's unmasked tokens, at every one of
    them, so that ρ = (p(row) / p_old(row))^(1/length) (Zheng et al. 2025, "Group Sequence Policy Optimization").
    The gradient is that of the paper's GSPO-token: sg(log ρ) + log p - sg(log p), each token's through its own
    log-prob. With one advantage per row and weights that are constant along a row, it equals the gradient
    through the mean.
    """
    xp = array_namespace(log_probs, old_log_probs)
    difference = log_probs - detached(old_log_probs)
    difference = xp.where(response_mask, difference, xp.zeros_like(difference))
    if level == "token":
        return difference
    value = detached(difference)
    lengths = xp.sum(xp.astype(response_mask, value.dtype), axis=1, keepdims=True)
    mean = xp.sum(value, axis=1, keepdims=True) / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    return xp.where(response_mask, mean + (difference - value), xp.zeros_like(difference))
