"""Ends for runs whose process did not write its own."""

import signal
from datetime import datetime, timedelta
from pathlib import Path

from engine.errors import TransitionError
from engine.jobs.folders import log_tail
from engine.store import queue, reads, writes
from engine.store.database import Database
from engine.store.records import Attempt, Claim, RunStatus
from engine.store.status import LIVE

WAY_OUT = "resume goes on from the last checkpoint"
HALF_WRITTEN = timedelta(seconds=10)
"""Between the two writes of an ending lie milliseconds; after this long the second is not coming."""


def end_as_crashed(db: Database, attempt: Attempt, exit_code: int | None) -> bool:
    """End a run whose process is gone without a word; the tail of its log is kept as the traceback."""
    return _end(db, attempt, "failed", f"crashed: the process {describe_exit(exit_code)}; {WAY_OUT}", exit_code)


def end_as_killed(db: Database, attempt: Attempt, exit_code: int | None) -> bool:
    """End a run that was asked to stop, did not, and was killed for it."""
    message = f"stopped by force: it ended neither when asked nor on SIGTERM; {WAY_OUT}"
    return _end(db, attempt, "stopped", message, exit_code)


def end_as_lost(db: Database, attempt: Attempt, here: str) -> bool:
    """End a run of which there is neither a process nor a heartbeat: its machine was restarted or is out of reach."""
    where = "its machine was restarted" if attempt.host == here else f"no heartbeat from {attempt.host}"
    return _end(db, attempt, "lost", f"lost: {where}; {WAY_OUT}")


def end_as_unstartable(db: Database, claim: Claim, error: OSError) -> bool:
    """End a run whose process could not be started."""
    return _end(db, claim, "failed", f"the process could not be started: {error}")


def queue_again(db: Database, attempt: Attempt) -> bool:
    """Queue a run anew whose worker died before it started a process; the old attempt can write no more.

    A run that has been asked to stop meanwhile is stopped instead.
    """
    if queue.stop_requested(db, attempt.run_id):
        return _end(db, attempt, "stopped", "stopped before it had a process")
    if not _end(db, attempt, "lost", "the worker died before it started a process; queued again"):
        return False
    queue.requeue(db, attempt.run_id)
    return True


def finish_half_written(db: Database, now: datetime) -> list[str]:
    """Give runs the status of their last attempt where its writer died between the two; return their ids."""
    finished = []
    for run in reads.list_runs(db, include_archived=True):
        if run.status not in LIVE:
            continue
        last = max(reads.attempts(db, run.run_id), key=lambda attempt: attempt.number, default=None)
        if last is None or last.ended_at is None or now - last.ended_at < HALF_WRITTEN:
            continue
        if _move(db, run.run_id, _status(last.outcome), last_line(last.traceback)):
            finished.append(run.run_id)
    return finished


def describe_exit(code: int | None) -> str:
    """Say in words how a process ended, given what `poll` returned; None where only its absence is known."""
    if code is None:
        return "died (how is not known: an earlier worker had started it)"
    if code >= 0:
        return f"ended with exit code {code} without writing how"
    try:
        name = f" ({signal.Signals(-code).name})"
    except ValueError:
        name = ""
    return f"died: signal {-code}{name}"


def last_line(text: str | None) -> str | None:
    """Return the last line of a traceback, which is the one that says what happened."""
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return lines[-1].strip() if lines else None


def _end(db: Database, attempt: Attempt | Claim, status: RunStatus, message: str, exit_code: int | None = None) -> bool:
    """Write the end unless somebody else has; return whether it was this call."""
    log = attempt.log_path if isinstance(attempt, Attempt) else None
    tail = log_tail(Path(log)) if log else ""
    story = f"Last lines of {log}:\n{tail}\n\n{message}" if tail else message
    # The attempt first: its first end stands, so of two workers (or a worker and a late process) one goes on.
    if not queue.attempt_ended(db, attempt.attempt_id, outcome=status, traceback=story, exit_code=exit_code):
        return False
    if not _move(db, attempt.run_id, status, message):
        return False
    writes.write_event(db, attempt.run_id, status, message, level="warning" if status == "stopped" else "error")
    return True


def _move(db: Database, run_id: str, status: RunStatus, error: str | None) -> bool:
    try:
        queue.transition(db, run_id, status, error=error)
    except TransitionError:
        return False
    return True


def _status(outcome: str | None) -> RunStatus:
    known: dict[str, RunStatus] = {"succeeded": "succeeded", "stopped": "stopped", "lost": "lost"}
    return known.get(outcome or "", "failed")
