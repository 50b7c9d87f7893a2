"""A run's process without a model: it lives, reports itself and stops when asked, or does not (`--stubborn`).

With `--end STATUS` it writes two steps and ends at once.
"""

import sys
import time
from datetime import datetime
from typing import Any

from engine.jobs.heartbeat import Heartbeat
from engine.jobs.stop_flag import StopFlag
from engine.store import queue, writes
from engine.store.database import open_database
from engine.types import EvaluationRecord, StepRecord

run_id, attempt_id, stubborn = sys.argv[1], int(sys.argv[2]), "--stubborn" in sys.argv
stop = StopFlag()
stop.raise_on_signals()
db = open_database(migrate=False)


def beat(now: datetime) -> None:
    queue.heartbeat(db, attempt_id, now, 1.0)
    if queue.stop_requested(db, run_id):
        stop.raise_for("asked to stop")


queue.transition(db, run_id, "running")
if "--end" in sys.argv:
    status: Any = sys.argv[-1]
    for step in (1, 2):
        writes.write_step(db, run_id, StepRecord(step, {"reward": step / 2}))
        writes.write_evaluation(
            db, run_id, EvaluationRecord(step, "validation", "sampled", 1.0, {"accuracy": step / 4})
        )
    queue.attempt_ended(db, attempt_id, outcome=status, seconds=1.5)
    queue.transition(db, run_id, status, error="ValueError: no" if status == "failed" else None)
    sys.exit(status == "failed")

heartbeat = Heartbeat(beat, every=0.05).start()
print("under way", flush=True)
deadline = time.monotonic() + 60
while (stubborn or not stop()) and time.monotonic() < deadline:
    time.sleep(0.02)
heartbeat.close()
queue.attempt_ended(db, attempt_id, outcome="stopped", seconds=1.0)
queue.transition(db, run_id, "stopped", error=f"stopped by {stop.reason}")
db.close()
