from datetime import UTC, datetime, timedelta

import pytest

from engine.errors import StoreError
from engine.store import queue, reads
from engine.store.database import Database
from engine.store.records import Attempt

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def attempt_id(db: Database, run_id: str) -> int:
    claim = queue.claim(db, run_id, worker_id="worker-1", host="here", now=NOON)
    assert claim is not None
    return claim.attempt_id


def attempt(db: Database, run_id: str) -> Attempt:
    return reads.attempts(db, run_id)[-1]


def seconds(db: Database, run_id: str) -> float:
    run = reads.get_run(db, run_id)
    assert run is not None
    return run.seconds


def test_a_started_attempt_says_which_process_it_is(db: Database, run_id: str, attempt_id: int):
    queue.attempt_started(
        db, attempt_id, pid=4321, pid_started_at=1767268800.25, boot_id="boot", log_path="logs/attempt-1.log"
    )
    found = attempt(db, run_id)
    assert (found.pid, found.pid_started_at, found.boot_id, found.log_path) == (
        4321,
        1767268800.25,
        "boot",
        "logs/attempt-1.log",
    )


def test_an_attempt_that_was_never_made_cannot_start(db: Database):
    with pytest.raises(StoreError, match="attempt=99 does not exist"):
        queue.attempt_started(db, 99, pid=1, pid_started_at=1.0, boot_id=None)


def test_a_heartbeat_moves_the_time_and_the_seconds(db: Database, run_id: str, attempt_id: int):
    assert queue.heartbeat(db, attempt_id, NOON + timedelta(seconds=2), seconds=1.5)
    found = attempt(db, run_id)
    assert (found.heartbeat_at, found.seconds) == (NOON + timedelta(seconds=2), 1.5)
    assert seconds(db, run_id) == 1.5


def test_a_heartbeat_after_the_end_says_that_it_is_over(db: Database, run_id: str, attempt_id: int):
    queue.attempt_ended(db, attempt_id, outcome="lost")
    assert not queue.heartbeat(db, attempt_id, NOON + timedelta(minutes=1))
    assert attempt(db, run_id).heartbeat_at == NOON


def test_the_first_end_stands_and_the_exit_code_may_follow(db: Database, run_id: str, attempt_id: int):
    assert queue.attempt_ended(db, attempt_id, outcome="failed", traceback="ValueError: a\ud800", seconds=3.0)
    assert not queue.attempt_ended(db, attempt_id, outcome="crashed", traceback="?", exit_code=1, seconds=9.0)
    assert not queue.attempt_ended(db, attempt_id, outcome="crashed", exit_code=-9)
    found = attempt(db, run_id)
    assert (found.outcome, found.traceback, found.exit_code, found.seconds) == ("failed", "ValueError: a\ufffd", 1, 3.0)


def test_the_seconds_of_a_run_are_the_sum_over_its_attempts(db: Database, run_id: str, attempt_id: int):
    queue.heartbeat(db, attempt_id, NOON, seconds=10.0)
    queue.attempt_ended(db, attempt_id, outcome="crashed")  # killed: the last heartbeat counts
    queue.transition(db, run_id, "failed")
    queue.requeue(db, run_id)
    claim = queue.claim(db, run_id, worker_id="worker-1", host="here", now=NOON)
    assert claim is not None
    queue.attempt_ended(db, claim.attempt_id, outcome="succeeded", seconds=2.5)
    assert seconds(db, run_id) == 12.5


def test_live_attempts_are_those_without_an_end_of_runs_without_an_end(db: Database, run_id: str, attempt_id: int):
    assert [live.attempt_id for live in queue.live_attempts(db)] == [attempt_id]
    queue.transition(db, run_id, "lost")
    assert queue.live_attempts(db) == []


def test_a_worker_is_one_row_with_its_first_and_last_sign_of_life(db: Database):
    queue.worker_heartbeat(db, "worker-1", "here", 7, NOON)
    queue.worker_heartbeat(db, "worker-2", "here", 8, NOON + timedelta(seconds=1))
    queue.worker_heartbeat(db, "worker-1", "here", 7, NOON + timedelta(seconds=5))
    first, second = queue.workers(db)
    assert (first.worker_id, first.started_at, first.heartbeat_at) == ("worker-1", NOON, NOON + timedelta(seconds=5))
    assert second.worker_id == "worker-2"
