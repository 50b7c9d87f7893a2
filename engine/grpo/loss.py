"""The loss of one token, before aggregation: what an ablation swaps."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from array_api_compat import array_namespace

from engine.grpo.arrays import Array, detached, per_token


class TokenLoss(NamedTuple):
    """Losses (B, T) and what is reported about them. Masked places hold loss 0, ratio 1 and False."""

    loss: Array
    ratio: Array
    """exp(log_probs - old_log_probs), outside the graph; 1 everywhere where no old log-probs were given."""
    clipped_low: Array
    """bool: the lower clip binds, so the token has no gradient."""
    clipped_high: Array
    """bool: the upper clip binds, so the token has no gradient."""


class ClipBindings(NamedTuple):
    """Where the clip decides, by side."""

    low: Array
    high: Array


class LossFunction(Protocol):
    """The signature that all losses share. What one of them does not use, it ignores."""

    def __call__(
        self,
        log_probs: Array,
        advantages: Array,
        response_mask: Array,
        *,
        old_log_probs: Array | None = None,
        clip_eps_low: float = 0.2,
        clip_eps_high: float = 0.2,
    ) -> TokenLoss:
        """Return the per-token loss of `log_probs` (B, T); `advantages` are (B,) or (B, T)."""
        ...


def policy_gradient_loss(
    log_probs: Array,
    advantages: Array,
    response_mask: Array,
    *,
    old_log_probs: Array | None = None,
    clip_eps_low: float = 0.2,  # noqa: ARG001
    clip_eps_high: float = 0.2,  # noqa: ARG001
) -> TokenLoss:
    """Return -A · log p (Williams 1992, REINFORCE).

    `no_baseline` and `reinforce_with_baseline` are both this: they differ in the advantages they are given.
    `old_log_probs` only serve to report the ratio, which this loss does not correct for.
    """
    xp = array_namespace(log_probs, response_mask)
    nothing = xp.zeros_like(log_probs)
    selected = xp.where(response_mask, log_probs, nothing)
    if old_log_probs is None:
        ratio = xp.ones_like(detached(log_probs))
    else:
        ratio = xp.exp(detached(_log_ratio(log_probs, old_log_probs, response_mask)))
    unclipped = xp.zeros_like(response_mask)
    return TokenLoss(-per_token(advantages) * selected, ratio, unclipped, unclipped)


def unclipped_ratio_loss(
    log_probs: Array,
    advantages: Array,
    response_mask: Array,
    *,
    old_log_probs: Array | None = None,
    clip_eps_low: float = 0.2,  # noqa: ARG001
    clip_eps_high: float = 0.2,  # noqa: ARG001
) -> TokenLoss:
    """Return -A · p / p_old, the importance-weighted policy gradient without a clip.

    Raises ValueError without `old_log_probs`.
    """
    xp = array_namespace(log_probs, response_mask)
    ratio = xp.exp(_log_ratio(log_probs, _required(old_log_probs, "grpo_no_clip"), response_mask))
    advantages = xp.where(response_mask, per_token(advantages), xp.zeros_like(detached(log_probs)))
    unclipped = xp.zeros_like(response_mask)
    return TokenLoss(-advantages * ratio, detached(ratio), unclipped, unclipped)


def clipped_ratio_loss(
    log_probs: Array,
    advantages: Array,
    response_mask: Array,
    *,
    old_log_probs: Array | None = None,
    clip_eps_low: float = 0.2,
    clip_eps_high: float = 0.2,
) -> TokenLoss:
    """Return -min(ρ·A, clip(ρ, 1 - low, 1 + high)·A) with ρ = p / p_old.

    Schulman et al. 2017, "PPO", eq. 7, per token as in DeepSeekMath eq. 3; different bounds as in DAPO
    (Yu et al. 2025). Written by cases rather than by `min`, so that the loss and the clip metrics have one
    definition of "clipped", and a clipped token has gradient 0 even where its ratio overflows.

    Raises ValueError without `old_log_probs`.
    """
    xp = array_namespace(log_probs, response_mask)
    log_ratio = _log_ratio(log_probs, _required(old_log_probs, "grpo_clip"), response_mask)
    advantages = xp.where(response_mask, per_token(advantages), xp.zeros_like(detached(log_probs)))
    ratio = xp.exp(detached(log_ratio))
    low, high = clip_bindings(ratio, advantages, clip_eps_low=clip_eps_low, clip_eps_high=clip_eps_high)
    bound = xp.where(high, xp.full_like(ratio, 1 + clip_eps_high), xp.full_like(ratio, 1 - clip_eps_low))
    clipped = low | high
    moving = xp.exp(xp.where(clipped, xp.zeros_like(ratio), log_ratio))
    return TokenLoss(-advantages * xp.where(clipped, bound, moving), ratio, low, high)


LOSSES: Mapping[str, LossFunction] = {
    "no_baseline": policy_gradient_loss,
    "reinforce_with_baseline": policy_gradient_loss,
    "grpo_no_clip": unclipped_ratio_loss,
    "grpo_clip": clipped_ratio_loss,
}
"""The losses by the name that a config gives them."""


def clip_bindings(ratio: Array, advantages: Array, *, clip_eps_low: float, clip_eps_high: float) -> ClipBindings:
    """Return where the clip binds: above for a positive advantage, below for a negative one, nowhere else."""
    advantages = per_token(advantages) if ratio.ndim == 2 else advantages
    return ClipBindings(
        low=(ratio < 1 - clip_eps_low) & (advantages < 0),
        high=(ratio > 1 + clip_eps_high) & (advantages > 0),
    )


def _log_ratio(log_probs: Array, old_log_probs: Array, response_mask: Array) -> Array:
    """Return log p - log p_old, 0 at masked places: they are left out before any exp sees them."""
    xp = array_namespace(log_probs, old_log_probs)
    difference = log_probs - detached(old_log_probs)
    return xp.where(response_mask, difference, xp.zeros_like(difference))


def _required(old_log_probs: Array | None, loss_type: str) -> Array:
    if old_log_probs is None:
        raise ValueError(
            f"old_log_probs is missing; loss_type={loss_type} needs them for its ratio; "
            "on the first optimizer step of a rollout batch pass the policy's own log-probs, detached"
        )
    return old_log_probs
