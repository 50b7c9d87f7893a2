"""The real worker as a process, which starts fake runs."""

import sys
from pathlib import Path

from engine.jobs.resources import Resources
from engine.jobs.serve import serve
from engine.jobs.stop_flag import StopFlag
from engine.jobs.worker import Worker
from engine.store.database import open_database
from engine.store.records import Claim


def fake_command(claim: Claim, threads: int) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("fake_run.py")), claim.run_id, str(claim.attempt_id)]


if __name__ == "__main__":
    told_to_end = StopFlag()
    told_to_end.raise_on_signals()
    serve(Worker(open_database(), Resources(1, 1), command=fake_command), told_to_end, every=0.05)
