from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from engine.errors import StoreError, TransitionError
from engine.store import queue, reads, schema
from engine.store.database import Database
from engine.store.records import RunStatus
from engine.store.status import ENDED, LIVE, STATUSES, TRANSITIONS, sources

ALLOWED = {
    ("queued", "starting"),
    ("queued", "stopped"),
    ("queued", "failed"),
    ("starting", "running"),
    ("starting", "stopping"),
    ("starting", "succeeded"),
    ("starting", "failed"),
    ("starting", "stopped"),
    ("starting", "lost"),
    ("running", "stopping"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "stopped"),
    ("running", "lost"),
    ("stopping", "succeeded"),
    ("stopping", "failed"),
    ("stopping", "stopped"),
    ("stopping", "lost"),
    ("failed", "queued"),
    ("stopped", "queued"),
    ("lost", "queued"),
}


def put(db: Database, run_id: str, status: RunStatus) -> None:
    with db.write() as connection:
        connection.execute(update(schema.run).where(schema.run.c.run_id == run_id).values(status=status))


def status(db: Database, run_id: str) -> RunStatus:
    run = reads.get_run(db, run_id)
    assert run is not None
    return run.status


def test_the_table_allows_these_21_moves_and_no_other():
    assert {(old, new) for old, news in TRANSITIONS.items() for new in news} == ALLOWED
    assert {"queued", *LIVE, *ENDED} == set(STATUSES)


def test_every_allowed_move_is_made(db: Database, run_id: str):
    for old, new in sorted(ALLOWED):
        put(db, run_id, old)
        queue.transition(db, run_id, new)
        assert status(db, run_id) == new


def test_every_other_move_is_refused_and_changes_nothing(db: Database, run_id: str):
    refused = [(old, new) for old in STATUSES for new in STATUSES if (old, new) not in ALLOWED]
    assert len(refused) == 64 - 21
    for old, new in refused:
        put(db, run_id, old)
        with pytest.raises(TransitionError, match=f"is {old} and cannot become {new}"):
            queue.transition(db, run_id, new)
        assert status(db, run_id) == old


def test_the_sources_of_a_status_are_read_off_the_table():
    assert sources("queued") == ("failed", "stopped", "lost")
    assert sources("starting") == ("queued",)


def test_a_run_that_does_not_exist_is_named(db: Database):
    with pytest.raises(StoreError, match="run=nobody does not exist"):
        queue.transition(db, "nobody", "running")


def test_times_and_error_follow_the_status(db: Database, run_id: str):
    def at(minute: int) -> datetime:
        return datetime(2026, 1, 1, 12, minute, tzinfo=UTC)

    queue.transition(db, run_id, "starting", now=at(1))
    queue.transition(db, run_id, "running", now=at(2))
    queue.transition(db, run_id, "failed", now=at(3), error="ValueError: \x00")
    run = reads.get_run(db, run_id)
    assert run is not None
    assert (run.started_at, run.ended_at, run.error) == (at(1), at(3), "ValueError: \u2400")
    queue.requeue(db, run_id)
    run = reads.get_run(db, run_id)
    assert run is not None
    assert (run.started_at, run.ended_at, run.error) == (at(1), None, None)
