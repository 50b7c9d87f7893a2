"""Which workers are at work."""

from datetime import datetime, timedelta

from engine.jobs import process
from engine.store import queue
from engine.store.database import Database
from engine.store.records import Worker

SILENCE = timedelta(seconds=10)
"""A worker reports itself twice a second; after this long without a word it is taken for gone."""


def live_workers(db: Database, now: datetime) -> list[Worker]:
    """Return the workers that have reported lately and, on this machine, whose process exists."""
    return [worker for worker in queue.workers(db) if _is_live(worker, now)]


def _is_live(worker: Worker, now: datetime) -> bool:
    if now - worker.heartbeat_at > SILENCE:
        return False
    # Seen from here a killed worker is gone at once, which lets the next one take over without waiting.
    return worker.host != process.host_name() or process.identify(worker.pid) is not None
