from datetime import UTC, datetime, timedelta

import pytest

from dashboard.components.run_actions import archivable, resumable, stoppable
from dashboard.components.run_table import accuracy_help, run_frame
from dashboard.components.status import SYMBOLS, count_line, in_reading_order, status_text
from dashboard.data.pace import mean_seconds, pace_of_runs_like, seconds_left
from dashboard.data.sparkline import POINTS, reward_line, thinned
from dashboard.data.workers import worker_alive
from engine.config import parse_config
from engine.store import queue
from engine.store.database import Database
from engine.store.reads import list_runs
from engine.store.status import STATUSES
from tests.dashboard.open_page import filled
from tests.store.filled import small_config


def test_a_pace_shares_evaluations_out_over_the_steps() -> None:
    names = ["step_time", "step_time", "time/evaluate", "time/checkpoint"]
    assert mean_seconds(names, [1.0, 2.0, 1.0, 0.5]) == 2.25
    assert mean_seconds(["step_time", "step_time"], [1.0, float("nan")]) == 0.5
    assert mean_seconds([], []) is None


def test_a_long_reward_line_keeps_its_mean_and_its_shape() -> None:
    line = thinned([float(value) for value in range(1000)])
    assert len(line) == POINTS
    assert line[0] == 12.0
    assert line[-1] == 987.0
    assert thinned([1.0, float("inf"), float("nan"), 3.0]) == [1.0, 3.0]
    assert thinned([]) == []


def test_a_running_run_has_time_left_and_an_ended_one_is_like_it(db: Database) -> None:
    filled(db)
    runs = {run.status: run for run in list_runs(db)}
    left = seconds_left(db, runs["running"])
    pace = pace_of_runs_like(db, small_config())
    assert left is not None
    assert left > 0
    assert seconds_left(db, runs["succeeded"]) == 0
    assert pace is not None
    assert pace.n_runs == 3
    assert pace_of_runs_like(db, parse_config({"max_tokens": 47})) is None
    assert len(reward_line(db, runs["running"])) == 12


def test_a_queued_run_has_no_pace_and_no_rewards_yet(db: Database) -> None:
    queue.enqueue(db, small_config(), name="first")
    (run,) = list_runs(db)
    assert seconds_left(db, run) is None
    assert reward_line(db, run) == []
    assert pace_of_runs_like(db, small_config()) is None


def test_a_worker_is_alive_for_fifteen_seconds_after_its_last_word(db: Database) -> None:
    now = datetime.now(UTC)
    assert not worker_alive(db, now)
    queue.worker_heartbeat(db, "w", "host", 1, now)
    assert worker_alive(db, now + timedelta(seconds=14))
    assert not worker_alive(db, now + timedelta(seconds=16))


def test_every_status_is_a_word_with_a_symbol_of_its_own() -> None:
    assert set(SYMBOLS) == set(STATUSES)
    assert len(set(SYMBOLS.values())) == len(STATUSES)
    assert status_text("running") == "▶ running"


def test_runs_are_read_as_what_runs_what_waits_what_ended(db: Database) -> None:
    filled(db)
    first = queue.enqueue(db, small_config(), name="waits first")
    queue.enqueue(db, small_config(), name="waits second")
    ordered = in_reading_order(list_runs(db))
    assert [run.status for run in ordered] == ["running", "queued", "queued", "failed", "succeeded"]
    assert ordered[1].run_id == first
    assert count_line(ordered) == "1 running · 2 waiting · 2 ended"


def test_each_row_says_what_how_far_and_how_good(db: Database) -> None:
    filled(db)
    runs = in_reading_order(list_runs(db))
    frame = run_frame(runs, rewards={}, seconds_left={runs[0].run_id: 9.0})
    running = frame.iloc[0]
    assert (running["status"], running["step"], running["progress"]) == ("▶ running", "12 / 20", 60.0)
    assert running["left"] == "9 s"
    best = runs[0].best_accuracy
    assert best is not None
    assert running["best"] == pytest.approx(100 * best)
    assert "high <b>rate</b> $x$" in set(frame["name"])
    assert accuracy_help(runs).startswith("Held-out accuracy, sampled at T = 1, n = ")


def test_every_action_says_why_it_cannot_act(db: Database) -> None:
    filled(db)
    runs = {run.status: run for run in list_runs(db)}
    assert stoppable([]).reason.startswith("Choose a run first")
    assert stoppable([runs["failed"]]).reason == "Only a run that waits or runs can be stopped"
    assert stoppable([runs["failed"], runs["running"]]).runs == (runs["running"],)
    assert resumable([runs["failed"]]).runs == (runs["failed"],)
    assert resumable([runs["succeeded"]]).reason.startswith("Only a run that failed")
    assert archivable([runs["running"]]).reason.endswith("stop it first")
    assert archivable([runs["succeeded"]]).reason == ""
