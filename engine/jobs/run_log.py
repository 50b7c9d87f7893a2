"""The log of a run: what goes to the store also goes, in short, to standard output, one line per step."""

from collections.abc import Callable

from engine.store.database import Database
from engine.store.recorder import Recorder
from engine.store.records import Level
from engine.types import EvaluationRecord, StepRecord

SHOWN = (
    ("reward", "reward", "{:.3f}"),
    ("entropy", "entropy", "{:.3f}"),
    ("completions/mean_length", "length", "{:.1f}"),
    ("grad_norm", "grad_norm", "{:.3f}"),
    ("step_time", "time", "{:.2f} s"),
)
SHOWN_IN_SFT = (("loss", "loss", "{:.3f}"), *SHOWN)
Say = Callable[[str], None]


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


class LoggedRecorder(Recorder):
    """A Recorder that also says what it is given."""

    def __init__(self, db: Database, run_id: str, *, attempt_id: int, total_steps: int, say: Say = say) -> None:
        super().__init__(db, run_id, attempt_id=attempt_id)
        self._total_steps, self._say = total_steps, say

    def step(self, record: StepRecord) -> None:
        """Record and say a step."""
        super().step(record)
        self._say(step_line(record, self._total_steps))

    def evaluation(self, record: EvaluationRecord) -> None:
        """Record and say an evaluation."""
        super().evaluation(record)
        self._say(evaluation_line(record))

    def event(self, kind: str, message: str, *, step: int | None = None, level: Level = "info") -> None:
        """Record and say an event."""
        super().event(kind, message, step=step, level=level)
        self._say(f"{level}: {message}")

    def checkpoint(self, step: int, path: str, accuracy: float | None = None) -> None:
        """Record and say a checkpoint."""
        super().checkpoint(step, path, accuracy)
        self._say(f"checkpoint at step {step}  {path}")


def step_line(record: StepRecord, total_steps: int) -> str:
    """Return a step in one line; metrics that were not logged are left out."""
    wanted = SHOWN if "reward" in record.metrics else SHOWN_IN_SFT
    shown = [f"{word} {form.format(record.metrics[name])}" for name, word, form in wanted if name in record.metrics]
    return "  ".join([f"step {record.step}/{total_steps}", *shown])


def evaluation_line(record: EvaluationRecord) -> str:
    """Return an evaluation in one line."""
    metrics = "  ".join(f"{name} {value:.3f}" for name, value in record.metrics.items())
    return f"evaluation at step {record.step}  {record.split}, {record.mode}  {metrics}"
