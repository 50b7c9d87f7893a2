"""Estimators of KL(policy || reference) from the log-probs of sampled tokens (Schulman 2020, "Approximating KL")."""

from typing import Literal

from array_api_compat import array_namespace

from engine.grpo.advantages import Baseline, group_advantages
from engine.grpo.arrays import Array

KlEstimator = Literal["k1", "k2", "k3"]


def kl_estimate(
    log_probs: Array, ref_log_probs: Array, estimator: KlEstimator = "k3", *, mask: Array | None = None
) -> Array:
    """Return the estimate per token, in nats, in the shape of `log_probs`; 0 where `mask` is False.

    With d = log p_ref - log p: k1 = -d (unbiased, may be negative); k2 = d² / 2 (biased); k3 = exp(d) - d - 1
    (unbiased, never negative). What their gradients are is another matter: over the policy's own samples that of k2
    is the gradient of the KL divergence, that of k1 averages to 0, and that of k3 is that of KL(reference || policy).
    """
    xp = array_namespace(log_probs, ref_log_probs)
    difference = ref_log_probs - log_probs
    if mask is not None:
        difference = xp.where(mask, difference, xp.zeros_like(difference))
    if estimator == "k1":
        return -difference
    if estimator == "k2":
        return difference * difference / 2
    return xp.expm1(difference) - difference


def penalized_advantages(advantages: Array, divergence: Array, *, beta: float, baseline: Baseline) -> Array:
    """Return A - beta · (K - baseline of K), all (P, G): the KL term in the reward of each completion.

    `divergence` K is the sum over a completion's tokens of the estimate, in nats; NaN where the reward is missing,
    which leaves the advantage as it is. The penalty has the group's baseline taken off like a reward, but it is not
    divided by the group's std: in a group whose answers are all right the penalty would be the only spread, and the
    division would turn any trace of it into a full advantage. Where nothing is scaled this is the advantage of
    r - beta · K (Ahmadian et al. 2024, "Back to Basics", section 2).
    """
    return advantages - beta * group_advantages(divergence, baseline=baseline, scale="none").advantages
