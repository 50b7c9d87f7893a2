import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from engine.cli.progress import Progress
from engine.cli.tables import duration, percent
from engine.config import parse_config
from engine.store import queue, reads, writes
from engine.store.database import Database
from engine.store.records import Run
from engine.types import EvaluationRecord, StepRecord

Shown = Callable[..., str]


@pytest.fixture
def runs(db: Database) -> Callable[[], list[Run]]:
    queue.enqueue(db, parse_config({"grpo": {"steps": 40}}), name="a [run]")
    return lambda: reads.list_runs(db)


def advance(db: Database, run: Run, step: int, accuracy: float) -> None:
    writes.write_step(db, run.run_id, StepRecord(step, {"reward": 1.0}))
    writes.write_evaluation(
        db, run.run_id, EvaluationRecord(step, "validation", "sampled", 1.0, {"accuracy": accuracy})
    )


def test_a_terminal_gets_a_bar_with_steps_and_accuracy(db: Database, runs: Callable[[], list[Run]]) -> None:
    screen: Any = io.StringIO()
    with Progress(Console(file=screen, force_terminal=True, width=120)) as progress:
        advance(db, runs()[0], 1, 0.2)
        progress.show(runs())
        advance(db, runs()[0], 10, 0.5)
        progress.show(runs())
    shown = screen.getvalue()
    assert "a [run]" in shown
    assert "10/40" in shown
    assert "20.0% → 50.0%" in shown


def test_elsewhere_it_is_a_line_per_change(db: Database, runs: Callable[[], list[Run]]) -> None:
    screen = io.StringIO()
    (run,) = runs()
    with Progress(Console(file=screen)) as progress:
        progress.show(runs())
        progress.show(runs())
        advance(db, run, 10, 0.5)
        progress.show(runs())
    assert screen.getvalue().splitlines() == [
        f"{run.run_id} a [run]: queued, step 0/40",
        f"{run.run_id} a [run]: queued, step 10/40, accuracy 50.0%",
    ]


def test_numbers_for_people() -> None:
    assert [duration(seconds) for seconds in (0.4, 59.6, 187, 7387)] == ["0 s", "1:00", "3:07", "2:03:07"]
    assert [percent(share) for share in (None, float("nan"), 0.2345)] == ["–", "–", "23.4%"]
