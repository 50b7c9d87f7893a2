"""The worker with real processes: fake runs that live in milliseconds."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.jobs import process
from engine.jobs.resources import Resources
from engine.jobs.stopping import Patience
from engine.jobs.worker import Worker, identity_of
from engine.store import queue, reads
from engine.store.database import Database
from engine.store.records import Attempt, Claim, Run
from tests.jobs.fake_worker import fake_command
from tests.jobs.fakes import Enqueue

FOLDER = Path(__file__).parent


class Bench:
    """Workers over one store, and a clock that can be ahead; whatever they start is gone at the end."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.ahead = timedelta(0)

    def worker(self, **options: Any) -> Worker:
        return Worker(self.db, Resources(1, 1), **{"command": fake_command, **options})

    def run(self, run_id: str) -> Run:
        run = reads.get_run(self.db, run_id)
        assert run is not None
        return run

    def attempt(self, run_id: str) -> Attempt:
        return reads.attempts(self.db, run_id)[-1]

    def pid(self, run_id: str) -> int:
        pid = self.attempt(run_id).pid
        assert pid is not None
        return pid

    def until(self, run_id: str, status: str, worker: Worker | None = None, seconds: float = 20.0) -> Run:
        deadline = time.monotonic() + seconds
        while (run := self.run(run_id)).status != status:
            assert time.monotonic() < deadline, f"{run} never became {status}"
            if worker:
                worker.tick(datetime.now(UTC) + self.ahead)
            time.sleep(0.05)
        return run


@pytest.fixture
def bench(db: Database) -> Iterator[Bench]:
    made = Bench(db)
    yield made
    for run in reads.list_runs(db):
        for attempt in reads.attempts(db, run.run_id):
            identity = identity_of(attempt)
            if identity is not None:
                process.kill_tree(identity)


def finish(worker: Worker) -> None:
    """Tick until the worker has reaped its children."""
    deadline = time.monotonic() + 10
    while worker.busy and time.monotonic() < deadline:
        worker.tick(datetime.now(UTC))
        time.sleep(0.02)
    assert not worker.busy


def test_a_run_starts_beats_and_when_killed_is_a_crash_at_once(bench: Bench, enqueue: Enqueue) -> None:
    run_id = enqueue()
    worker = bench.worker()
    bench.until(run_id, "running", worker)
    first = bench.attempt(run_id).heartbeat_at
    time.sleep(0.3)
    assert bench.attempt(run_id).heartbeat_at > first
    os.kill(bench.pid(run_id), signal.SIGKILL)
    killed = time.monotonic()
    run = bench.until(run_id, "failed", worker)
    assert time.monotonic() - killed < 5
    assert run.error == "crashed: the process died: signal 9 (SIGKILL); resume goes on from the last checkpoint"
    attempt = bench.attempt(run_id)
    assert (attempt.exit_code, attempt.seconds) == (-9, 1.0)
    assert attempt.traceback is not None
    assert "under way" in attempt.traceback


def test_a_run_that_is_asked_stops_by_itself(bench: Bench, enqueue: Enqueue) -> None:
    run_id = enqueue()
    worker = bench.worker()
    bench.until(run_id, "running", worker)
    queue.request_stop(bench.db, run_id)
    assert bench.until(run_id, "stopped", worker).error == "stopped by asked to stop"
    finish(worker)
    assert bench.attempt(run_id).exit_code == 0


def test_a_run_that_ignores_all_requests_is_killed(bench: Bench, enqueue: Enqueue) -> None:
    def stubborn(claim: Claim, threads: int) -> list[str]:
        return [*fake_command(claim, threads), "--stubborn"]

    run_id = enqueue()
    worker = bench.worker(command=stubborn, patience=Patience(0.1, 0.3))
    bench.until(run_id, "running", worker)
    queue.request_stop(bench.db, run_id)
    error = bench.until(run_id, "stopped", worker).error
    assert error is not None
    assert error.startswith("stopped by force")
    assert bench.attempt(run_id).exit_code == -9


def test_a_stranger_with_the_runs_pid_is_never_signalled(bench: Bench, enqueue: Enqueue) -> None:
    run_id = enqueue()
    claim = queue.claim_next(bench.db, worker_id="dead", host=process.host_name(), now=datetime.now(UTC))
    assert claim is not None
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as stranger:
        now = process.identify(stranger.pid)
        assert now is not None
        queue.attempt_started(
            bench.db,
            claim.attempt_id,
            pid=now.pid,
            pid_started_at=now.started_at - 100,
            boot_id=now.boot_id,
        )
        queue.request_stop(bench.db, run_id)
        worker = bench.worker(patience=Patience(0.0, 0.0))
        bench.until(run_id, "failed", worker)
        worker.tick(datetime.now(UTC))
        assert stranger.poll() is None
        stranger.kill()


@pytest.fixture
def start_worker(db: Database) -> Iterator[Callable[[], "subprocess.Popen[bytes]"]]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "GRPO_LAB_DATABASE_URL": db.url, "PYTHONPATH": str(FOLDER.parents[1])}
        started.append(subprocess.Popen([sys.executable, str(FOLDER / "fake_worker.py")], env=environment))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


def test_a_run_outlives_kill_9_of_its_worker_and_the_next_one_takes_it_over(
    bench: Bench, enqueue: Enqueue, start_worker: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    run_id = enqueue()
    first = start_worker()
    bench.until(run_id, "running")
    pid = bench.pid(run_id)
    first.kill()
    first.wait()
    second = start_worker()
    next_run = enqueue()
    time.sleep(1.0)
    assert (bench.run(run_id).status, bench.pid(run_id), bench.run(next_run).status) == ("running", pid, "queued")
    os.kill(pid, signal.SIGKILL)
    bench.until(run_id, "failed")
    bench.until(next_run, "running")
    second.terminate()
    assert second.wait(10) == 0
    assert bench.run(next_run).status == "running"
    queue.request_stop(bench.db, next_run)
    bench.until(next_run, "stopped")
