import dataclasses
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from engine.config import RunConfig, parse_config
from engine.config.sections import LoggingConfig
from engine.errors import StoreError
from engine.store import queue, reads, writes
from engine.store.database import Database, open_database
from engine.store.recorder import Recorder
from engine.types import StepRecord
from tests.store.filled import NOON, evaluation_record, step_record


@pytest.fixture
def db(tmp_path: Path, migrated_file: Path) -> Iterator[Database]:
    """A store that gives up on a locked file at once, so that the recorder is what waits."""
    shutil.copy(migrated_file, tmp_path / "runs.db")
    database = open_database(f"sqlite:///{tmp_path / 'runs.db'}", busy_seconds=0.02)
    yield database
    database.close()


@contextmanager
def locked(db: Database) -> Iterator[None]:
    """Another process in the middle of a write."""
    connection = sqlite3.connect(db.engine.url.database or "", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def rich_step(step: int) -> StepRecord:
    return step_record(step, 0.5, random.Random(step))


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def messages(db: Database, run_id: str) -> list[tuple[str, str]]:
    return [(event.kind, event.message) for event in reads.events(db, run_id)]


def steps(db: Database, run_id: str) -> list[int]:
    return reads.metrics(db, [run_id], ["reward"]).steps.tolist()


def test_everything_is_stored_in_the_order_it_was_recorded(db: Database, run_id: str):
    recorder = Recorder(db, run_id)
    recorder.event("started", "here we go")
    recorder.evaluation(evaluation_record(0, 0.25))
    for step in range(1, 11):
        recorder.step(rich_step(step))
    recorder.checkpoint(5, "step-5", 0.25)
    recorder.checkpoint(10, "step-10", 0.5)
    recorder.mark_best(10)
    recorder.delete_checkpoints([5])
    recorder.event("ended", "done", step=10)
    assert recorder.close(timeout=10)
    assert steps(db, run_id) == list(range(1, 11))
    assert reads.steps_with_groups(db, run_id) == list(range(1, 11))
    assert messages(db, run_id) == [("started", "here we go"), ("ended", "done")]
    assert [(row.step, row.is_best) for row in reads.checkpoints(db, run_id)] == [(10, True)]
    assert (recorder.pending, recorder.lost) == (0, ())


def test_training_never_waits_for_a_locked_store(db: Database, run_id: str):
    recorder = Recorder(db, run_id)
    records = [rich_step(step) for step in range(1, 21)]
    with locked(db):
        began = time.perf_counter()
        for record in records:
            recorder.step(record)
        assert time.perf_counter() - began < 0.1
        assert recorder.pending == 20
    assert recorder.close(timeout=10)
    assert steps(db, run_id) == list(range(1, 21))


def test_an_outage_is_told_with_its_length_and_the_steps_that_came_late(db: Database, run_id: str):
    now = [100.0]
    recorder = Recorder(db, run_id, clock=lambda: now[0])
    recorder.step(rich_step(1))
    assert recorder.flush(timeout=5)
    with locked(db):
        recorder.step(rich_step(2))
        wait_until(lambda: recorder._down_since is not None)
        for step in range(3, 7):
            recorder.step(rich_step(step))
        now[0] += 12.0
    assert recorder.close(timeout=10)
    assert messages(db, run_id) == [("store_unreachable", "store was unreachable for 12 s; 5 steps written late")]
    assert steps(db, run_id) == [1, 2, 3, 4, 5, 6]


def test_a_write_that_hung_in_the_end_counts_as_an_outage(db: Database, run_id: str, monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    real = writes.write_step

    def slow(*arguments: object, **options: object) -> None:
        now[0] += 20.0
        real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(writes, "write_step", slow)
    recorder = Recorder(db, run_id, clock=lambda: now[0])
    recorder.step(rich_step(1))
    assert recorder.close(timeout=10)
    assert messages(db, run_id) == [("store_unreachable", "store was unreachable for 20 s; 1 step written late")]


def test_a_flush_that_runs_out_of_time_says_so(db: Database, run_id: str):
    recorder = Recorder(db, run_id)
    with locked(db):
        recorder.step(rich_step(1))
        assert not recorder.flush(timeout=0.05)
        assert recorder.pending == 1
    assert recorder.flush(timeout=5)
    assert recorder.close()


def test_a_close_that_runs_out_of_time_says_so_and_ends_the_thread(db: Database, run_id: str):
    recorder = Recorder(db, run_id)
    with locked(db):
        recorder.step(rich_step(1))
        assert not recorder.close(timeout=0.05)
        wait_until(lambda: not recorder._thread.is_alive())
    assert steps(db, run_id) == []


def test_a_full_buffer_drops_the_oldest_completions_and_no_metric(db: Database, run_id: str):
    recorder = Recorder(db, run_id, capacity=4)
    with locked(db):
        for step in range(1, 11):
            recorder.step(rich_step(step))
    assert recorder.close(timeout=10)
    assert steps(db, run_id) == list(range(1, 11))
    kept = reads.steps_with_groups(db, run_id)
    # The record in hand is never touched, so one more than the capacity may survive.
    assert kept[-4:] == [7, 8, 9, 10]
    assert len(kept) <= 5
    dropped = 10 - len(kept)
    message = f"the store could not keep up; the completions of {dropped} records were dropped"
    assert ("completions_dropped", message) in messages(db, run_id)


def test_evaluations_keep_their_answers_while_steps_can_give(db: Database, run_id: str):
    recorder = Recorder(db, run_id, capacity=2)
    with locked(db):
        recorder.event("first", "held in hand")
        recorder.evaluation(evaluation_record(0, 0.5))
        for step in (1, 2, 3):
            recorder.step(rich_step(step))
    assert recorder.close(timeout=10)
    (evaluation,) = reads.evaluations(db, [run_id])
    assert len(reads.evaluation_answers(db, evaluation.evaluation_id)) == 8
    assert reads.steps_with_groups(db, run_id) == [3]


def test_an_evaluation_without_its_answers_still_says_how_many_there_were(db: Database, run_id: str):
    recorder = Recorder(db, run_id, capacity=1)
    with locked(db):
        recorder.event("first", "held in hand")
        recorder.evaluation(evaluation_record(0, 0.5))
        recorder.evaluation(evaluation_record(10, 0.5))
    assert recorder.close(timeout=10)
    early, late = reads.evaluations(db, [run_id])
    assert (early.n, late.n) == (8, 8)
    assert reads.evaluation_answers(db, early.evaluation_id) == []
    assert len(reads.evaluation_answers(db, late.evaluation_id)) == 8


def test_a_step_with_completions_that_cannot_be_stored_keeps_its_metrics(db: Database, run_id: str):
    good = rich_step(1)
    member = good.groups[0].completions[0]
    bad_member = dataclasses.replace(member, entropy=np.zeros(999, np.float32))
    bad_group = dataclasses.replace(good.groups[0], completions=(bad_member,))
    recorder = Recorder(db, run_id)
    recorder.step(dataclasses.replace(good, groups=[bad_group]))
    recorder.step(rich_step(2))
    assert not recorder.close(timeout=10)
    assert steps(db, run_id) == [1, 2]
    assert reads.steps_with_groups(db, run_id) == [2]
    assert len(recorder.lost) == 1
    ((kind, message),) = messages(db, run_id)
    assert kind == "store_refused"
    assert message.startswith("step 1 stored without its completions: StoreError: entropy has 999 values")


def test_a_record_that_can_never_be_stored_does_not_hold_up_the_next(db: Database, run_id: str):
    recorder = Recorder(db, run_id)
    recorder.step(StepRecord(1, {"reward": "not a number"}))  # type: ignore[dict-item]
    recorder.step(StepRecord(2, {"reward": 0.5}))
    assert not recorder.close(timeout=10)
    assert steps(db, run_id) == [2]
    assert recorder.lost == ("step 1: ValueError: could not convert string to float: 'not a number'",)


def test_the_records_of_an_attempt_that_is_over_are_not_stored(db: Database, run_id: str):
    claim = queue.claim(db, run_id, worker_id="w", host="h", now=NOON)
    assert claim is not None
    recorder = Recorder(db, run_id, attempt_id=claim.attempt_id)
    recorder.step(StepRecord(1, {"reward": 0.5}))
    assert recorder.flush(timeout=5)
    queue.attempt_ended(db, claim.attempt_id, outcome="lost")
    recorder.step(StepRecord(2, {"reward": 0.5}))
    assert not recorder.close(timeout=10)
    assert steps(db, run_id) == [1]


def test_the_metrics_of_optimizer_steps_stay_where_completions_are_not_kept_or_dropped(db: Database):
    bare = queue.enqueue(db, parse_config({"logging.completions": False}), name="bare")
    recorder = Recorder(db, bare)
    recorder.step(dataclasses.replace(rich_step(1), updates=[{"loss": 0.1}, {"loss": 0.2}]))
    assert recorder.close(timeout=10)
    assert reads.update_metrics(db, bare, ["loss"]).values.tolist() == [0.1, 0.2]
    full = queue.enqueue(db, RunConfig(), name="full")
    recorder = Recorder(db, full, capacity=1)
    with locked(db):
        for step in (1, 2, 3):
            recorder.step(dataclasses.replace(rich_step(step), updates=[{"loss": float(step)}]))
    assert recorder.close(timeout=10)
    assert 2 not in reads.steps_with_groups(db, full)
    assert reads.update_metrics(db, full, ["loss"]).values.tolist() == [1.0, 2.0, 3.0]


def test_the_config_of_the_run_decides_what_is_kept(db: Database):
    bare = queue.enqueue(db, parse_config({"logging.completions": False}), name="bare")
    recorder = Recorder(db, bare)
    recorder.step(rich_step(1))
    assert recorder.close(timeout=10)
    assert (steps(db, bare), reads.steps_with_groups(db, bare)) == ([1], [])
    texts = queue.enqueue(db, RunConfig(), name="texts")
    recorder = Recorder(db, texts, logging=LoggingConfig(token_data=False))
    recorder.step(rich_step(1))
    assert recorder.close(timeout=10)
    first = reads.completions(db, reads.groups(db, texts, 1)[0].group_id)[0]
    assert reads.token_data(db, first.completion_id) is None


def test_a_recorder_for_no_run_is_refused(db: Database):
    with pytest.raises(StoreError, match="run=nobody does not exist"):
        Recorder(db, "nobody")


def test_a_server_that_goes_away_for_a_while_is_waited_for(db: Database, run_id: str, monkeypatch: pytest.MonkeyPatch):
    real, failures = writes.write_step, iter([True, True, False])

    def unreliable(*arguments: object, **options: object) -> None:
        if next(failures, False):
            raise OperationalError("INSERT", {}, Exception("server closed the connection unexpectedly"))
        real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(writes, "write_step", unreliable)
    recorder = Recorder(db, run_id)
    recorder.step(rich_step(1))
    assert recorder.close(timeout=10)
    assert steps(db, run_id) == [1]
    assert [kind for kind, _ in messages(db, run_id)] == ["store_unreachable"]


def test_several_threads_may_record(db: Database, run_id: str):
    recorder = Recorder(db, run_id)
    threads = [
        threading.Thread(target=lambda first=first: [recorder.event("note", str(first + k)) for k in range(10)])
        for first in (0, 100)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.close(timeout=10)
    numbers = [int(message) for _, message in messages(db, run_id)]
    assert sorted(numbers) == [*range(10), *range(100, 110)]
    assert [number for number in numbers if number < 100] == list(range(10))


def test_a_store_that_was_locked_is_whole_afterwards(db: Database, run_id: str):
    recorder = Recorder(db, run_id)
    with locked(db):
        for step in range(1, 6):
            recorder.step(rich_step(step))
    assert recorder.close(timeout=10)
    with db.read() as connection:
        assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
        assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
