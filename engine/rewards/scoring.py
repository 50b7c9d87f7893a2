"""Scores whole groups, and survives a reward that fails on one completion."""

import math
from collections.abc import Sequence

from engine.errors import TaskError
from engine.rewards.equality import read_number
from engine.rewards.verifiers import RewardFn
from engine.types import Group, Problem, Reward


def score_groups(groups: Sequence[Group], reward_fn: RewardFn) -> tuple[tuple[Reward, ...], ...]:
    """The reward of every completion, shape (P, G).

    A completion on which `reward_fn` raises, or returns anything but a whole Reward, is recorded as
    "not_graded" with value None and the reason; the others are scored all the same.
    """
    return tuple(
        tuple(_score(completion.text, group.problem.gold, reward_fn) for completion in group.completions)
        for group in groups
    )


def check_gold(problems: Sequence[Problem]) -> None:
    """Raises TaskError, before a run starts, where a gold answer is not a number; names the first three."""
    unreadable = [problem for problem in problems if read_number(problem.gold) is None]
    if unreadable:
        first = ", ".join(f"{problem.problem_id} ({problem.gold!r})" for problem in unreadable[:3])
        raise TaskError(
            f"gold: {len(unreadable)} of {len(problems)} problems have a gold answer that is not one number "
            f"({first}); a gold answer is an integer, a decimal or a fraction; correct or drop these problems."
        )


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
