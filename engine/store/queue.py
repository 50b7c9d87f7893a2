"""The queue: runs are put in, claimed by workers, asked to stop, put back."""

import secrets
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from engine.config import RunConfig
from engine.errors import StoreError
from engine.store import schema
from engine.store.attempts import (
    attempt_ended,
    attempt_started,
    heartbeat,
    live_attempts,
    worker_heartbeat,
    workers,
)
from engine.store.database import Database
from engine.store.records import Claim, RunStatus
from engine.store.starts import settled
from engine.store.status import ENDED, TRANSITIONS, move
from engine.store.text import clean_text

__all__ = [
    "TRANSITIONS",
    "archive",
    "attempt_ended",
    "attempt_started",
    "claim",
    "claim_next",
    "enqueue",
    "heartbeat",
    "live_attempts",
    "request_stop",
    "requeue",
    "stop_requested",
    "transition",
    "worker_heartbeat",
    "workers",
]

# No 0/o, 1/i/l: ids are read aloud and typed. The first is a letter: `1e5` would be read as a number.
_LETTERS = "abcdefghjkmnpqrstuvwxyz"
_SIGNS = _LETTERS + "23456789"
_TRIES = 8


def enqueue(
    db: Database,
    config: RunConfig,
    *,
    name: str,
    preset: str | None = None,
    launch_token: str | None = None,
    parent: tuple[str, int] | None = None,
) -> str:
    """Put a run into the queue and return its id; with a `launch_token` used before, the first run's id.

    A fork (`parent` is a run and one of its steps) counts its steps on from the parent's.

    Paths in the config become absolute, and a run in `model.init_from` is named by its full id.

    Raises:
        StoreError: if the name is empty, or the parent or the run to begin with does not exist.
        ConfigError: if the run to begin with has no checkpoint of the step, or trains another model.
    """
    name = clean_text(name).strip()
    if not name:
        raise StoreError("name='' is empty; give the run a name")
    config = settled(db, config, fork=parent is not None)
    for attempt in range(_TRIES):
        try:
            with db.write() as connection:
                return _insert(connection, config, name, preset, launch_token, parent)
        except IntegrityError:
            # PostgreSQL lets two inserts pick one ordinal, or one token, at the same time: look again.
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("unreachable")


def _insert(
    connection: Connection,
    config: RunConfig,
    name: str,
    preset: str | None,
    launch_token: str | None,
    parent: tuple[str, int] | None,
) -> str:
    run = schema.run
    if launch_token is not None:
        first: str | None = connection.execute(select(run.c.run_id).where(run.c.launch_token == launch_token)).scalar()
        if first is not None:
            return first
    parent_run_id, parent_step = parent or (None, None)
    if (
        parent_run_id is not None
        and not connection.execute(select(run.c.run_id).where(run.c.run_id == parent_run_id)).scalar()
    ):
        raise StoreError(f"parent={parent_run_id} does not exist; `grpo-lab ls` lists the runs")
    now = datetime.now(UTC)
    run_id = secrets.choice(_LETTERS) + "".join(secrets.choice(_SIGNS) for _ in range(7))
    connection.execute(
        insert(run).values(
            run_id=run_id,
            ordinal=select(func.coalesce(func.max(run.c.ordinal), 0) + 1).scalar_subquery(),
            name=name,
            status="queued",
            config=config.model_dump(mode="json"),
            preset=preset,
            seed=config.seed,
            arm=config.arm_digest(),
            launch_token=launch_token,
            created_at=now,
            queued_at=now,
            step=parent_step or 0,
            total_steps=config.total_steps,
            seconds=0.0,
            parent_run_id=parent_run_id,
            parent_step=parent_step,
            archived=False,
            stop_requested=False,
            attempts=0,
        )
    )
    return run_id


