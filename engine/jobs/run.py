"""The process of one attempt of a run: `python -m engine.jobs.run RUN_ID --attempt ATTEMPT_ID [--threads N]`."""

import argparse
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from sqlalchemy.exc import SQLAlchemyError

from engine.errors import StoreError, TransitionError
from engine.jobs import process
from engine.jobs.endings import last_line
from engine.jobs.folders import run_folder
from engine.jobs.heartbeat import Heartbeat
from engine.jobs.resources import available_cores
from engine.jobs.run_log import LoggedRecorder, say
from engine.jobs.start_point import find_beginning
from engine.jobs.stop_flag import StopFlag
from engine.store import queue, reads, writes
from engine.store.database import Database, open_database
from engine.store.records import Run

if TYPE_CHECKING:
    from engine.training.loop import Outcome

Train = Callable[..., "Outcome"]
OVER = "this attempt was declared over"
WRITE_PATIENCE = 600.0
"""Seconds for which a finished process keeps trying to write its end into a store that refuses."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended, as it is written down."""

    status: Literal["succeeded", "stopped", "failed"]
    traceback: str | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one attempt; return 0 if it succeeded or stopped when asked, 1 otherwise."""
    given = _parse(arguments)
    stop = StopFlag()
    stop.raise_on_signals()
    # Before torch is imported, which reads it once.
    os.environ.setdefault("OMP_NUM_THREADS", str(given.threads))
    db = open_database(migrate=False)
    try:
        return run_attempt(db, given.run_id, given.attempt, threads=given.threads, stop=stop)
    finally:
        db.close()


def run_attempt(
    db: Database, run_id: str, attempt_id: int, *, threads: int, stop: StopFlag, train: Train | None = None
) -> int:
    """Train, keep the store informed, write the end; return the exit code.

    Whatever training raises ends as a failed run with its traceback.

    Raises:
        StoreError: if there is no such run or attempt.
    """
    run = reads.get_run(db, run_id)
    me = process.identify(os.getpid())
    if run is None or me is None:
        raise StoreError(f"run={run_id} does not exist; `grpo-lab ls` lists the runs")
    queue.attempt_started(db, attempt_id, pid=me.pid, pid_started_at=me.started_at, boot_id=me.boot_id)
    say(f"run {run_id} ({run.name}), process {me.pid} on {process.host_name()}, {threads} thread(s)")
    began = time.monotonic()

    def beat(now: datetime) -> None:
        if not queue.heartbeat(db, attempt_id, now, time.monotonic() - began):
            stop.raise_for(OVER)
        elif queue.stop_requested(db, run_id):
            stop.raise_for("asked to stop")

    heartbeat = Heartbeat(beat, complain=say).start()
    try:
        ending = _train(db, run, attempt_id, threads, stop, train)
    except Exception:  # whatever it is, it is this run's end, and belongs into its row
        ending = Ending("failed", traceback.format_exc())
    say(ending.traceback or f"{ending.status}{f' ({stop.reason})' if stop.reason else ''}")
    heartbeat.close()
    if stop.reason == OVER:
        return 1
    _write_end(db, run_id, attempt_id, ending, time.monotonic() - began)
    return 1 if ending.status == "failed" else 0


def _train(db: Database, run: Run, attempt_id: int, threads: int, stop: StopFlag, train: Train | None) -> Ending:
    # Read before torch is imported: a config that an update has made invalid fails in no time.
    config = run.run_config()
    if stop():
        return Ending("stopped")
    from engine.training.loop import train as real_train
    from engine.training.setup import StartPoint

    beginning = find_beginning(db, run)
    writes.discard_after(db, run.run_id, beginning.step)
    recorder = LoggedRecorder(db, run.run_id, attempt_id=attempt_id, total_steps=run.total_steps)
    try:
        recorder.event("started", beginning.describe(), step=beginning.step)
        _say_running(db, run.run_id)
        outcome = (train or real_train)(
            config,
            recorder=recorder,
            folder=run_folder(db.url, run.run_id),
            threads=config.model.threads or threads,
            stop=stop,
            start=StartPoint(beginning.path, beginning.step, fork=beginning.fork) if beginning.path else None,
            initial_weights=beginning.initial_weights,
            graded_before=_graded_before(db, run.run_id),
        )
        return Ending(outcome.status)
    finally:
        if not recorder.close():
            say(f"not everything could be stored: {'; '.join(recorder.lost) or 'the store did not answer'}")


def _graded_before(db: Database, run_id: str) -> str | None:
    """Return what the newest event of an earlier attempt says of its grader; None in a first attempt."""
    return next((event.message for event in reversed(reads.events(db, run_id)) if event.kind == "grader"), None)


def _say_running(db: Database, run_id: str) -> None:
    # Refused if it was asked to stop meanwhile, which the loop sees by itself.
    with contextlib.suppress(TransitionError):
        queue.transition(db, run_id, "running")


def _write_end(db: Database, run_id: str, attempt_id: int, ending: Ending, seconds: float) -> None:
    """Write the end, trying on while the store refuses; an attempt that others have declared over is left as it is."""
    give_up = time.monotonic() + WRITE_PATIENCE
    first = None
    while True:
        try:
            if first is None:
                first = queue.attempt_ended(
                    db, attempt_id, outcome=ending.status, traceback=ending.traceback, seconds=seconds
                )
            if first:
                queue.transition(db, run_id, ending.status, error=last_line(ending.traceback))
            return
        except TransitionError as error:
            say(f"the end was not written: {error}")
            return
        except SQLAlchemyError as error:
            if time.monotonic() > give_up:
                raise
            say(f"the end could not be written yet: {error}")
            time.sleep(2.0)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.jobs.run", description="The process of one attempt.")
    parser.add_argument("run_id")
    parser.add_argument("--attempt", type=int, required=True, help="id of the attempt that was claimed")
    parser.add_argument("--threads", type=int, default=available_cores(), help="CPU threads (default: every core)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
