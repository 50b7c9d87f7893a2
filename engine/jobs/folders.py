"""Where the files of a run lie."""

import os
from collections.abc import Mapping
from pathlib import Path

from engine.places import folder_beside

RUNS_VARIABLE = "GRPO_LAB_RUNS_DIR"


def runs_folder(database_url: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of all runs: GRPO_LAB_RUNS_DIR, else `runs` beside a database file, else `runs` here."""
    return folder_beside("runs", database_url, chosen=environment.get(RUNS_VARIABLE))


def run_folder(database_url: str, run_id: str) -> Path:
    """Return the folder of one run."""
    return runs_folder(database_url) / run_id


def log_path(folder: Path, number: int) -> Path:
    """Return the log of a run's attempt `number` (from 1)."""
    return folder / "logs" / f"attempt-{number}.log"


def checkpoints_folder(folder: Path) -> Path:
    """Return the folder of a run's checkpoints."""
    return folder / "checkpoints"


def log_tail(path: Path, lines: int = 20, limit: int = 16_384) -> str:
    """Return the last lines of a log, read from its last `limit` bytes; empty if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
