"""`--wait` with real processes of fake runs."""

import functools
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.cli import waiting
from engine.config import parse_config
from engine.jobs.worker import Worker
from engine.store import queue, reads
from engine.store.database import Database
from engine.store.records import Claim
from tests.jobs.fake_worker import fake_command

Invoke = Callable[..., Any]
QUICK = ("--set", "grpo.steps=2", "--wait")


@pytest.fixture
def runs_end(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the waiting command start fake runs that end as told; None: that live until they are asked to stop."""

    def end_as(*statuses: str | None) -> None:
        ends = iter(statuses)

        def command(claim: Claim, threads: int) -> list[str]:
            status = next(ends)
            return [*fake_command(claim, threads), *(["--end", status] if status else [])]

        monkeypatch.setattr(waiting, "Worker", functools.partial(Worker, command=command))
        monkeypatch.setattr(waiting, "POLL_SECONDS", 0.05)

    return end_as


def when(condition: Callable[[], bool], act: Callable[[], object]) -> threading.Thread:
    """Do `act` in the background as soon as `condition` holds."""

    def watch() -> None:
        deadline = time.monotonic() + 20
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_without_a_worker_it_runs_its_runs_itself_and_gives_one_document(
    db: Database, invoke: Invoke, runs_end: Callable[..., None]
) -> None:
    other = queue.enqueue(db, parse_config({}), name="somebody else's")
    runs_end("succeeded", "succeeded")
    result = invoke("launch", "quick-start", "--seeds", "2", *QUICK, "--json")
    documents = json.loads(result.stdout)
    assert [(each["status"], each["steps"], each["seconds"]) for each in documents] == [("succeeded", 2, 1.5)] * 2
    assert documents[0]["eval"] == {"first": 0.25, "best": 0.5, "best_step": 2, "last": 0.5}
    assert documents[0]["metrics"]["reward"] == 1.0
    assert "quick-start-seed-1: succeeded, step 2/2, accuracy 50.0%" in result.stderr
    assert [attempt.exit_code for each in documents for attempt in reads.attempts(db, each["run_id"])] == [0, 0]
    waits = reads.get_run(db, other)
    assert waits is not None
    assert waits.status == "queued"


def test_a_run_that_fails_is_exit_code_1_and_still_a_document(invoke: Invoke, runs_end: Callable[..., None]) -> None:
    runs_end("failed")
    result = invoke("launch", "quick-start", *QUICK, "--json", exit_code=1)
    (document,) = json.loads(result.stdout)
    assert (document["status"], document["error"]) == ("failed", "ValueError: no")
    assert "failed, step 2/2, accuracy 50.0%: ValueError: no" in result.stderr


def test_resume_waits_for_a_second_attempt(db: Database, invoke: Invoke, runs_end: Callable[..., None]) -> None:
    runs_end("failed", "succeeded")
    invoke("launch", "quick-start", *QUICK, exit_code=1)
    (run,) = reads.list_runs(db)
    result = invoke("resume", run.run_id, "--wait", "--json")
    assert [(each["status"], each["attempts"]) for each in json.loads(result.stdout)] == [("succeeded", 2)]


def test_a_running_worker_is_left_to_do_it(db: Database, invoke: Invoke, runs_end: Callable[..., None]) -> None:
    runs_end()
    queue.worker_heartbeat(db, "the worker", "elsewhere", 1, datetime.now(UTC))

    def work() -> None:
        claim = queue.claim_next(db, worker_id="the worker", host="elsewhere", now=datetime.now(UTC))
        assert claim is not None
        queue.attempt_ended(db, claim.attempt_id, outcome="succeeded")
        queue.transition(db, claim.run_id, "succeeded")

    thread = when(lambda: bool(reads.list_runs(db)), work)
    invoke("launch", "quick-start", *QUICK)
    thread.join()
    (run,) = reads.list_runs(db)
    assert [attempt.worker_id for attempt in reads.attempts(db, run.run_id)] == ["the worker"]


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_stops_the_runs_it_works_on(db: Database, invoke: Invoke, runs_end: Callable[..., None]) -> None:
    runs_end(None, None)
    thread = when(lambda: any(run.status == "running" for run in reads.list_runs(db)), interrupt)
    result = invoke("launch", "quick-start", "--seeds", "2", *QUICK, "--json", exit_code=130)
    thread.join()
    assert [each["status"] for each in json.loads(result.stdout)] == ["stopped", "stopped"]
    assert "Stopping; each run saves a checkpoint first" in result.stderr


def test_ctrl_c_leaves_the_runs_of_a_running_worker(
    db: Database, invoke: Invoke, runs_end: Callable[..., None]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    runs_end()
    queue.worker_heartbeat(db, "the worker", "elsewhere", 1, datetime.now(UTC))
    thread = when(lambda: bool(reads.list_runs(db)), interrupt)
    result = invoke("launch", "quick-start", *QUICK, "--json", exit_code=130)
    thread.join()
    assert [each["status"] for each in json.loads(result.stdout)] == ["queued"]
    assert signal.getsignal(signal.SIGINT) is before  # ignored in a job that a shell has put in the background
