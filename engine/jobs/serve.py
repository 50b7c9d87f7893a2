"""The worker as a service: ticks until it is told to end."""

import logging
import sys
import time
from datetime import UTC, datetime

from sqlalchemy.exc import SQLAlchemyError

from engine.errors import GrpoLabError
from engine.jobs.resources import find_resources
from engine.jobs.stop_flag import StopFlag
from engine.jobs.worker import Worker
from engine.jobs.workers import live_workers
from engine.store.database import open_database

LOG = logging.getLogger("grpo_lab.worker")
TICK_SECONDS = 0.5


def serve(worker: Worker, told_to_end: StopFlag, *, every: float = TICK_SECONDS) -> None:
    """Tick until told to end. A round that fails is reported once per spell, and the next one tried."""
    failing = False
    while not told_to_end():
        try:
            worker.tick(datetime.now(UTC))
            failing = False
        except (GrpoLabError, SQLAlchemyError, OSError) as error:
            if not failing:
                LOG.warning("this round failed, trying on: %s: %s", type(error).__name__, error)
            failing = True
        time.sleep(every)


def main() -> int:
    """Serve the store's queue until SIGTERM or SIGINT; runs under way go on. Returns the exit code."""
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    LOG.setLevel(logging.INFO)  # ours alone: migrations are talkative
    told_to_end = StopFlag()
    told_to_end.raise_on_signals()
    try:
        db, resources = open_database(), find_resources()
    except GrpoLabError as error:
        LOG.error("%s", error)
        return 1
    for other in live_workers(db, datetime.now(UTC)):
        LOG.warning("another worker is at work: %s; both will take runs from the queue", other.worker_id)
    worker = Worker(db, resources)
    LOG.info("worker %s: %s", worker.worker_id, resources)
    serve(worker, told_to_end)
    LOG.info("worker ends (%s); runs under way go on", told_to_end.reason)
    db.close()
    return 0
