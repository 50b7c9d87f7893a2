"""What is known of the memory that a run will find, which no worker reports."""

import shutil
import socket
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from dashboard.data.workers import SILENCE
from engine.config import RunConfig
from engine.store.database import Database
from engine.store.queue import workers

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def known_memory(db: Database, config: RunConfig) -> int | None:
    """Return the bytes of the memory that a run on a CPU of this machine shares with everything else on it.

    None where the run may go elsewhere: to a GPU, whose memory no worker reports, or to a worker on another machine.
    """
    if config.model.device == "cuda" or (config.model.device == "auto" and _has_gpu()) or _works_elsewhere(db):
        return None
    return host_memory()


def lacks_gpu(db: Database, config: RunConfig) -> str | None:
    """Return a sentence about the setting that needs a GPU where the run will find none; None where nothing lacks."""
    needs = []
    if config.model.device == "cuda":
        needs.append("model.device=cuda")
    if config.optimizer.name == "adamw_8bit" and config.total_steps:
        needs.append("optimizer.name=adamw_8bit")
    if not needs or _has_gpu() or _works_elsewhere(db):
        return None
    verb = "needs" if len(needs) == 1 else "need"
    return f"{' and '.join(needs)} {verb} a CUDA GPU, and this machine has none: the run would fail as it starts."


def host_memory(limit: Path = _CGROUP_LIMIT) -> int:
    """Return the bytes of this machine's memory, or of its container's share if that is less."""
    total = int(psutil.virtual_memory().total)
    try:
        return min(total, int(limit.read_text("ascii")))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return total


def _has_gpu() -> bool:
    """Return whether `auto` may find a GPU: the driver's program is there, and torch is not built for CPUs alone."""
    if shutil.which("nvidia-smi") is None:
        return False
    try:
        return not version("torch").endswith("+cpu")
    except PackageNotFoundError:
        return False


def _works_elsewhere(db: Database) -> bool:
    oldest = datetime.now(UTC) - SILENCE
    return any(worker.host != socket.gethostname() for worker in workers(db) if worker.heartbeat_at >= oldest)
