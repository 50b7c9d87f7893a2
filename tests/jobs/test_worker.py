"""The worker's rounds, with a store that is real and a machine that is not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.jobs.resources import Resources
from engine.jobs.worker import Worker
from engine.store import queue, reads, writes
from engine.store.database import Database
from engine.store.records import Run
from tests.jobs.fakes import BOOT, Enqueue, FakeClock, FakeProcesses

NOW = datetime.now(UTC)


@pytest.fixture
def machine() -> FakeProcesses:
    return FakeProcesses()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def make_worker(db: Database, machine: FakeProcesses, max_runs: int = 1, **options: Any) -> Worker:
    resources = options.pop("resources", Resources(max_runs, threads=2))
    settings = {"host": "here", "boot_id": BOOT, "processes": machine, **options}
    return Worker(db, resources, **settings)


def run_of(db: Database, run_id: str) -> Run:
    run = reads.get_run(db, run_id)
    assert run is not None
    return run


def statuses(db: Database, *run_ids: str) -> list[str]:
    return [run_of(db, run_id).status for run_id in run_ids]


def write_own_end(db: Database, run_id: str, outcome: Any) -> None:
    """What the process of a run does at its end."""
    attempt = reads.attempts(db, run_id)[-1]
    assert queue.attempt_ended(db, attempt.attempt_id, outcome=outcome, seconds=5.0)
    queue.transition(db, run_id, outcome)


def seconds_later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


class TestStarting:
    def test_the_run_that_has_waited_longest_is_started_with_its_log_and_threads(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses, tmp_path: Path
    ) -> None:
        first, second = enqueue("first"), enqueue("second")
        make_worker(db, machine).tick(NOW)
        assert statuses(db, first, second) == ["starting", "queued"]
        (child,) = machine.started
        (attempt,) = reads.attempts(db, first)
        assert child.command[1:] == [
            *("-m", "engine.jobs.run", first),
            *("--attempt", str(attempt.attempt_id), "--threads", "2"),
        ]
        assert child.log == tmp_path / "runs" / first / "logs" / "attempt-1.log"
        assert (attempt.pid, attempt.pid_started_at, attempt.boot_id) == (1001, 100.1, BOOT)
        assert attempt.log_path == str(child.log)
        assert child.environment["OMP_NUM_THREADS"] == "2"
        assert child.environment["GRPO_LAB_DATABASE_URL"] == db.url
        assert "CUDA_VISIBLE_DEVICES" not in child.environment

    def test_the_next_one_starts_when_there_is_room(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        first, second, third = enqueue("first"), enqueue("second"), enqueue("third")
        worker = make_worker(db, machine, max_runs=2)
        worker.tick(NOW)
        worker.tick(NOW)
        assert statuses(db, first, second, third) == ["starting", "starting", "queued"]
        write_own_end(db, first, "succeeded")
        machine.end(1001, 0)
        worker.tick(NOW)
        assert statuses(db, first, second, third) == ["succeeded", "starting", "starting"]
        assert reads.attempts(db, first)[0].exit_code == 0

    def test_two_workers_on_one_machine_share_its_room(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_ids = [enqueue() for _ in range(3)]
        one, two = make_worker(db, machine), make_worker(db, machine)
        for _ in range(3):
            one.tick(NOW)
            two.tick(NOW)
        assert statuses(db, *run_ids) == ["starting", "queued", "queued"]

    def test_a_worker_for_its_own_runs_takes_no_other_and_does_not_report_itself(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        other, own = enqueue("other"), enqueue("own")
        make_worker(db, machine, max_runs=4, only=[own]).tick(NOW)
        assert statuses(db, other, own) == ["queued", "starting"]
        assert queue.workers(db) == []

    def test_a_process_that_cannot_start_is_a_failed_run_with_the_reason(self, db: Database, enqueue: Enqueue) -> None:
        run_id = enqueue()
        make_worker(db, FakeProcesses(refuse_start=OSError(28, "No space left on device"))).tick(NOW)
        run = run_of(db, run_id)
        assert run.status == "failed"
        assert run.error == "the process could not be started: [Errno 28] No space left on device"

    def test_each_run_gets_a_gpu_of_its_own_and_a_cpu_run_gets_none(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        for device in ("cuda", "auto", "cpu", "auto"):
            enqueue(model={"device": device})
        make_worker(db, machine, resources=Resources(4, 2, gpus=("0", "1"))).tick(NOW)
        assert [child.environment["CUDA_VISIBLE_DEVICES"] for child in machine.started] == ["0", "1", "", "0"]

    def test_with_gpus_as_many_runs_go_at_once_and_a_gpu_that_is_free_again_goes_to_the_next(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        runs = [enqueue() for _ in range(3)]
        worker = make_worker(db, machine, resources=Resources(2, 2, gpus=("0", "1")))
        worker.tick(NOW)
        assert statuses(db, *runs) == ["starting", "starting", "queued"]
        write_own_end(db, runs[0], "succeeded")
        machine.end(1001, 0)
        worker.tick(NOW)
        assert [child.environment["CUDA_VISIBLE_DEVICES"] for child in machine.started] == ["0", "1", "0"]


class TestEnds:
    def test_a_process_killed_from_outside_is_a_crash_with_the_tail_of_its_log(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        worker = make_worker(db, machine)
        worker.tick(NOW)
        log = machine.started[0].log
        log.parent.mkdir(parents=True)
        log.write_text("step 1/100\nstep 2/100\n")
        machine.end(1001, -9)
        worker.tick(seconds_later(0.5))
        run, (attempt,), events = run_of(db, run_id), reads.attempts(db, run_id), reads.events(db, run_id)
        message = "crashed: the process died: signal 9 (SIGKILL); resume goes on from the last checkpoint"
        assert (run.status, run.error) == ("failed", message)
        assert (attempt.outcome, attempt.exit_code) == ("failed", -9)
        assert attempt.traceback == f"Last lines of {log}:\nstep 1/100\nstep 2/100\n\n{message}"
        assert [(event.kind, event.level, event.message) for event in events] == [("failed", "error", message)]
        assert machine.strays_of == [str(attempt.attempt_id)]

    def test_an_end_that_the_process_wrote_itself_stands(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        worker = make_worker(db, machine)
        worker.tick(NOW)
        write_own_end(db, run_id, "failed")
        machine.end(1001, 1)
        worker.tick(NOW)
        (attempt,) = reads.attempts(db, run_id)
        assert (attempt.outcome, attempt.exit_code, attempt.seconds) == ("failed", 1, 5.0)
        assert reads.events(db, run_id) == []

    def test_exit_code_0_without_an_end_is_a_crash_too(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        worker = make_worker(db, machine)
        worker.tick(NOW)
        machine.end(1001, 0)
        worker.tick(NOW)
        error = run_of(db, run_id).error
        assert error is not None
        assert error.startswith("crashed: the process ended with exit code 0 without writing how")

    def test_a_crashed_run_can_be_queued_again_as_a_second_attempt(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        worker = make_worker(db, machine)
        worker.tick(NOW)
        machine.end(1001, -9)
        worker.tick(NOW)
        queue.requeue(db, run_id)
        worker.tick(NOW)
        assert [attempt.number for attempt in reads.attempts(db, run_id)] == [1, 2]
        assert machine.started[1].log.name == "attempt-2.log"
        assert statuses(db, run_id) == ["starting"]

    def test_an_end_whose_writer_died_half_way_is_finished(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        worker = make_worker(db, machine)
        worker.tick(NOW)
        (attempt,) = reads.attempts(db, run_id)
        queue.attempt_ended(db, attempt.attempt_id, outcome="failed", traceback="Traceback\nValueError: no\n", now=NOW)
        machine.end(1001, -9)
        worker.tick(seconds_later(5))
        assert statuses(db, run_id) == ["starting"]
        worker.tick(seconds_later(25))
        assert (run_of(db, run_id).status, run_of(db, run_id).error) == ("failed", "ValueError: no")


class TestStops:
    def test_it_asks_then_terminates_once_then_kills_the_tree(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses, clock: FakeClock
    ) -> None:
        run_id = enqueue()
        worker = make_worker(db, machine, clock=clock)
        worker.tick(NOW)
        queue.request_stop(db, run_id)
        seen = []
        for clock.seconds in (0.0, 19.0, 20.0, 21.0, 79.0, 80.0):
            worker.tick(NOW)
            seen.append(list(machine.signals))
        term, kill = ("SIGTERM", 1001), ("SIGKILL", 1001)
        assert seen == [[], [], [term], [term], [term], [term, kill]]
        worker.tick(NOW)
        run = run_of(db, run_id)
        assert run.status == "stopped"
        assert run.error is not None
        assert run.error.startswith("stopped by force")

    def test_a_run_that_stops_when_asked_is_never_signalled(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses, clock: FakeClock
    ) -> None:
        run_id = enqueue()
        worker = make_worker(db, machine, clock=clock)
        worker.tick(NOW)
        queue.request_stop(db, run_id)
        worker.tick(NOW)
        write_own_end(db, run_id, "stopped")
        machine.end(1001, 0)
        clock.seconds = 500.0
        worker.tick(NOW)
        assert (machine.signals, statuses(db, run_id)) == ([], ["stopped"])

    def test_a_crash_while_stopping_is_still_a_crash(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        worker = make_worker(db, machine)
        worker.tick(NOW)
        queue.request_stop(db, run_id)
        machine.end(1001, -11)
        worker.tick(NOW)
        assert (run_of(db, run_id).status, run_of(db, run_id).error) == (
            "failed",
            "crashed: the process died: signal 11 (SIGSEGV); resume goes on from the last checkpoint",
        )


class TestTakingOver:
    def test_a_live_process_of_a_dead_worker_goes_on_under_the_next_one(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id, waiting = enqueue(), enqueue()
        make_worker(db, machine).tick(NOW)
        second = make_worker(db, machine)
        second.tick(seconds_later(20))
        assert statuses(db, run_id, waiting) == ["starting", "queued"]
        machine.end(1001, -9)
        second.tick(seconds_later(21))
        error = run_of(db, run_id).error
        assert error is not None
        assert error.startswith("crashed: the process died (how is not known: an earlier worker had started it)")
        assert statuses(db, run_id, waiting) == ["failed", "starting"]

    def test_runs_of_a_worker_that_reports_itself_are_left_to_it(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        first = make_worker(db, machine)
        first.tick(NOW)
        # On another machine, so that this test's own pid does not stand for the first worker's.
        queue.worker_heartbeat(db, first.worker_id, "elsewhere", 1, seconds_later(1))
        machine.end(1001, -9)
        make_worker(db, machine).tick(seconds_later(2))
        assert statuses(db, run_id) == ["starting"]

    def test_a_pid_that_belongs_to_a_stranger_now_is_a_crash_and_no_signal(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses, clock: FakeClock
    ) -> None:
        run_id = enqueue()
        make_worker(db, machine).tick(NOW)
        (attempt,) = reads.attempts(db, run_id)
        queue.attempt_started(db, attempt.attempt_id, pid=1001, pid_started_at=99.0, boot_id=BOOT)
        queue.request_stop(db, run_id)
        clock.seconds = 500.0
        make_worker(db, machine, clock=clock).tick(seconds_later(20))
        assert (machine.signals, statuses(db, run_id)) == ([], ["failed"])

    def test_a_run_from_before_a_reboot_is_lost(self, db: Database, enqueue: Enqueue, machine: FakeProcesses) -> None:
        run_id = enqueue()
        make_worker(db, machine).tick(NOW)
        make_worker(db, machine, boot_id="boot-2").tick(seconds_later(20))
        run = run_of(db, run_id)
        assert (run.status, run.error) == (
            "lost",
            "lost: its machine was restarted; resume goes on from the last checkpoint",
        )

    def test_a_run_on_another_machine_is_judged_by_its_heartbeat_alone(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        make_worker(db, FakeProcesses(), host="elsewhere").tick(NOW)
        here = make_worker(db, machine)
        here.tick(seconds_later(59))
        assert statuses(db, run_id) == ["starting"]
        here.tick(seconds_later(61))
        assert (run_of(db, run_id).status, run_of(db, run_id).error) == (
            "lost",
            "lost: no heartbeat from elsewhere; resume goes on from the last checkpoint",
        )

    def test_a_run_whose_worker_died_before_it_had_a_process_is_queued_once_more(
        self, db: Database, enqueue: Enqueue, machine: FakeProcesses
    ) -> None:
        run_id = enqueue()
        claim = queue.claim_next(db, worker_id="dead", host="here", now=NOW)
        assert claim is not None
        worker = make_worker(db, machine)
        worker.tick(seconds_later(29))
        assert machine.started == []
        worker.tick(seconds_later(31))
        first, second = reads.attempts(db, run_id)
        assert (first.outcome, second.ended_at) == ("lost", None)
        assert not queue.heartbeat(db, claim.attempt_id, seconds_later(32))
        assert len(machine.started) == 1


def test_the_worker_reports_itself_each_round(db: Database, machine: FakeProcesses) -> None:
    worker = make_worker(db, machine)
    worker.tick(NOW)
    worker.tick(seconds_later(0.5))
    (seen,) = queue.workers(db)
    assert (seen.worker_id, seen.host) == (worker.worker_id, "here")
    assert seen.heartbeat_at - seen.started_at == timedelta(seconds=0.5)


def test_a_step_written_meanwhile_is_kept(db: Database, enqueue: Enqueue, machine: FakeProcesses) -> None:
    from engine.types import StepRecord

    run_id = enqueue()
    worker = make_worker(db, machine)
    worker.tick(NOW)
    writes.write_step(db, run_id, StepRecord(1, {"reward": 0.5}))
    machine.end(1001, -9)
    worker.tick(NOW)
    assert run_of(db, run_id).step == 1
