"""The loss of one token, before aggregation: what an ablation swaps."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from array_api_compat import array_namespace

from engine.grpo.arrays import Array, detached, per_token
from engine.grpo.ratio import RatioLevel, log_ratio


class TokenLoss(NamedTuple):
    """Losses (B, T) and what is reported about them. Masked places hold loss 0, ratio 1 and False."""

    loss: Array
    ratio: Array
    """ρ = p / p_old at the level asked for, outside the graph; 1 everywhere where no old log-probs were given."""
    clipped_low: Array
    """bool: the lower clip binds, so the token has no gradient."""
    clipped_high: Array
    """bool: the upper clip binds, so the token has no gradient (under `cispo`: its weight is capped)."""
    clipped_dual: Array
    """bool: the dual clip binds, so the token has no gradient."""


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
        ratio_level: RatioLevel = "token",
        clip_eps_low: float = 0.2,
        clip_eps_high: float = 0.2,
        dual_clip: float | None = None,
    ) -> TokenLoss:
        """Return the per-token loss of `log_probs` (B, T); `advantages` are (B,) or (B, T)."""
        ...


def policy_gradient_loss(
    log_probs: Array,
    advantages: Array,
    response_mask: Array,
    *,
    old_log_probs: Array | None = None,
    ratio_level: RatioLevel = "token",
    clip_eps_low: float = 0.2,  # noqa: ARG001
    clip_eps_high: float = 0.2,  # noqa: ARG001
    dual_clip: float | None = None,  # noqa: ARG001
) -> TokenLoss:
    """Return -A · log p (Williams 1992, REINFORCE).

    `no_baseline` and `reinforce_with_baseline` are both this: they differ in the advantages they are given.
    `old_log_probs` only serve to report the ratio, which this loss does not correct for.
    """
    xp = array_namespace(log_probs, response_mask)
    selected = xp.where(response_mask, log_probs, xp.zeros_like(log_probs))
    if old_log_probs is None:
        ratio = xp.ones_like(detached(log_probs))
    else:
        ratio = xp.exp(detached(log_ratio(log_probs, old_log_probs, response_mask, ratio_level)))
    nowhere = xp.zeros_like(response_mask)
    return TokenLoss(-per_token(advantages) * selected, ratio, nowhere, nowhere, nowhere)


def unclipped_ratio_loss(
    log_probs: Array,
    advantages: Array,
    response_mask: Array,
    *,
    old_log_probs: Array | None = None,
    ratio_level: RatioLevel = "token",
    clip_eps_low: float = 0.2,  # noqa: ARG001
    clip_eps_high: float = 0.2,  # noqa: ARG001
    dual_clip: float | None = None,  # noqa: ARG001
) -> TokenLoss:
    """Return -A · ρ, the importance-weighted policy gradient without a clip.

    Raises ValueError without `old_log_probs`.
    """
    xp = array_namespace(log_probs, response_mask)
    ratio = xp.exp(log_ratio(log_probs, _required(old_log_probs, "grpo_no_clip"), response_mask, ratio_level))
    nowhere = xp.zeros_like(response_mask)
    return TokenLoss(-_masked(advantages, ratio, response_mask) * ratio, detached(ratio), nowhere, nowhere, nowhere)


def clipped_ratio_loss(
    log_probs: Array,
    advantages: Array,
    response_mask: Array,
    *,
    old_log_probs: Array | None = None,
    ratio_level: RatioLevel = "token",
    clip_eps_low: float = 0.2,
    clip_eps_high: float = 0.2,
    dual_clip: float | None = None,
) -> TokenLoss:
    """Return -min(ρ·A, clip(ρ, 1 - low, 1 + high)·A), and no more than -c·A for a negative A under a dual clip c.

    Schulman et al. 2017, "PPO", eq. 7, per token as in DeepSeekMath eq. 3; different bounds as in DAPO
    (Yu et al. 2025); per sequence as in GSPO (Zheng et al. 2025); the dual clip, which bounds what a negative
    advantage can do at a large ratio, from Ye et al. 2020, "Mastering Complex Control in MOBA Games".
    Written by cases rather than by `min`, so that the loss and the clip metrics have one definition of
    "clipped", and a clipped token has gradient 0 even where its ratio overflows.

    Raises ValueError without `old_log_probs`.
    """
    xp = array_namespace(log_probs, response_mask)
    log_ratios = log_ratio(log_probs, _required(old_log_probs, "grpo_clip"), response_mask, ratio_level)
    ratio = xp.exp(detached(log_ratios))
    advantages = _masked(advantages, ratio, response_mask)
    low, high = clip_bindings(ratio, advantages, clip_eps_low=clip_eps_low, clip_eps_high=clip_eps_high)
    bound = xp.where(high, xp.full_like(ratio, 1 + clip_eps_high), xp.full_like(ratio, 1 - clip_eps_low))
    dual = dual_clip_binding(ratio, advantages, dual_clip=dual_clip)
    bound = bound if dual_clip is None else xp.where(dual, xp.full_like(ratio, dual_clip), bound)
    clipped = low | high | dual
    moving = xp.exp(xp.where(clipped, xp.zeros_like(ratio), log_ratios))
    return TokenLoss(-advantages * xp.where(clipped, bound, moving), ratio, low, high, dual)


def capped_weight_loss(
    log_probs: Array,
    advantages: Array,
    response_mask: Array,
    *,
    old_log_probs: Array | None = None,
    ratio_level: RatioLevel = "token",
    clip_eps_low: float = 0.2,  # noqa: ARG001
    clip_eps_high: float = 0.2,
    dual_clip: float | None = None,  # noqa: ARG001
) -> TokenLoss:
    """Return -sg(min(ρ, 1 + high))·A·log p: the ratio is a capped weight, and no token loses its gradient.

    CISPO (MiniMax 2025, "MiniMax-M1", section 3.1), without a lower bound, as its authors train, and without the
    token mask of their unified form, which would drop tokens as a clip does. Where the ratio is capped,
    `clipped_high` says so, whatever the sign of the advantage.

    Raises ValueError without `old_log_probs`.
    """
    xp = array_namespace(log_probs, response_mask)
    ratio = xp.exp(detached(log_ratio(log_probs, _required(old_log_probs, "cispo"), response_mask, ratio_level)))
    capped = ratio > 1 + clip_eps_high
    weight = xp.where(capped, xp.full_like(ratio, 1 + clip_eps_high), ratio)
    selected = xp.where(response_mask, log_probs, xp.zeros_like(log_probs))
    nowhere = xp.zeros_like(response_mask)
    return TokenLoss(-weight * per_token(advantages) * selected, ratio, nowhere, capped, nowhere)


LOSSES: Mapping[str, LossFunction] = {
    "no_baseline": policy_gradient_loss,
    "reinforce_with_baseline": policy_gradient_loss,
    "grpo_no_clip": unclipped_ratio_loss,
    "grpo_clip": clipped_ratio_loss,
    "cispo": capped_weight_loss,
}
"""The losses by the name that a config gives them."""


def clip_bindings(ratio: Array, advantages: Array, *, clip_eps_low: float, clip_eps_high: float) -> ClipBindings:
    """Return where the clip binds: above for a positive advantage, below for a negative one, nowhere else."""
    advantages = per_token(advantages) if ratio.ndim == 2 else advantages
    return ClipBindings(
        low=(ratio < 1 - clip_eps_low) & (advantages < 0),
        high=(ratio > 1 + clip_eps_high) & (advantages > 0),
    )


def dual_clip_binding(ratio: Array, advantages: Array, *, dual_clip: float | None) -> Array:
    """Return where the dual clip binds: at a negative advantage and a ratio above it; nowhere without one."""
    advantages = per_token(advantages) if ratio.ndim == 2 else advantages
    return (ratio > (float("inf") if dual_clip is None else dual_clip)) & (advantages < 0)


def _masked(advantages: Array, ratio: Array, response_mask: Array) -> Array:
    """Return the advantages as (B, T), 0 at masked places."""
    xp = array_namespace(ratio)
    return xp.where(response_mask, per_token(advantages), xp.zeros_like(detached(ratio)))


def _required(old_log_probs: Array | None, loss_type: str) -> Array:
    if old_log_probs is None:
        raise ValueError(
            f"old_log_probs is missing; loss_type={loss_type} needs them for its ratio; "
            "on the first optimizer step of a rollout batch pass the policy's own log-probs, detached"
        )
    return old_log_probs
