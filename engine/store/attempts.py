"""Attempts (processes of a run) and the workers that start them."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select, update

from engine.errors import StoreError
from engine.store import schema
from engine.store.database import Database
from engine.store.records import Attempt, Worker
from engine.store.rows import columns_of, upsert
from engine.store.status import LIVE
from engine.store.text import clean_text


def attempt_started(
    db: Database,
    attempt_id: int,
    *,
    pid: int,
    pid_started_at: float,
    boot_id: str | None,
    log_path: str | None = None,
) -> None:
    """Record which process an attempt is.

    Raises:
        StoreError: if there is no such attempt.
    """
    values: dict[str, Any] = {"pid": pid, "pid_started_at": pid_started_at, "boot_id": boot_id}
    if log_path is not None:
        values["log_path"] = log_path
    with db.write() as connection:
        found = connection.execute(
            update(schema.attempt).where(schema.attempt.c.attempt_id == attempt_id).values(values)
        )
        if found.rowcount == 0:
            raise StoreError(f"attempt={attempt_id} does not exist; claim a run first")


def heartbeat(db: Database, attempt_id: int, now: datetime, seconds: float | None = None) -> bool:
    """Say that an attempt lives, and how many seconds it has run; False if it has been declared over meanwhile."""
    values: dict[str, Any] = {"heartbeat_at": now} | ({} if seconds is None else {"seconds": seconds})
    attempt = schema.attempt
    with db.write() as connection:
        run_id = connection.execute(
            update(attempt)
            .where(attempt.c.attempt_id == attempt_id, attempt.c.ended_at.is_(None))
            .values(values)
            .returning(attempt.c.run_id)
        ).scalar()
        if run_id is not None and seconds is not None:
            connection.execute(_sum_seconds(run_id))
    return run_id is not None


def attempt_ended(
    db: Database,
    attempt_id: int,
    *,
    outcome: str,
    traceback: str | None = None,
    exit_code: int | None = None,
    seconds: float | None = None,
    now: datetime | None = None,
) -> bool:
    """Record how an attempt ended; the first word stands. Return whether this call was the first.

    The process itself reports its outcome, the worker then only adds the exit code. Without `seconds` those
    of the last heartbeat stay.
    """
    attempt = schema.attempt
    values: dict[str, Any] = {
        "ended_at": now or datetime.now(UTC),
        "outcome": outcome,
        "traceback": clean_text(traceback),
        "exit_code": exit_code,
    }
    if seconds is not None:
        values["seconds"] = seconds
    mine = attempt.c.attempt_id == attempt_id
    with db.write() as connection:
        run_id = connection.execute(
            update(attempt).where(mine, attempt.c.ended_at.is_(None)).values(values).returning(attempt.c.run_id)
        ).scalar()
        if run_id is not None:
            connection.execute(_sum_seconds(run_id))
        elif exit_code is not None:
            connection.execute(update(attempt).where(mine, attempt.c.exit_code.is_(None)).values(exit_code=exit_code))
    return run_id is not None


def live_attempts(db: Database) -> list[Attempt]:
    """Return the attempts without an end whose run is starting, running or stopping, oldest first."""
    attempt, run = schema.attempt, schema.run
    query = (
        select(*columns_of(Attempt, attempt))
        .join(run, run.c.run_id == attempt.c.run_id)
        .where(attempt.c.ended_at.is_(None), run.c.status.in_(LIVE))
        .order_by(attempt.c.attempt_id)
    )
    with db.read() as connection:
        return [Attempt(*row) for row in connection.execute(query)]


def worker_heartbeat(db: Database, worker_id: str, host: str, pid: int, now: datetime) -> None:
    """Say that a worker lives."""
    values = {"worker_id": worker_id, "host": host, "pid": pid, "started_at": now, "heartbeat_at": now}
    with db.write() as connection:
        connection.execute(upsert(connection, schema.worker, keep=("started_at",)), values)


def workers(db: Database) -> list[Worker]:
    """Return every worker that ever reported itself, the latest heartbeat first."""
    query = select(*columns_of(Worker, schema.worker)).order_by(schema.worker.c.heartbeat_at.desc())
    with db.read() as connection:
        return [Worker(*row) for row in connection.execute(query)]


def _sum_seconds(run_id: str) -> Any:
    total = select(func.sum(schema.attempt.c.seconds)).where(schema.attempt.c.run_id == run_id).scalar_subquery()
    return update(schema.run).where(schema.run.c.run_id == run_id).values(seconds=total)
