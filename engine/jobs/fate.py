"""What has become of an attempt, judged from what is known of its process."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from engine.store.records import Attempt

Fate = Literal["alive", "crashed", "lost", "never_started"]

REMOTE_SILENCE = timedelta(seconds=60)
"""Without a heartbeat for this long, an attempt on another machine is lost. Covers clocks that differ a little."""

START_PATIENCE = timedelta(seconds=30)
"""An attempt whose worker died before it noted a process may still have one, which reports itself within this time."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the judge sees: which machine and boot it is on, and whether the process lives.

    `in_hand`: the worker that claimed the run is there and will start the process, or has.
    """

    now: datetime
    host: str
    boot_id: str
    process_alive: bool
    in_hand: bool


def fate_of(attempt: Attempt, seen: Surroundings) -> Fate:
    """Return what has become of an attempt that has not written its own end.

    On this machine the process itself is the evidence: gone without a word is `crashed`, another boot is `lost`.
    On another machine only the heartbeat is.
    """
    if attempt.host != seen.host:
        return "lost" if seen.now - attempt.heartbeat_at > REMOTE_SILENCE else "alive"
    if attempt.pid is None:
        waited = seen.now - attempt.started_at > START_PATIENCE
        return "never_started" if waited and not seen.in_hand else "alive"
    if attempt.boot_id != seen.boot_id:
        return "lost"
    return "alive" if seen.process_alive else "crashed"
