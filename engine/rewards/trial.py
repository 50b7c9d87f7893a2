"""A trial of a reward of the person's own on completions that are there already."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.rewards.contract import not_graded
from engine.rewards.own import Judged, OwnReward
from engine.rewards.pool import GraderPool
from engine.types import Problem, Reward

Item = tuple[str, str, Problem]


@dataclass(frozen=True, slots=True)
class Trial:
    """The rewards in the order of the items, the seconds that each took, and those of the whole, loading included."""

    rewards: tuple[Reward, ...]
    seconds: tuple[float, ...]
    total_seconds: float

    @property
    def values(self) -> list[float]:
        """The values there are."""
        return [reward.value for reward in self.rewards if reward.value is not None]

    @property
    def errors(self) -> list[tuple[str, int]]:
        """Every distinct reason for which completions were not graded, with their number, the commonest first."""
        return Counter(reward.reason for reward in self.rewards if reward.verdict == "not_graded").most_common()


def try_reward(reward: OwnReward, items: Sequence[Item], *, pool: GraderPool | None = None) -> Trial:
    """Return what `reward` makes of (completion, gold, problem); `gold` stands for that of the problem.

    Where the file cannot be loaded, every completion is not graded for that reason.

    Raises:
        RewardError: if no grader process can be started.
    """
    started = time.perf_counter()
    fault = reward.load_fault(pool=pool)
    if fault is not None:
        judged = [Judged(not_graded(fault), 0.0) for _ in items]
    else:
        asked = [(text, Problem(each.problem_id, each.question, gold, each.split)) for text, gold, each in items]
        judged = reward.judge(asked, pool=pool)
    total = time.perf_counter() - started
    return Trial(tuple(each.reward for each in judged), tuple(each.seconds for each in judged), total)
