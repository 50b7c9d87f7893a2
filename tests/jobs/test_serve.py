import logging
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StoreError
from engine.jobs.serve import serve
from engine.jobs.stop_flag import StopFlag
from engine.jobs.workers import live_workers
from engine.store import queue
from engine.store.database import Database

ROOT = Path(__file__).parents[2]


class FlakyWorker:
    """Fails in its second and third round, and tells the service to end in its fifth."""

    def __init__(self, told_to_end: StopFlag) -> None:
        self.rounds = 0
        self._told_to_end = told_to_end

    def tick(self, now: datetime) -> None:
        assert now.tzinfo is UTC
        self.rounds += 1
        if self.rounds in (2, 3):
            raise StoreError("database is locked")
        if self.rounds == 5:
            self._told_to_end.raise_for("enough")


def test_a_round_that_fails_ends_nothing_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    told_to_end = StopFlag()
    worker: Any = FlakyWorker(told_to_end)
    with caplog.at_level(logging.WARNING, "grpo_lab.worker"):
        serve(worker, told_to_end, every=0.0)
    assert worker.rounds == 5
    assert [record.getMessage() for record in caplog.records] == [
        "this round failed, trying on: StoreError: database is locked"
    ]


def worker_process(url: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "GRPO_LAB_DATABASE_URL": url, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "engine.jobs.worker"]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def test_the_service_reports_itself_until_sigterm(db: Database) -> None:
    with worker_process(db.url) as worker:
        deadline = time.monotonic() + 20
        while not (seen := live_workers(db, datetime.now(UTC))) and time.monotonic() < deadline:
            time.sleep(0.05)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=20)
    assert [each.pid for each in seen] == [worker.pid]
    assert worker.returncode == 0
    assert said.splitlines()[-1] == "worker ends (SIGTERM); runs under way go on"
    # Its process is gone, so nobody waits for the ten seconds of silence.
    assert live_workers(db, datetime.now(UTC)) == []
    assert len(queue.workers(db)) == 1


def test_a_store_that_cannot_be_opened_is_said_in_a_line() -> None:
    with worker_process("sqlite:////no/such/folder/runs.db") as worker:
        _, said = worker.communicate(timeout=20)
    assert worker.returncode == 1
    assert said.count("\n") == 1
    assert "the folder /no/such/folder does not exist" in said
