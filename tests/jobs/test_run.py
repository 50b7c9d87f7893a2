"""One attempt in this process, with a training function that only says what it did."""

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StoreError
from engine.jobs import heartbeat
from engine.jobs.run import run_attempt
from engine.jobs.run_log import step_line
from engine.jobs.stop_flag import StopFlag
from engine.store import queue, reads, writes
from engine.store.database import Database
from engine.store.records import Claim, Run
from engine.training.loop import Outcome
from engine.types import EvaluationRecord, StepRecord
from tests.jobs.fakes import Enqueue

Claimed = Callable[..., Claim]


@pytest.fixture
def claimed(db: Database, enqueue: Enqueue) -> Claimed:
    def make(**fields: Any) -> Claim:
        enqueue(**fields)
        claim = queue.claim_next(db, worker_id="w", host="here", now=datetime.now(UTC))
        assert claim is not None
        return claim

    return make


def attempt(db: Database, claim: Claim, train: Any, stop: StopFlag | None = None) -> int:
    return run_attempt(db, claim.run_id, claim.attempt_id, threads=2, stop=stop or StopFlag(), train=train)


def run_of(db: Database, claim: Claim) -> Run:
    run = reads.get_run(db, claim.run_id)
    assert run is not None
    return run


def make_checkpoint(folder: Path, step: int) -> Path:
    path = folder / f"step-{step:06d}"
    path.mkdir(parents=True)
    (path / "state.json").write_text('{"format": 1, "state": {}, "files": {}}')
    return path


def two_steps(config: Any, *, recorder: Any, **given: Any) -> Outcome:
    recorder.evaluation(EvaluationRecord(0, "validation", "sampled", 1.0, {"accuracy": 0.25}))
    for step in (1, 2):
        recorder.step(StepRecord(step, {"reward": step / 4, "step_time": 0.5}))
    return Outcome("succeeded", 2)


def test_a_run_that_trains_to_its_end_has_succeeded(
    db: Database, claimed: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = claimed(grpo={"steps": 2})
    assert attempt(db, claim, two_steps) == 0
    run, (ended,) = run_of(db, claim), reads.attempts(db, claim.run_id)
    assert (run.status, run.step, run.error, run.first_accuracy) == ("succeeded", 2, None, 0.25)
    assert (ended.outcome, ended.pid, ended.traceback) == ("succeeded", os.getpid(), None)
    assert 0 < ended.seconds == run.seconds
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4:] == [
        "evaluation at step 0  validation, sampled  accuracy 0.250",
        "step 1/2  reward 0.250  time 0.50 s",
        "step 2/2  reward 0.500  time 0.50 s",
        "succeeded",
    ]


def test_training_gets_its_folder_its_threads_and_is_running_meanwhile(db: Database, claimed: Claimed) -> None:
    claim = claimed(model={"threads": 1})
    seen: dict[str, Any] = {}

    def train(config: Any, **given: Any) -> Outcome:
        seen.update(given, status=run_of(db, claim).status, steps=config.grpo.steps)
        return Outcome("succeeded", 0)

    attempt(db, claim, train)
    assert seen["folder"] == Path(db.url.removeprefix("sqlite:///")).parent / "runs" / claim.run_id
    assert (seen["threads"], seen["status"], seen["steps"], seen["start"]) == (1, "running", 100, None)


