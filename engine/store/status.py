"""The one table of how a run may go from status to status."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import Connection, func, select, update

from engine.errors import StoreError, TransitionError
from engine.store import schema
from engine.store.records import RunStatus

TRANSITIONS: Mapping[RunStatus, tuple[RunStatus, ...]] = {
    "queued": ("starting", "stopped", "failed"),
    "starting": ("running", "stopping", "succeeded", "failed", "stopped", "lost"),
    "running": ("stopping", "succeeded", "failed", "stopped", "lost"),
    "stopping": ("succeeded", "failed", "stopped", "lost"),
    "succeeded": (),
    "failed": ("queued",),
    "stopped": ("queued",),
    "lost": ("queued",),
}
STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)
LIVE: tuple[RunStatus, ...] = ("starting", "running", "stopping")
ENDED: tuple[RunStatus, ...] = ("succeeded", "failed", "stopped", "lost")


def sources(to: RunStatus) -> tuple[RunStatus, ...]:
    """Return the statuses from which a run may go to `to`."""
    return tuple(status for status in STATUSES if to in TRANSITIONS[status])


def move(connection: Connection, run_id: str, to: RunStatus, now: datetime, error: str | None = None) -> None:
    """Set the status in one guarded UPDATE, with the times and flags that go with it.

    Raises:
        TransitionError: if the run's present status does not allow it.
        StoreError: if there is no such run.
    """
    values: dict[str, Any] = {"status": to}
    if to == "queued":
        values |= {"queued_at": now, "ended_at": None, "error": None, "stop_requested": False}
    if to in ("starting", "running"):
        values["started_at"] = func.coalesce(schema.run.c.started_at, now)
    if to == "stopping":
        values["stop_requested"] = True
    if to in ENDED:
        values |= {"ended_at": now, "error": error}
    guarded = update(schema.run).where(schema.run.c.run_id == run_id, schema.run.c.status.in_(sources(to)))
    if connection.execute(guarded.values(values)).rowcount == 0:
        refuse(connection, run_id, to)


def refuse(connection: Connection, run_id: str, to: RunStatus) -> None:
    """Raise the error that says why the run cannot go to `to`."""
    status: RunStatus | None = connection.execute(
        select(schema.run.c.status).where(schema.run.c.run_id == run_id)
    ).scalar()
    if status is None:
        raise StoreError(f"run={run_id} does not exist; `grpo-lab ls` lists the runs")
    allowed = ", ".join(TRANSITIONS[status]) or "nothing: it is final"
    raise TransitionError(f"run={run_id} is {status} and cannot become {to}; from {status} it can become {allowed}")
