"""Queue → worker → a real run in a process of its own → pages. And the same when things are killed."""

import base64
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from engine.jobs.resources import Resources
from engine.jobs.worker import Worker
from engine.presets import load_preset
from engine.store import queue, reads
from engine.store.database import Database, file_url, open_database
from engine.store.records import Run
from tests.dashboard.open_page import figures, open_page

TINY = {
    "grpo.steps": 12,
    "rollout_batch_size": 16,
    "group_size": 4,
    "evaluation.every": 6,
    "evaluation.size": 16,
    "checkpoints.every": 2,
}
PATIENCE = 120.0
WALL_CLOCK = ("time/", "step_time", "memory/")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """An empty store that run processes and pages open as well."""
    monkeypatch.setenv("GRPO_LAB_DATABASE_URL", file_url(tmp_path / "runs.db"))
    monkeypatch.setenv("GRPO_LAB_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    return open_database()


def launch(db: Database, **overrides: object) -> str:
    config = load_preset("quick-start", TINY | overrides).config
    return queue.enqueue(db, config, name="tiny", preset="quick-start")


def wait(db: Database, worker: Worker, run_id: str, ready: Callable[[Run], bool]) -> Run:
    deadline = time.monotonic() + PATIENCE
    while True:
        worker.tick(datetime.now(UTC))
        run = reads.get_run(db, run_id)
        assert run is not None
        if ready(run) and not (ended(run) and worker.busy):
            return run
        assert time.monotonic() < deadline, run
        time.sleep(0.05)


def ended(run: Run) -> bool:
    return run.status in ("succeeded", "failed", "stopped", "lost")


def numbers(db: Database, run_id: str) -> dict[tuple[str, int], float]:
    """Every stored metric that the clock has no part in."""
    points = reads.metrics(db, [run_id], None).points()
    return {(point.name, point.step): point.value for _, point in points if not point.name.startswith(WALL_CLOCK)}


def test_a_queued_run_is_trained_and_shown_on_every_page(db: Database):
    run_id = launch(db)
    run = wait(db, Worker(db, Resources(1, 1)), run_id, ended)
    assert (run.status, run.step, run.error) == ("succeeded", 12, None)
    assert [row.step for row in reads.evaluations(db, [run_id]) if row.mode == "sampled"] == [0, 6, 12]
    assert reads.steps_with_groups(db, run_id) == list(range(1, 13))
    assert [row.step for row in reads.checkpoints(db, run_id)][-1] == 12

    assert "tiny" in open_page("runs").dataframe[0].value.iloc[0].tolist()
    reward = next(
        trace
        for figure in figures(open_page("run", run=run_id))
        for trace in figure["data"]
        if trace.get("name") == "Training reward"
    )
    assert np.frombuffer(base64.b64decode(reward["x"]["bdata"]), reward["x"]["dtype"]).tolist() == list(range(1, 13))
    group = reads.groups(db, run_id, 3)[0]
    texts = [row.text for row in reads.completions(db, group.group_id)]
    page = open_page("groups", run=run_id, step="3", group=str(group.group_id))
    shown = "\n".join(str(element.value) for element in [*page.code, *page.text])
    assert all(text.strip() in shown for text in texts)
    assert figures(open_page("compare", runs=run_id))


def test_a_killed_run_is_told_as_crashed_and_its_resume_neither_repeats_nor_leaves_out_a_step(db: Database):
    whole = launch(db)
    worker = Worker(db, Resources(1, 1))
    wait(db, worker, whole, ended)

    run_id = launch(db)
    wait(db, worker, run_id, lambda run: run.step >= 5)
    pid = reads.attempts(db, run_id)[-1].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    run = wait(db, worker, run_id, ended)
    assert time.monotonic() - killed < 15
    assert run.status == "failed"
    assert run.error is not None
    assert "crashed" in run.error

    queue.requeue(db, run_id)
    run = wait(db, worker, run_id, lambda run: ended(run) and run.attempts == 2)
    assert (run.status, run.step) == ("succeeded", 12)
    assert reads.attempts(db, run_id)[-1].from_step >= 4
    assert numbers(db, run_id) == numbers(db, whole)