def claim_next(db: Database, *, worker_id: str, host: str, now: datetime) -> Claim | None:
    """Take the run that has waited longest and make its attempt row; None when nothing waits.

    However many workers ask at once, each run goes to one of them.
    """
    run = schema.run
    waiting = (
        select(run.c.run_id)
        .where(run.c.status == "queued")
        .order_by(run.c.queued_at, run.c.ordinal)
        .limit(1)
        # PostgreSQL: take the next free row instead of waiting for another worker's. SQLite has one writer.
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    return _claim(db, waiting, worker_id, host, now)


def claim(db: Database, run_id: str, *, worker_id: str, host: str, now: datetime) -> Claim | None:
    """Take one given run; None when it is not waiting (any more)."""
    return _claim(db, run_id, worker_id, host, now)


def _claim(db: Database, which: Any, worker_id: str, host: str, now: datetime) -> Claim | None:
    run = schema.run
    taking = (
        update(run)
        .where(run.c.run_id == which, run.c.status == "queued")
        .values(
            status="starting",
            attempts=run.c.attempts + 1,
            started_at=func.coalesce(run.c.started_at, now),
        )
        .returning(run.c.run_id, run.c.attempts, run.c.step)
    )
    with db.write() as connection:
        taken = connection.execute(taking).one_or_none()
        if taken is None:
            return None
        made = connection.execute(
            insert(schema.attempt)
            .values(
                run_id=taken.run_id,
                number=taken.attempts,
                worker_id=worker_id,
                host=host,
                started_at=now,
                heartbeat_at=now,
                from_step=taken.step,
                seconds=0.0,
            )
            .returning(schema.attempt.c.attempt_id)
        ).scalar_one()
    return Claim(run_id=taken.run_id, attempt_id=made, number=taken.attempts)


def transition(
    db: Database, run_id: str, to: RunStatus, *, error: str | None = None, now: datetime | None = None
) -> None:
    """Move a run to another status. `error` (the traceback's last line) is kept with an ended run.

    Raises:
        TransitionError: if `TRANSITIONS` does not allow it from the present status.
        StoreError: if there is no such run.
    """
    with db.write() as connection:
        move(connection, run_id, to, now or datetime.now(UTC), clean_text(error))


def request_stop(db: Database, run_id: str) -> None:
    """Ask a run to stop: a waiting one is stopped at once, a live one goes to `stopping`; asking twice is allowed.

    Raises:
        TransitionError: if the run has ended.
        StoreError: if there is no such run.
    """
    with db.write() as connection:
        # Locked, so that on PostgreSQL no worker claims the run between the look and the move.
        status = connection.execute(
            select(schema.run.c.status).where(schema.run.c.run_id == run_id).with_for_update()
        ).scalar()
        if status != "stopping":
            move(connection, run_id, "stopped" if status == "queued" else "stopping", datetime.now(UTC))


def requeue(db: Database, run_id: str) -> None:
    """Put a failed, stopped or lost run back into the queue, to go on from its last checkpoint.

    Raises:
        TransitionError: if it is in another status.
        StoreError: if there is no such run.
    """
    transition(db, run_id, "queued")


def archive(db: Database, run_id: str, archived: bool = True) -> None:
    """Hide an ended run from the list, or show it again.

    Raises:
        StoreError: if the run has not ended, or does not exist.
    """
    run = schema.run
    with db.write() as connection:
        status = connection.execute(select(run.c.status).where(run.c.run_id == run_id).with_for_update()).scalar()
        if status is None:
            raise StoreError(f"run={run_id} does not exist; `grpo-lab ls` lists the runs")
        if archived and status not in ENDED:
            raise StoreError(f"run={run_id} is {status}; only a run that has ended can be archived, so stop it first")
        connection.execute(update(run).where(run.c.run_id == run_id).values(archived=archived))


def stop_requested(db: Database, run_id: str) -> bool:
    """Return whether the run has been asked to stop; True as well when it no longer exists."""
    with db.read() as connection:
        asked = connection.execute(select(schema.run.c.stop_requested).where(schema.run.c.run_id == run_id)).scalar()
    return asked is None or bool(asked)
