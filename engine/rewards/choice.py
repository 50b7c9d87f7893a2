"""A reward by its name."""

from functools import lru_cache
from pathlib import Path

from engine.errors import RewardError
from engine.rewards.folder import OWN, own_names, rewards_folder
from engine.rewards.own import OwnReward, read_own
from engine.rewards.verifiers import REWARDS, RewardFn


def reward_names() -> list[str]:
    """Return the names that `prompt.reward` may have: the built-in ones, then those of the person's own files."""
    return [*sorted(REWARDS), *(OWN + name for name in own_names(rewards_folder()))]


def reward_named(name: str) -> RewardFn:
    """Return the reward that `prompt.reward` names; `own:NAME` is read from its file once in a process.

    Raises:
        RewardError: if there is none of that name, or its file cannot be loaded, which a grader process tries.
    """
    if name.startswith(OWN):
        return _loaded(name.removeprefix(OWN), rewards_folder())
    if name not in REWARDS:
        folder, known = rewards_folder(), reward_names()
        raise RewardError(
            f"prompt.reward={name} is not a reward; choose one of {', '.join(known)}"
            + ("" if own_names(folder) else f", or {OWN}NAME for a file NAME.py in {folder}")
        )
    return REWARDS[name]


@lru_cache(maxsize=8)
def _loaded(name: str, folder: Path) -> OwnReward:
    own = read_own(name, folder)
    fault = own.load_fault()
    if fault is not None:
        raise RewardError(f"prompt.reward={OWN}{name} cannot be loaded: {fault}; correct {own.path}")
    return own
