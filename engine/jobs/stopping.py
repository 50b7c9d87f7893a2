"""Stopping a run that does not stop by itself: asked, then SIGTERM, then SIGKILL."""

from dataclasses import dataclass
from typing import Literal

Measure = Literal["wait", "terminate", "kill"]


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds from the request to SIGTERM, and from there to SIGKILL of the whole tree.

    The second is long enough to finish a step and save a checkpoint.
    """

    terminate_after: float = 20.0
    kill_after: float = 60.0


class StopWatch:
    """Remembers since when each attempt has been asked to stop, on a clock that only goes forward."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._asked: dict[int, float] = {}
        self._terminated: dict[int, float] = {}

    def measure_for(self, attempt_id: int, now: float) -> Measure:
        """Return what is due at `now` for an attempt that is asked to stop; SIGTERM is due once."""
        asked = self._asked.setdefault(attempt_id, now)
        terminated = self._terminated.get(attempt_id)
        if terminated is not None:
            return "kill" if now - terminated >= self._patience.kill_after else "wait"
        if now - asked < self._patience.terminate_after:
            return "wait"
        self._terminated[attempt_id] = now
        return "terminate"

    def forget(self, attempt_id: int) -> None:
        """Drop what is known about an attempt that has ended."""
        self._asked.pop(attempt_id, None)
        self._terminated.pop(attempt_id, None)
