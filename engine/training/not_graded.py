"""Completions that the reward could not judge: told once for each reason, and too many of them end the run."""

import re
from collections import Counter
from collections.abc import Sequence

from engine.errors import RewardError
from engine.store.recorder import Recorder
from engine.types import Reward

MOST_EVENTS = 20  # of one process of a run
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


class NotGradedWatch:
    """Looks at the rewards of every step. What has been told is forgotten when the process ends."""

    def __init__(self, limit: float, recorder: Recorder) -> None:
        self._limit, self._recorder = limit, recorder
        self._told: set[str] = set()

    def look(self, judged: Sequence[Reward], *, step: int) -> None:
        """Record a warning for each new reason why completions of `step` were not graded.

        Reasons that differ in what stands in quotes alone are one.

        Raises:
            RewardError: if a greater share than `stopping.max_not_graded` was not graded.
        """
        reasons = Counter(reward.reason for reward in judged if reward.value is None)
        if reasons.total() > self._limit * len(judged):
            raise RewardError(_refusal(reasons, len(judged), self._limit, step))
        for reason, count in reasons.most_common():
            kind = _QUOTED.sub("…", reason)
            if kind in self._told or len(self._told) == MOST_EVENTS:
                continue
            self._told.add(kind)
            last = "; further reasons are not told" if len(self._told) == MOST_EVENTS else ""
            message = f"{count} of {len(judged)} completions were not graded: {reason or 'no reason given'}{last}"
            self._recorder.event("not_graded", message, step=step, level="warning")


def _refusal(reasons: Counter[str], n: int, limit: float, step: int) -> str:
    (reason, count), total = reasons.most_common(1)[0], reasons.total()
    return (
        f"stopping.max_not_graded={limit:g}: {total} of the {n} completions of step {step} ({total / n:.0%}) were not "
        f"graded, {count} of them for: {reason or 'no reason given'}. Correct the reward (`grpo-lab reward test` "
        "tries one of your own on the completions of this step) and resume, or raise stopping.max_not_graded"
    )
