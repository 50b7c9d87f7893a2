"""What corrects for a sampler that is not quite the policy it should be: truncated or masked importance weights."""

from typing import Literal, NamedTuple

from array_api_compat import array_namespace

from engine.grpo.arrays import Array, detached

ImportanceCorrection = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]


class ImportanceWeights(NamedTuple):
    """All (B, T) and outside the graph; at masked places weight and ratio are 1, and nothing is beyond the cap."""

    weights: Array
    """What a token's loss is multiplied with."""
    ratio: Array
    """p_policy / p_sampler before any cap: of the token, or of its whole sequence under a sequence correction."""
    beyond_cap: Array
    """bool: the ratio is above the cap."""


def importance_weights(
    policy_log_probs: Array,
    sampler_log_probs: Array,
    response_mask: Array,
    *,
    correction: ImportanceCorrection,
    cap: float,
) -> ImportanceWeights:
    """Return the weights that turn an expectation under the sampler into one under the policy before its update.

    With ρ = p_policy / p_sampler of a token, or the product of these over the row under "sequence_*" (which grows
    or shrinks with the length):
    - "*_truncate": min(ρ, cap) (Ionides 2008; Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You
      Off-Policy RL Training");
    - "*_mask": ρ where it is at most the cap, and 0 above it: the token or the whole sequence is left out of the
      loss, and still counts in its denominators;
    - "none": 1.
    Where a sampler cuts its distribution (top-p, top-k, min-p), its log-probs are of the renormalised rest, and ρ
    carries the mass that was kept: it is biased below 1.
    """
    xp = array_namespace(policy_log_probs, sampler_log_probs)
    difference = detached(policy_log_probs) - detached(sampler_log_probs)
    difference = xp.where(response_mask, difference, xp.zeros_like(difference))
    if correction in ("sequence_truncate", "sequence_mask"):
        whole = xp.sum(difference, axis=1, keepdims=True)
        difference = xp.where(response_mask, whole, xp.zeros_like(difference))
    ratio = xp.exp(difference)
    beyond = (ratio > cap) & response_mask
    if correction == "none":
        weights = xp.ones_like(ratio)
    elif correction in ("token_truncate", "sequence_truncate"):
        weights = xp.where(beyond, xp.full_like(ratio, cap), ratio)
    else:
        weights = xp.where(beyond, xp.zeros_like(ratio), ratio)
    return ImportanceWeights(weights, ratio, beyond)
