"""Whether anybody takes runs out of the queue."""

from datetime import UTC, datetime, timedelta

from engine.store.database import Database
from engine.store.queue import workers

SILENCE = timedelta(seconds=15)


def worker_alive(db: Database, now: datetime | None = None) -> bool:
    """Return whether a worker has reported itself within the last 15 seconds."""
    oldest = (now or datetime.now(UTC)) - SILENCE
    return any(worker.heartbeat_at >= oldest for worker in workers(db))
