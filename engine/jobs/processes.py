"""What the worker does to processes, so that a test can put something else in their place."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from engine.jobs.process import Child, Identity


class Processes(Protocol):
    """What the worker does to processes; the module `engine.jobs.process` is the real one."""

    def start_child(self, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> Child:
        """Start a child in a session of its own."""

    def is_alive(self, identity: Identity) -> bool:
        """Return whether this very process still runs."""

    def terminate(self, identity: Identity) -> bool:
        """Send SIGTERM."""

    def kill_tree(self, identity: Identity) -> bool:
        """Send SIGKILL to the process and all below it."""

    def kill_strays(self, identity: Identity, attempt_id: str) -> int:
        """Kill what a dead run left behind."""

    def environment_of(self, identity: Identity) -> dict[str, str]:
        """Return the environment the process was started with."""
