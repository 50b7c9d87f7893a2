"""Progress of runs on standard error: bars in a terminal, lines elsewhere."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich import progress as bars
from rich.console import Console
from rich.text import Text

from engine.cli.output import plain
from engine.cli.tables import percent
from engine.store.records import Run


class Progress:
    """One bar per run with steps, accuracy and time left; a line per change where there is no terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._bars = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[status]}"),
            bars.TextColumn("accuracy {task.fields[accuracy]}"),
            bars.TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, bars.TaskID] = {}
        self._said: dict[str, tuple[str, float | None]] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, runs: Sequence[Run]) -> None:
        """Bring what is shown up to date."""
        for run in runs:
            if self._console.is_terminal:
                self._show_bar(run)
            elif self._said.get(run.run_id) != (run.status, run.last_accuracy):
                self._said[run.run_id] = (run.status, run.last_accuracy)
                self._console.print(Text(progress_line(run)), soft_wrap=True)

    def _show_bar(self, run: Run) -> None:
        if run.run_id not in self._tasks:
            # Started with the first step: the time in the queue would spoil the estimate of the time left.
            self._tasks[run.run_id] = self._bars.add_task(
                plain(run.name), total=run.total_steps or 1, start=False, status=run.status, accuracy="–"
            )
        task = self._tasks[run.run_id]
        if run.status == "running":
            self._bars.start_task(task)
        accuracy = f"{percent(run.first_accuracy)} → {percent(run.last_accuracy)}"
        # A run without steps is one evaluation.
        done = run.step if run.total_steps else int(run.status == "succeeded")
        self._bars.update(task, completed=done, status=run.status, accuracy=accuracy)


def progress_line(run: Run) -> str:
    """Return where a run is, in one line."""
    accuracy = "" if run.last_accuracy is None else f", accuracy {percent(run.last_accuracy)}"
    error = f": {run.error}" if run.error else ""
    where = f"step {run.step}/{run.total_steps}" if run.total_steps else "evaluation"
    return plain(f"{run.run_id} {run.name}: {run.status}, {where}{accuracy}{error}")
