"""Storing: what keeping every rollout costs a step of the quick start, on the loop's side and in all."""

import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.entry import Entry, run_alone, say
from engine.presets import load_preset
from engine.store import writes
from engine.store.database import open_database
from engine.store.queue import enqueue
from engine.store.recorder import Recorder
from engine.training.loop import train
from engine.types import StepRecord

STEPS, THREADS, REPETITIONS = 12, 1, 1


class TimedRecorder(Recorder):
    """Times the hand-over and keeps the records, to write them again alone."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.records: list[StepRecord] = []

    def step(self, record: StepRecord) -> None:
        """Keep the record and hand it over."""
        self.records.append(record)
        super().step(record)


def measure(*, repetitions: int = REPETITIONS) -> list[Entry]:
    """Return the seconds per step that the loop spends on storing, and those of the write itself."""
    steps: list[float] = []
    handed: list[float] = []
    written: list[float] = []
    for number in range(repetitions):
        of_steps, of_hand_over, of_writes = train_and_write_again()
        steps, handed, written = steps + of_steps, handed + of_hand_over, written + of_writes
        say(f"store, run {number + 1} of {repetitions}: {median(of_steps):.3g} s/step")
    n = len(steps)
    return [
        Entry("store/hand-over per step", median(handed), median(steps), "whole step", "s", n),
        Entry("store/write per step, in the background", median(written), median(steps), "whole step", "s", n),
    ]


def train_and_write_again() -> tuple[list[float], list[float], list[float]]:
    """Return the seconds of each step, of its hand-over from the second on, and of each write alone."""
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
        db.close()
    return (
        [record.metrics["step_time"] for record in recorder.records],
        [record.metrics["time/write"] for record in recorder.records[1:]],
        written,
    )


if __name__ == "__main__":
    run_alone("store", __doc__, measure, REPETITIONS)
