"""A reward of the person's own: a file in the folder of rewards, run in grader processes and nowhere else."""

import atexit
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import RewardError
from engine.rewards.contract import not_graded
from engine.rewards.folder import OWN, own_names, own_path
from engine.rewards.pool import GraderPool, OwnQuestion
from engine.types import Problem, Reward

MEGABYTES = 4096  # of address space: imports reserve far more than they use
_pool = GraderPool(megabytes=MEGABYTES, own=True)
atexit.register(_pool.close)


@dataclass(frozen=True, slots=True)
class Judged:
    """The reward of one completion, and how long the file's function took for it, in seconds."""

    reward: Reward
    seconds: float


@dataclass(frozen=True, slots=True)
class OwnReward:
    """The reward `own:NAME`, with the text that its file had when it was read: a run keeps the code it began with."""

    name: str
    path: Path
    source: str = field(repr=False)

    @property
    def digest(self) -> str:
        """The sha256 of the file, in hexadecimal digits."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    def __call__(self, completion: str, gold: str) -> Reward:
        """Return the reward of one completion to a problem of which `gold` is all there is to know."""
        return self.judge([(completion, Problem("", "", gold))])[0].reward

    def judge(self, items: Sequence[tuple[str, Problem]], *, pool: GraderPool | None = None) -> list[Judged]:
        """Return the rewards of completions to problems, in their order, judged side by side under a time limit each.

        Not graded, with the reason, where the function raises, hangs, needs too much memory or breaks its contract.

        Raises:
            RewardError: if no grader process can be started.
        """
        questions = [OwnQuestion(str(self.path), self.source, text, problem) for text, problem in items]
        return [
            Judged(found.reward or not_graded(found.reason), found.seconds)
            for found in (pool or _pool).judge(questions)
        ]

    def load_fault(self, *, pool: GraderPool | None = None) -> str | None:
        """Load the file in a grader process and return what is wrong with it, with its line; None where nothing is."""
        (found,) = (pool or _pool).judge([OwnQuestion(str(self.path), self.source)])
        return None if found.verdict == "correct" else found.reason


def read_own(name: str, folder: Path) -> OwnReward:
    """Return the reward `own:NAME` of `folder`, its file read and not yet run.

    Raises:
        RewardError: if there is no such folder or file, it is no text, or `name` is no plain name.
    """
    path = own_path(name, folder)
    try:
        return OwnReward(name, path, path.read_bytes().decode())
    except UnicodeDecodeError as error:
        raise RewardError(f"reward={OWN}{name}: {path} is not UTF-8 ({error}); save it as such") from None
    except OSError:
        there = ", ".join(OWN + each for each in own_names(folder)) or "no reward"
        raise RewardError(
            f"reward={OWN}{name}: {path} cannot be read; the folder has {there}. "
            f"`grpo-lab reward new {name}` writes a template there"
        ) from None
