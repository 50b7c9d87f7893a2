"""Judges stored answers again, as a run judges new ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.config import RunConfig
from engine.config.sections import RewardConfig
from engine.rewards.scoring import score_groups
from engine.rewards.verifiers import RewardFn, Verifier
from engine.types import Group, Reward


@dataclass(frozen=True, slots=True)
class Judged:
    """A reward, and the seconds that its judging took; None where answers are not timed one by one."""

    reward: Reward
    seconds: float | None


def judge_again(groups: Sequence[Group], reward_fn: RewardFn) -> list[Judged]:
    """Return what `reward_fn` says of every completion, group by group.

    Raises:
        RewardError: if a grader process is needed and none can be started.
    """
    if isinstance(reward_fn, Verifier):
        pairs = [(completion.text, group.problem.gold) for group in groups for completion in group.completions]
        return [Judged(reward, seconds) for reward, seconds in reward_fn.timed(pairs)]
    return [Judged(reward, None) for members in score_groups(groups, reward_fn) for reward in members]


def stores_bare_values(config: RunConfig) -> bool:
    """Whether the stored reward of a training completion is what the reward function gave, with nothing beside it.

    Elsewhere (weights, placebos, penalties) it cannot be compared with what a grader says, and verdicts alone are.
    """
    return config.reward == RewardConfig() and config.truncation.overlong_buffer is None
