"""The folder of a person's own rewards: NAME.py is the reward `own:NAME`. No other place is looked in."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from engine.errors import RewardError
from engine.places import folder_beside

REWARDS_VARIABLE = "GRPO_LAB_REWARDS_DIR"
OWN = "own:"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def rewards_folder(database_url: str | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of own rewards: GRPO_LAB_REWARDS_DIR, else `rewards` beside a database file, else here.

    `database_url` is by default that of the environment (GRPO_LAB_DATABASE_URL), else the file in the current folder.
    """
    url = database_url or environment.get("GRPO_LAB_DATABASE_URL") or "sqlite:///runs.db"
    return folder_beside("rewards", url, chosen=environment.get(REWARDS_VARIABLE))


def own_names(folder: Path) -> list[str]:
    """Return the names of the rewards in `folder`, in order; none where there is no such folder."""
    return sorted(path.stem for path in folder.glob("*.py") if _NAME.fullmatch(path.stem) and path.is_file())


def own_path(name: str, folder: Path) -> Path:
    """Return where the reward `own:NAME` lies, whether or not it is there.

    Raises:
        RewardError: if `name` is no plain name.
    """
    if _NAME.fullmatch(name) is None:
        raise RewardError(
            f"reward={OWN}{name}: a name has letters, digits and _ alone and is never a path; name a file of {folder} "
            "without its .py"
        )
    return folder / f"{name}.py"
