"""Reading runs and what hangs on one: attempts, events, checkpoints, forks."""

from sqlalchemy import select

from engine.errors import StoreError
from engine.store import schema
from engine.store.database import Database
from engine.store.records import Attempt, CheckpointRow, Event, Run
from engine.store.rows import columns_of
from engine.store.text import clean_text

_RUN = columns_of(Run, schema.run)


def list_runs(db: Database, *, include_archived: bool = False) -> list[Run]:
    """Return the runs, newest first, in one query."""
    query = select(*_RUN).order_by(schema.run.c.ordinal.desc())
    if not include_archived:
        query = query.where(schema.run.c.archived.is_(False))
    with db.read() as connection:
        return [Run(*row) for row in connection.execute(query)]


def get_run(db: Database, run_id: str) -> Run | None:
    """Return the run with exactly this id, or None."""
    with db.read() as connection:
        row = connection.execute(select(*_RUN).where(schema.run.c.run_id == clean_text(run_id))).one_or_none()
    return None if row is None else Run(*row)


def find_run(db: Database, text: str) -> Run:
    """Return the run whose id or name is `text`, or whose id begins with it; archived ones too.

    Raises:
        StoreError: if there is none, or more than one.
    """
    wanted = clean_text(text).strip()
    run = schema.run
    if not wanted:
        raise StoreError("run='' is empty; give a run's id, the beginning of one, or a name")
    attempts_at_it = (run.c.run_id == wanted, run.c.name == wanted, run.c.run_id.startswith(wanted, autoescape=True))
    with db.read() as connection:
        for condition in attempts_at_it:
            rows = connection.execute(select(*_RUN).where(condition).order_by(run.c.ordinal)).all()
            if len(rows) == 1:
                return Run(*rows[0])
            if rows:
                listed = ", ".join(f"{row.run_id} ({row.name}, seed {row.seed})" for row in rows[:8])
                more = f" and {len(rows) - 8} more" if len(rows) > 8 else ""
                raise StoreError(f"run={wanted} fits {len(rows)} runs: {listed}{more}; give the id of one")
    raise StoreError(f"run={wanted} does not exist; `grpo-lab ls` lists the runs")


def children(db: Database, run_id: str) -> list[Run]:
    """Return the runs forked from this one, oldest first."""
    query = select(*_RUN).where(schema.run.c.parent_run_id == run_id).order_by(schema.run.c.ordinal)
    with db.read() as connection:
        return [Run(*row) for row in connection.execute(query)]


def attempts(db: Database, run_id: str) -> list[Attempt]:
    """Return a run's attempts, first to last."""
    attempt = schema.attempt
    query = select(*columns_of(Attempt, attempt)).where(attempt.c.run_id == run_id).order_by(attempt.c.number)
    with db.read() as connection:
        return [Attempt(*row) for row in connection.execute(query)]


def events(db: Database, run_id: str, after_id: int = 0) -> list[Event]:
    """Return a run's events with an id above `after_id`, oldest first."""
    event = schema.event
    query = (
        select(*columns_of(Event, event))
        .where(event.c.run_id == run_id, event.c.event_id > after_id)
        .order_by(event.c.event_id)
    )
    with db.read() as connection:
        return [Event(*row) for row in connection.execute(query)]


def checkpoints(db: Database, run_id: str) -> list[CheckpointRow]:
    """Return a run's checkpoints by step."""
    checkpoint = schema.checkpoint
    query = (
        select(*columns_of(CheckpointRow, checkpoint)).where(checkpoint.c.run_id == run_id).order_by(checkpoint.c.step)
    )
    with db.read() as connection:
        return [CheckpointRow(*row) for row in connection.execute(query)]
