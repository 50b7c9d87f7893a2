"""Waiting for runs: watching them, and being their worker if there is no other."""

import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import FrameType
from typing import Any, Self

from sqlalchemy.exc import DBAPIError

from engine.cli.output import Output
from engine.cli.progress import Progress
from engine.errors import TransitionError
from engine.jobs.resources import find_resources
from engine.jobs.worker import Worker
from engine.jobs.workers import live_workers
from engine.store import queue, reads
from engine.store.database import Database
from engine.store.records import Run
from engine.store.status import ENDED

POLL_SECONDS = 0.5


def wait_for(db: Database, run_ids: Sequence[str], out: Output) -> bool:
    """Return True when all these runs have ended by themselves, False after Ctrl-C.

    Ctrl-C stops the runs if this process is their worker, and leaves them to their worker otherwise.
    """
    waiter, stopping = Waiter(db, run_ids), False
    with Progress() as progress, Interrupts() as interrupts:
        while True:
            try:
                runs = waiter.look()
            except DBAPIError as error:
                out.note(f"The store did not answer, trying on: {error.orig}")
            else:
                progress.show(runs)
                if waiter.over(runs):
                    return not stopping
            if interrupts.count > 1 or (interrupts.count and not waiter.is_their_worker):
                out.note("Left as they are; `grpo-lab stop RUN` stops a run.")
                return False
            if interrupts.count and not stopping:
                out.note("Stopping; each run saves a checkpoint first. Ctrl-C again leaves them to the next worker.")
                stopping = True
                waiter.stop_all()
            time.sleep(POLL_SECONDS)


class Interrupts:
    """Counts Ctrl-C while it is entered, so that none falls between the claim of a run and its start."""

    def __init__(self) -> None:
        self.count = 0
        self._before: Any = signal.SIG_DFL

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_error: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


class Waiter:
    """Looks at some runs again and again; from the moment no worker is at work, it is theirs and theirs alone."""

    def __init__(self, db: Database, run_ids: Sequence[str]) -> None:
        self._db, self._run_ids = db, run_ids
        self._worker: Worker | None = None

    @property
    def is_their_worker(self) -> bool:
        """Whether this process has become the worker of these runs."""
        return self._worker is not None

    def look(self) -> list[Run]:
        """Return the runs as they are now, after a worker's round if that is up to this process."""
        now = datetime.now(UTC)
        if self._worker is None and not live_workers(self._db, now):
            self._worker = Worker(self._db, find_resources(), only=self._run_ids)
        if self._worker is not None:
            self._worker.tick(now)
        return [reads.find_run(self._db, run_id) for run_id in self._run_ids]

    def over(self, runs: Sequence[Run]) -> bool:
        """Whether all have ended, and their processes as well."""
        return all(run.status in ENDED for run in runs) and not (self._worker and self._worker.busy)

    def stop_all(self) -> None:
        """Ask every run that has not ended to stop."""
        for run_id in self._run_ids:
            with suppress(TransitionError):  # it has ended
                queue.request_stop(self._db, run_id)