def test_what_training_raises_is_a_failed_run_with_its_traceback(
    db: Database, claimed: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = claimed()

    def train(config: Any, *, recorder: Any, **given: Any) -> Outcome:
        recorder.step(StepRecord(1, {"reward": 0.5}))
        raise MemoryError("no room for 3 GiB")

    assert attempt(db, claim, train) == 1
    run, (ended,) = run_of(db, claim), reads.attempts(db, claim.run_id)
    assert (run.status, run.error, run.step) == ("failed", "MemoryError: no room for 3 GiB", 1)
    assert ended.traceback is not None
    assert ended.traceback.startswith("Traceback (most recent call last)")
    assert "MemoryError: no room for 3 GiB" in capsys.readouterr().out


def test_a_stop_asked_for_in_the_store_reaches_the_loop(
    db: Database, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat.Heartbeat.__init__, "__kwdefaults__", {"every": 0.02, "complain": print})
    claim = claimed()

    def train(config: Any, *, stop: StopFlag, **given: Any) -> Outcome:
        queue.request_stop(db, claim.run_id)
        deadline = time.monotonic() + 5
        while not stop() and time.monotonic() < deadline:
            time.sleep(0.01)
        return Outcome("stopped", 7)

    stop = StopFlag()
    assert attempt(db, claim, train, stop) == 0
    assert (run_of(db, claim).status, stop.reason) == ("stopped", "asked to stop")


def test_a_stop_before_training_loads_nothing(db: Database, claimed: Claimed) -> None:
    claim, stop = claimed(), StopFlag()
    stop.raise_for("SIGTERM")
    assert attempt(db, claim, None, stop) == 0
    assert run_of(db, claim).status == "stopped"


def test_an_attempt_that_was_declared_over_writes_no_end(db: Database, claimed: Claimed) -> None:
    claim = claimed()

    def train(config: Any, *, recorder: Any, **given: Any) -> Outcome:
        queue.attempt_ended(db, claim.attempt_id, outcome="lost")
        queue.transition(db, claim.run_id, "lost")
        queue.requeue(db, claim.run_id)
        recorder.step(StepRecord(5, {"reward": 1.0}))
        return Outcome("succeeded", 5)

    attempt(db, claim, train)
    assert (run_of(db, claim).status, run_of(db, claim).step) == ("queued", 0)
    assert reads.attempts(db, claim.run_id)[0].outcome == "lost"


def test_a_config_that_is_no_longer_valid_fails_before_anything_is_loaded(db: Database, claimed: Claimed) -> None:
    from sqlalchemy import update

    from engine.store import schema

    claim = claimed()
    with db.write() as connection:
        connection.execute(update(schema.run).values(config={"grpo": {"stepz": 3}}))
    assert attempt(db, claim, None) == 1
    error = run_of(db, claim).error
    assert error is not None
    assert "grpo.stepz=3 is not a field" in error


def test_a_second_attempt_goes_on_from_the_newest_whole_checkpoint(
    db: Database, claimed: Claimed, tmp_path: Path
) -> None:
    claim = claimed()
    for step in range(1, 16):
        writes.write_step(db, claim.run_id, StepRecord(step, {"reward": float(step)}))
    folder = tmp_path / "runs" / claim.run_id / "checkpoints"
    make_checkpoint(folder, 5)
    ten = make_checkpoint(folder, 10)
    (folder / "step-000015").mkdir()
    seen: dict[str, Any] = {}

    def train(config: Any, **given: Any) -> Outcome:
        seen.update(given, step=run_of(db, claim).step)
        return Outcome("stopped", 10)

    attempt(db, claim, train)
    assert (seen["start"].path, seen["start"].step, seen["start"].fork, seen["step"]) == (ten, 10, False, 10)
    assert [point.step for _, point in reads.metrics(db, [claim.run_id], ["reward"]).points()] == list(range(1, 11))
    assert reads.attempts(db, claim.run_id)[0].from_step == 10
    started = reads.events(db, claim.run_id)[0]
    assert started.message == (f"going on from the checkpoint of step 10: {ten} (newer but unfinished: step-000015)")


def test_without_a_checkpoint_it_begins_anew_and_leaves_nothing_of_the_first_try(
    db: Database, claimed: Claimed
) -> None:
    claim = claimed()
    writes.write_step(db, claim.run_id, StepRecord(1, {"reward": 1.0}))
    attempt(db, claim, lambda config, **given: Outcome("stopped", 0))
    assert run_of(db, claim).step == 0
    assert len(reads.metrics(db, [claim.run_id], None)) == 0


def test_a_fork_starts_from_its_parents_checkpoint(db: Database, claimed: Claimed, tmp_path: Path) -> None:
    parent = claimed()
    fifty = make_checkpoint(tmp_path / "runs" / parent.run_id / "checkpoints", 50)
    writes.write_checkpoint(db, parent.run_id, 50, str(fifty), 0.5)
    claim = claimed(parent=(parent.run_id, 50))
    starts = []
    attempt(db, claim, lambda config, start, **given: starts.append(start) or Outcome("stopped", 50))
    assert [(start.path, start.step, start.fork) for start in starts] == [(fifty, 50, True)]
    assert run_of(db, claim).step == 50


def test_a_fork_whose_checkpoint_is_gone_fails_with_the_steps_there_are(
    db: Database, claimed: Claimed, tmp_path: Path
) -> None:
    parent = claimed()
    writes.write_checkpoint(db, parent.run_id, 75, str(tmp_path / "step-000075"), None)
    claim = claimed(parent=(parent.run_id, 50))
    assert attempt(db, claim, two_steps) == 1
    error = run_of(db, claim).error
    assert error is not None
    assert f"fork={parent.run_id}@50 has no whole checkpoint" in error
    assert error.endswith("fork from one of its steps 75")


def make_model(folder: Path, step: int) -> Path:
    path = make_checkpoint(folder, step)
    (path / "config.json").write_text("{}")
    return path


class TestInitialWeights:
    @pytest.fixture
    def first(self, db: Database, claimed: Claimed, tmp_path: Path) -> str:
        """A run with whole checkpoints of steps 20 and 40."""
        run_id = claimed(name="first").run_id
        for step in (20, 40):
            path = make_model(tmp_path / "runs" / run_id / "checkpoints", step)
            writes.write_checkpoint(db, run_id, step, str(path), 0.5)
        return run_id

    def begin(self, db: Database, claim: Claim) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        attempt(db, claim, lambda config, **given: seen.update(given) or Outcome("stopped", 0))
        return seen

    def test_a_run_begins_at_step_0_with_the_checkpoint_it_names(
        self, db: Database, claimed: Claimed, first: str, tmp_path: Path
    ) -> None:
        claim = claimed(model={"init_from": f"run:{first}@40"})
        path = tmp_path / "runs" / first / "checkpoints" / "step-000040"
        seen = self.begin(db, claim)
        assert (seen["start"], seen["initial_weights"]) == (None, path)
        assert reads.events(db, claim.run_id)[0].message == f"starting from the weights in {path}"

    def test_a_folder_may_hold_them_as_well(self, db: Database, claimed: Claimed, tmp_path: Path) -> None:
        path = make_model(tmp_path / "mine", 7)
        assert self.begin(db, claimed(model={"init_from": str(path)}))["initial_weights"] == path

    def test_a_checkpoint_of_its_own_takes_their_place_unless_an_adapter_stands_beside_them(
        self, db: Database, claimed: Claimed, first: str, tmp_path: Path
    ) -> None:
        for lora, wanted in (({}, None), ({"rank": 4}, 40)):
            claim = claimed(model={"init_from": f"run:{first}@40"}, lora=lora)
            make_checkpoint(tmp_path / "runs" / claim.run_id / "checkpoints", 10)
            seen = self.begin(db, claim)
            assert seen["start"].step == 10
            found = seen["initial_weights"]
            assert (found and found.name) == (wanted and f"step-{wanted:06d}")

    def test_a_checkpoint_that_is_gone_fails_with_the_steps_there_are(
        self, db: Database, claimed: Claimed, first: str, tmp_path: Path
    ) -> None:
        claim = claimed(model={"init_from": f"run:{first}@40"})
        (tmp_path / "runs" / first / "checkpoints" / "step-000040" / "state.json").unlink()
        assert attempt(db, claim, two_steps) == 1
        error = run_of(db, claim).error
        assert error is not None
        assert f"model.init_from=run:{first}@40 has no whole checkpoint at" in error
        assert error.endswith("begin with one of its steps 20")

    def test_one_that_was_deleted_while_the_run_waited_fails_with_the_steps_there_are(
        self, db: Database, claimed: Claimed, first: str
    ) -> None:
        claim = claimed(model={"init_from": f"run:{first}@20"})
        writes.delete_checkpoints(db, first, [20])
        assert attempt(db, claim, two_steps) == 1
        error = run_of(db, claim).error
        assert error is not None
        assert error.endswith(f"model.init_from=run:{first}@20 names no checkpoint; use one of run:{first}@40")

    def test_a_folder_without_a_model_is_refused(self, db: Database, claimed: Claimed, tmp_path: Path) -> None:
        claim = claimed(model={"init_from": str(tmp_path / "nothing")})
        assert attempt(db, claim, two_steps) == 1
        error = run_of(db, claim).error
        assert error is not None
        assert "lacks config.json and adapter_config.json; give a run's checkpoint as run:<id>@<step>" in error


def test_an_unknown_run_is_refused(db: Database) -> None:
    with pytest.raises(StoreError, match="run=nothing does not exist"):
        run_attempt(db, "nothing", 1, threads=1, stop=StopFlag())


def test_no_thread_is_left_behind(db: Database, claimed: Claimed) -> None:
    before = threading.active_count()
    attempt(db, claimed(), two_steps)
    assert threading.active_count() == before


def test_the_log_of_a_step_of_sft_has_its_loss() -> None:
    metrics = {"loss": 0.0625, "entropy": 0.25, "step_time": 0.5}
    assert step_line(StepRecord(3, metrics), 20) == "step 3/20  loss 0.062  entropy 0.250  time 0.50 s"
    assert "loss" not in step_line(StepRecord(3, {**metrics, "reward": 0.5}), 20)


def test_a_run_without_steps_fails_is_queued_again_and_succeeds_at_step_0(db: Database, claimed: Claimed) -> None:
    def fails(*_: Any, **__: Any) -> Outcome:
        raise RuntimeError("no")

    evaluation = {"size": 3, "samples": 2, "split": "test"}
    claim = claimed(grpo={"steps": 0}, evaluation=evaluation, rollout={"max_tokens": 8})
    assert attempt(db, claim, fails) == 1
    queue.requeue(db, claim.run_id)
    again = queue.claim_next(db, worker_id="w", host="here", now=datetime.now(UTC))
    assert again is not None
    assert attempt(db, again, None) == 0
    run, (greedy, sampled) = run_of(db, claim), reads.evaluations(db, [claim.run_id])
    assert (run.status, run.step, run.total_steps, run.attempts) == ("succeeded", 0, 0, 2)
    assert (sampled.split, sampled.problems, sampled.samples, greedy.n) == ("test", 3, 2, 3)
    assert run.last_accuracy == sampled.accuracy
    assert {"eval/test/pass@2", "eval/test/majority@2", "eval/test/greedy_accuracy"} <= set(
        reads.last_metrics(db, run.run_id)
    )
    assert reads.checkpoints(db, run.run_id) == []
