"""Storing: what keeping every rollout costs a step of the quick start, on the loop's side and in all."""

import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.entry import Entry, run_alone
from engine.presets import load_preset
from engine.store import writes
from engine.store.database import open_database
from engine.store.queue import enqueue
from engine.store.recorder import Recorder
from engine.training.loop import train
from engine.types import StepRecord

STEPS, THREADS = 12, 1


class TimedRecorder(Recorder):
    """Times the hand-over and keeps the records, to write them again alone."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.records: list[StepRecord] = []

    def step(self, record: StepRecord) -> None:
        """Keep the record and hand it over."""
        self.records.append(record)
        super().step(record)


def measure() -> list[Entry]:
    """Return the seconds per step that the loop spends on storing, and those of the write itself."""
    config = load_preset("quick-start", {"grpo.steps": STEPS, "evaluation.every": STEPS}).config
    with tempfile.TemporaryDirectory() as folder:
        db = open_database(f"sqlite:///{folder}/runs.db")
        run_id = enqueue(db, config, name="benchmark")
        recorder = TimedRecorder(db, run_id)
        train(config, recorder=recorder, folder=Path(folder), threads=THREADS, stop=lambda: False)
        recorder.close()
        written = []
        for record in recorder.records:
            began = time.perf_counter()
            writes.write_step(db, run_id, record)
            written.append(time.perf_counter() - began)
        db.engine.dispose()
    step = median(record.metrics["step_time"] for record in recorder.records)
    handed = median(record.metrics["time/write"] for record in recorder.records[1:])
    n = len(recorder.records)
    return [
        Entry("store/hand-over per step", handed, step, "whole step", "s", n),
        Entry("store/write per step, in the background", median(written), step, "whole step", "s", n),
    ]


if __name__ == "__main__":
    run_alone(measure)
