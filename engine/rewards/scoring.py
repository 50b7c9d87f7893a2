"""Scores whole groups, and survives a reward that fails on one completion."""

from collections.abc import Sequence

from engine.rewards.contract import not_graded, whole_reward
from engine.rewards.own import OwnReward
from engine.rewards.verifiers import RewardFn, Verifier
from engine.types import Group, Reward


def score_groups(groups: Sequence[Group], reward_fn: RewardFn) -> tuple[tuple[Reward, ...], ...]:
    """The reward of every completion, shape (P, G).

    A completion on which `reward_fn` raises, or returns anything but a whole Reward, is recorded as
    "not_graded" with value None and the reason; the others are scored all the same. A verifier judges all of
    them at once: those that only an algebra system can judge side by side, each under a time limit. So does a reward of
    the person's own, which sees the whole problem.
    """
    texts = [(completion.text, group.problem) for group in groups for completion in group.completions]
    if isinstance(reward_fn, OwnReward):
        rewards = iter([judged.reward for judged in reward_fn.judge(texts)])
    elif isinstance(reward_fn, Verifier):
        rewards = iter(reward_fn.score([(text, problem.gold) for text, problem in texts]))
    else:
        rewards = iter([_score(text, problem.gold, reward_fn) for text, problem in texts])
    return tuple(tuple(next(rewards) for _ in group.completions) for group in groups)


def _score(text: str, gold: str, reward_fn: RewardFn) -> Reward:
    try:
        return whole_reward(reward_fn(text, gold))
    except Exception as error:  # whatever a reward raises is kept as the reason, and costs one completion
        return not_graded(f"{type(error).__name__}: {error}")
