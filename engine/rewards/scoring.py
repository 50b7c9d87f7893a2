"""Scores whole groups, and survives a reward that fails on one completion."""

import math
from collections.abc import Sequence

from engine.rewards.verifiers import RewardFn, Verifier
from engine.types import Group, Reward


def score_groups(groups: Sequence[Group], reward_fn: RewardFn) -> tuple[tuple[Reward, ...], ...]:
    """The reward of every completion, shape (P, G).

    A completion on which `reward_fn` raises, or returns anything but a whole Reward, is recorded as
    "not_graded" with value None and the reason; the others are scored all the same. A verifier judges all of
    them at once: those that only an algebra system can judge side by side, each under a time limit.
    """
    pairs = [(completion.text, group.problem.gold) for group in groups for completion in group.completions]
    if isinstance(reward_fn, Verifier):
        rewards = iter(reward_fn.score(pairs))
    else:
        rewards = iter([_score(*pair, reward_fn) for pair in pairs])
    return tuple(tuple(next(rewards) for _ in group.completions) for group in groups)


def _score(text: str, gold: str, reward_fn: RewardFn) -> Reward:
    try:
        reward: object = reward_fn(text, gold)
    except Exception as error:  # whatever a reward raises is kept as the reason, and costs one completion
        return _not_graded(f"{type(error).__name__}: {error}")
    if not isinstance(reward, Reward):
        return _not_graded(f"the reward function returned {type(reward).__name__}, not Reward")
    if (reward.value is None) != (reward.verdict == "not_graded"):
        return _not_graded(f"value {reward.value} does not go with verdict {reward.verdict!r}")
    if reward.value is not None and not math.isfinite(reward.value):
        return _not_graded(f"value {reward.value} is not finite")
    return reward


def _not_graded(reason: str) -> Reward:
    return Reward(value=None, parts={}, answer=None, verdict="not_graded", reason=reason)
