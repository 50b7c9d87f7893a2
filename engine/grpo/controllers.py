"""Controllers: coefficients that move from step to step so that a measured quantity meets its target."""

import math

LARGEST_ERROR = 0.2


def adapted_beta(beta: float, kl: float, *, target: float, gain: float) -> float:
    """Return the weight of the KL term for the next step.

    β · (1 + gain · e), e = clip(kl / target - 1, -0.2, 0.2) (Ziegler et al. 2019, "Fine-Tuning Language Models from
    Human Preferences", section 2.2, where gain = 0.1). `kl` and `target` in nats per token; a `kl` that is not finite
    leaves β as it is.
    """
    if not math.isfinite(kl):
        return beta
    error = min(max(kl / target - 1, -LARGEST_ERROR), LARGEST_ERROR)
    return beta * (1 + gain * error)


def adapted_entropy_bonus(bonus: float, entropy: float, *, target: float, change: float) -> float:
    """Return the entropy bonus for the next step: more by `change` below the target, less by it above, never below 0.

    He et al. 2025, "Skywork Open Reasoner 1", section 4.3. `entropy` and `target` in nats per token.
    """
    if not math.isfinite(entropy):
        return bonus
    return max(0.0, bonus + (change if entropy < target else -change))


def active_entropy_bonus(bonus: float, entropy: float | None, *, target: float | None) -> float:
    """Return the bonus that acts: under a target it rests while the `entropy` last measured is above it."""
    resting = target is not None and entropy is not None and entropy > target
    return 0.0 if resting else bonus
