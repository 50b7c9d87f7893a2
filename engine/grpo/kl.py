"""Estimators of KL(policy || reference) from the log-probs of sampled tokens (Schulman 2020, "Approximating KL")."""

from typing import Literal

from array_api_compat import array_namespace

from engine.grpo.arrays import Array

KlEstimator = Literal["k1", "k2", "k3"]


def kl_estimate(log_probs: Array, ref_log_probs: Array, estimator: KlEstimator = "k3") -> Array:
    """Return the estimate per token, in nats, in the shape of `log_probs`. With d = log p_ref - log p:

    k1 = -d (unbiased, may be negative); k2 = d² / 2 (biased); k3 = exp(d) - d - 1 (unbiased, never negative).
    """
    xp = array_namespace(log_probs, ref_log_probs)
    difference = ref_log_probs - log_probs
    if estimator == "k1":
        return -difference
    if estimator == "k2":
        return difference * difference / 2
    return xp.expm1(difference) - difference
