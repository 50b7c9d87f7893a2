"""Writing regradings: begun, carried on chunk by chunk, ended. What they are about is never changed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from engine.errors import StoreError
from engine.store import schema
from engine.store.database import Database
from engine.store.numbers import finite_or_none
from engine.store.records import Covers, Flip, RegradeStatus
from engine.store.stored_answers import extent
from engine.store.text import clean_text

SILENCE = timedelta(seconds=60)
"""After so long without a sign of life a regrading is over."""

_regrade, _flip = schema.regrade, schema.regrade_flip


def begin_regrade(
    db: Database,
    run_id: str,
    *,
    reward: str,
    version: str,
    covers: Covers = "completions",
    step_from: int | None = None,
    step_to: int | None = None,
    sample: int | None = None,
) -> int:
    """Store that the answers of these steps are to be graded again, or a `sample` of them, and return the id.

    Raises:
        StoreError: if there is no such run, or no such answer of it is stored, or the sample is empty.
    """
    if sample is not None and sample < 1:
        raise StoreError(f"limit={sample} is no number of answers; give 1 or more, or leave it out")
    found = extent(db, run_id, covers, step_from=step_from, step_to=step_to)
    with db.write() as connection:
        known = select(schema.run.c.run_id).where(schema.run.c.run_id == run_id)
        if connection.execute(known).scalar() is None:
            raise StoreError(f"run={run_id} does not exist; `grpo-lab ls` lists the runs")
        if found.first is None:
            what = "completions" if covers == "completions" else "answers of evaluations"
            steps = "" if step_from is step_to is None else f" for steps {_shown(step_from)}:{_shown(step_to)}"
            raise StoreError(
                f"run={run_id} has no stored {what}{steps}; choose other steps, or a run that stores them "
                "(logging.completions)"
            )
        now = datetime.now(UTC)
        values = {
            "run_id": run_id,
            "reward": clean_text(reward),
            "version": clean_text(version),
            "covers": covers,
            "step_from": found.first,
            "step_to": found.last,
            "sample": sample if sample is not None and sample < found.count else None,
            "status": "running",
            "stop_requested": False,
            "done": 0,
            "total": found.count if sample is None else min(sample, found.count),
            "counts": {},
            "created_at": now,
            "heartbeat_at": now,
        }
        return int(connection.execute(insert(_regrade).values(values).returning(_regrade.c.regrade_id)).scalar_one())


def note_version(db: Database, regrade_id: int, version: str) -> None:
    """Store the version of the grader as the process that grades has it.

    Raises:
        StoreError: if the regrading is over.
    """
    with db.write() as connection:
        _touch(connection, regrade_id, version=clean_text(version))


def note_progress(
    db: Database, regrade_id: int, flips: Sequence[Flip], *, place: int, done: int, counts: Mapping[str, Any]
) -> None:
    """Store the flips of a chunk, numbered from `place`, and how far the regrading is, in one transaction.

    Raises:
        StoreError: if the regrading is over, or an answer is not stored any more.
    """
    try:
        with db.write() as connection:
            _touch(connection, regrade_id, done=done, counts=dict(counts))
            if flips:
                rows = [_row(regrade_id, place + number, flip) for number, flip in enumerate(flips)]
                connection.execute(insert(_flip), rows)
    except IntegrityError as error:
        raise StoreError(
            f"regrade={regrade_id}: an answer is not stored any more, since the run has gone on from an earlier step; "
            "grade it again"
        ) from error


def beat(db: Database, regrade_id: int, now: datetime) -> None:
    """Store a sign of life."""
    with db.write() as connection:
        connection.execute(update(_regrade).where(_regrade.c.regrade_id == regrade_id).values(heartbeat_at=now))


def end_regrade(db: Database, regrade_id: int, status: RegradeStatus, error: str | None = None) -> bool:
    """Store how a regrading ended; return False where it had ended before, and then change nothing."""
    running = (_regrade.c.regrade_id == regrade_id, _regrade.c.status == "running")
    values = {"status": status, "error": clean_text(error), "finished_at": datetime.now(UTC)}
    with db.write() as connection:
        return connection.execute(update(_regrade).where(*running).values(values)).rowcount > 0


def end_silent(db: Database, run_id: str, now: datetime, silence: timedelta = SILENCE) -> int:
    """End the regradings of a run whose process has given no sign of life for so long; return how many."""
    silent = (_regrade.c.run_id == run_id, _regrade.c.status == "running", _regrade.c.heartbeat_at < now - silence)
    error = f"its process gave no sign of life for {silence.total_seconds():.0f} s; it was probably killed"
    values = {"status": "failed", "error": error, "finished_at": now}
    with db.read() as connection:  # asked first: a page looks often, and a write waits for other writers
        if connection.execute(select(_regrade.c.regrade_id).where(*silent).limit(1)).scalar() is None:
            return 0
    with db.write() as connection:
        return connection.execute(update(_regrade).where(*silent).values(values)).rowcount


def request_regrade_stop(db: Database, regrade_id: int) -> None:
    """Ask a regrading to stop after the chunk in hand; what it has found so far is kept."""
    with db.write() as connection:
        connection.execute(update(_regrade).where(_regrade.c.regrade_id == regrade_id).values(stop_requested=True))


def regrade_stop_requested(db: Database, regrade_id: int) -> bool:
    """Return whether a regrading has been asked to stop; True as well when it is over or no longer exists."""
    query = select(_regrade.c.stop_requested, _regrade.c.status).where(_regrade.c.regrade_id == regrade_id)
    with db.read() as connection:
        row = connection.execute(query).one_or_none()
    return row is None or bool(row.stop_requested) or row.status != "running"


def discard_regrades_after(connection: Connection, run_id: str, step: int) -> None:
    """Remove the regradings of a run that cover answers beyond `step`: their counts are of answers that go."""
    connection.execute(delete(_regrade).where(_regrade.c.run_id == run_id, _regrade.c.step_to > step))


def _touch(connection: Connection, regrade_id: int, **values: Any) -> None:
    running = (_regrade.c.regrade_id == regrade_id, _regrade.c.status == "running")
    values["heartbeat_at"] = datetime.now(UTC)
    if connection.execute(update(_regrade).where(*running).values(values)).rowcount == 0:
        raise StoreError(
            f"regrade={regrade_id} is over, or was removed since its run has gone on from an earlier step; "
            "grade it again"
        )


def _row(regrade_id: int, place: int, flip: Flip) -> dict[str, Any]:
    answer, reward = flip.answer, flip.reward
    of_evaluation = answer.completion_id is None
    return {
        "regrade_id": regrade_id,
        "place": place,
        "completion_id": answer.completion_id,
        "evaluation_id": answer.owner if of_evaluation else None,
        "answer_index": answer.index if of_evaluation else None,
        "value": finite_or_none(reward.value),
        "verdict": reward.verdict,
        "answer": clean_text(reward.answer),
        "reason": clean_text(reward.reason),
        "seconds": flip.seconds,
    }


def _shown(step: int | None) -> str:
    return "" if step is None else str(step)
