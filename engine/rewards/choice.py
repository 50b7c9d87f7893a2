"""A reward by its name."""

from engine.errors import RewardError
from engine.rewards.verifiers import REWARDS, RewardFn


def reward_names() -> tuple[str, ...]:
    """Return the names that `prompt.reward` may have."""
    return tuple(sorted(REWARDS))


def reward_named(name: str) -> RewardFn:
    """Return the reward that `prompt.reward` names.

    Raises:
        RewardError: if there is none of that name.
    """
    if name not in REWARDS:
        raise RewardError(f"prompt.reward={name} is not a reward; choose one of {', '.join(reward_names())}")
    return REWARDS[name]
