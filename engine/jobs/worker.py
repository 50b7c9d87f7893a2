"""The worker: `tick(now)` watches the runs that are going and starts those that wait.

`python -m engine.jobs.worker` does so twice a second until it is told to end.
"""

import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from engine.jobs import endings, process
from engine.jobs.fate import Fate, Surroundings, fate_of
from engine.jobs.process import Child, Identity
from engine.jobs.processes import Processes
from engine.jobs.resources import Resources
from engine.jobs.starter import Command, Starter, run_command
from engine.jobs.stopping import Patience, StopWatch
from engine.jobs.workers import live_workers
from engine.store import queue
from engine.store.database import Database
from engine.store.records import Attempt, Claim

REPAIR_EVERY = timedelta(seconds=10)


class Worker:
    """Starts queued runs while there is room, and sees to runs whose process does not end as it should.

    With `only`, it takes and watches these runs alone and does not report itself as a worker. Runs of a worker that
    has gone are taken over; runs that are going when this one ends go on.
    """

    def __init__(
        self,
        db: Database,
        resources: Resources,
        *,
        only: Sequence[str] | None = None,
        patience: Patience | None = None,
        processes: Processes = process,
        command: Command = run_command,
        clock: Callable[[], float] = time.monotonic,
        host: str | None = None,
        boot_id: str | None = None,
    ) -> None:
        self._db, self._max_runs, self._only = db, resources.max_runs, only
        self._starter = Starter(db, resources, processes, command)
        self._processes, self._clock = processes, clock
        self._host, self._boot_id = host or process.host_name(), boot_id or process.boot_id()
        self.worker_id = f"{self._host}-{os.getpid()}-{secrets.token_hex(3)}"
        self._stop_watch = StopWatch(patience or Patience())
        self._children: dict[int, Child] = {}
        self._exit_codes: dict[int, int] = {}
        self._killed: set[int] = set()
        self._repaired_at: datetime | None = None

    @property
    def busy(self) -> bool:
        """Whether a process that this worker started has not ended."""
        return bool(self._children)

    def tick(self, now: datetime) -> None:
        """Do one round: report, judge what has ended, press on with stops, start what fits.

        Raises:
            StoreError: if the store refuses; the next round makes up for this one.
        """
        if self._only is None:
            queue.worker_heartbeat(self._db, self.worker_id, self._host, os.getpid(), now)
        self._reap()
        starting, going = self._watch(now)
        while starting + len(going) < self._max_runs and (claim := self._claim(now)):
            started = self._start(claim, going)
            going += [] if started is None else [started]
        if self._only is None and (self._repaired_at is None or now - self._repaired_at >= REPAIR_EVERY):
            self._repaired_at = now
            endings.finish_half_written(self._db, now)

    def _reap(self) -> None:
        for attempt_id, child in list(self._children.items()):
            code = child.poll()
            if code is not None:
                self._exit_codes[attempt_id] = code
                del self._children[attempt_id]

    def _watch(self, now: datetime) -> tuple[int, list[Identity]]:
        """See to every attempt that is this worker's concern.

        Returns how many on this machine are about to get a process, and the processes of the others.
        """
        live = {worker.worker_id for worker in live_workers(self._db, now)} | {self.worker_id}
        starting, going = 0, list[Identity]()
        gone: dict[int, Fate] = {}
        attempts = queue.live_attempts(self._db)
        self._note_exit_codes({attempt.attempt_id for attempt in attempts})
        for attempt in attempts:
            fate = self._fate(attempt, now, live)
            mine = attempt.worker_id == self.worker_id or attempt.worker_id not in live
            mine = mine and (self._only is None or attempt.run_id in self._only)
            if fate != "alive":
                gone |= {attempt.attempt_id: fate} if mine else {}
                continue
            identity = identity_of(attempt)
            if attempt.host == self._host and identity is None:
                starting += 1
            elif attempt.host == self._host and identity is not None:
                going.append(identity)
            if mine and queue.stop_requested(self._db, attempt.run_id):
                self._press(attempt)
        if gone:
            # A process may have written its end between our first look at the store and our look at the process.
            for attempt in queue.live_attempts(self._db):
                if attempt.attempt_id in gone:
                    self._judge(attempt, gone[attempt.attempt_id])
        return starting, going

    def _note_exit_codes(self, live: set[int]) -> None:
        """Add the exit code to attempts that have written their own end."""
        for attempt_id in self._exit_codes.keys() - live:
            code = self._exit_codes.pop(attempt_id)
            queue.attempt_ended(self._db, attempt_id, outcome="failed" if code else "succeeded", exit_code=code)

    def _fate(self, attempt: Attempt, now: datetime, live: set[str]) -> Fate:
        # Of its own children the exit code is the evidence: while their threads end, they can look dead too soon.
        if attempt.attempt_id in self._exit_codes:
            return "crashed"
        if attempt.attempt_id in self._children:
            return "alive"
        identity = identity_of(attempt)
        mine = attempt.worker_id == self.worker_id
        return fate_of(
            attempt,
            Surroundings(
                now=now,
                host=self._host,
                boot_id=self._boot_id,
                process_alive=identity is not None and self._processes.is_alive(identity),
                in_hand=not mine and attempt.worker_id in live,
            ),
        )

    def _judge(self, attempt: Attempt, fate: Fate) -> None:
        exit_code = self._exit_codes.pop(attempt.attempt_id, None)
        identity = identity_of(attempt)
        if fate == "never_started":
            endings.queue_again(self._db, attempt)
        elif fate == "lost":
            endings.end_as_lost(self._db, attempt, self._host)
        else:
            if identity is not None:
                self._processes.kill_strays(identity, str(attempt.attempt_id))
            end = endings.end_as_killed if attempt.attempt_id in self._killed else endings.end_as_crashed
            end(self._db, attempt, exit_code)
        self._stop_watch.forget(attempt.attempt_id)
        self._killed.discard(attempt.attempt_id)

    def _press(self, attempt: Attempt) -> None:
        identity = identity_of(attempt)
        if identity is None or attempt.host != self._host:
            return
        measure = self._stop_watch.measure_for(attempt.attempt_id, self._clock())
        if measure == "terminate":
            self._processes.terminate(identity)
        elif measure == "kill":
            self._killed.add(attempt.attempt_id)
            self._processes.kill_tree(identity)

    def _claim(self, now: datetime) -> Claim | None:
        if self._only is None:
            return queue.claim_next(self._db, worker_id=self.worker_id, host=self._host, now=now)
        for run_id in self._only:
            claim = queue.claim(self._db, run_id, worker_id=self.worker_id, host=self._host, now=now)
            if claim is not None:
                return claim
        return None

    def _start(self, claim: Claim, going: list[Identity]) -> Identity | None:
        try:
            child, log = self._starter.start(claim, going)
        except OSError as error:
            endings.end_as_unstartable(self._db, claim, error)
            return None
        self._children[claim.attempt_id] = child
        queue.attempt_started(
            self._db,
            claim.attempt_id,
            pid=child.identity.pid,
            pid_started_at=child.identity.started_at,
            boot_id=child.identity.boot_id,
            log_path=str(log),
        )
        return child.identity


def identity_of(attempt: Attempt) -> Identity | None:
    """Return who an attempt's process is, or None while it has none on record."""
    if attempt.pid is None or attempt.pid_started_at is None:
        return None
    return Identity(attempt.pid, attempt.pid_started_at, attempt.boot_id or "")


if __name__ == "__main__":
    from engine.jobs.serve import main

    sys.exit(main())
