"""`regrade`: the stored answers of a run, judged again."""

from dataclasses import asdict
from datetime import UTC, datetime
from types import TracebackType
from typing import Annotated, Any, Self

import typer
from rich import progress as bars
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.cli.options import JsonOption, RunArgument
from engine.cli.output import INTERRUPTED, NOT_SUCCEEDED, Output, output, plain
from engine.cli.tables import percent
from engine.cli.waiting import Interrupts
from engine.errors import GrpoLabError
from engine.jobs.regrading import regrade as grade_again
from engine.jobs.regrading import reward_of
from engine.rewards.tally import VERDICTS, Tally, flip_kind, from_document
from engine.store import reads, regrades
from engine.store.database import open_database
from engine.store.records import FlipRow, Regrade

SHOWN = 20  # flips
_LONGEST = 60  # characters of a cell


def regrade(
    run: RunArgument,
    reward: Annotated[
        str | None,
        typer.Option("--reward", help="Reward to grade by; the run's own by default.", show_default=False),
    ] = None,
    evaluations: Annotated[
        bool, typer.Option("--evaluations", help="The answers of evaluations in place of training completions.")
    ] = False,
    steps: Annotated[
        str | None, typer.Option("--steps", metavar="A:B", help="Steps A to B; either may be left out.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="So many answers, evenly spread over the steps.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Grade the stored answers of a run again, and show where the verdict or the value differs.

    Nothing stored is changed; the result is kept beside the run. Exit code 1 if the grading failed.
    """
    with output(json) as out:
        db = open_database()
        chosen = reads.find_run(db, run)
        regrades.end_silent(db, chosen.run_id, datetime.now(UTC))
        step_from, step_to = parse_steps(steps)
        with Interrupts() as interrupts, _Bar(out) as bar:
            ended = grade_again(
                db,
                chosen.run_id,
                reward or reward_of(chosen),
                covers="evaluations" if evaluations else "completions",
                step_from=step_from,
                step_to=step_to,
                limit=limit,
                progress=bar.show,
                stop=lambda: interrupts.count > 0,
            )
        flips = reads.flips(db, ended, limit=None if json else SHOWN)
        out.result(document(ended, flips), shown(ended, flips))
        if ended.status == "failed":
            raise typer.Exit(NOT_SUCCEEDED)
        if ended.status == "stopped":
            raise typer.Exit(INTERRUPTED)


def parse_steps(text: str | None) -> tuple[int | None, int | None]:
    """Return the first and the last step of `A:B`, None where one is left out; a lone number is that step.

    Raises:
        GrpoLabError: if it is neither.
    """
    if text is None:
        return None, None
    first, colon, last = text.strip().partition(":")
    parts = [first, last] if colon else [first, first]
    if not all(part == "" or (part.isascii() and part.isdigit()) for part in parts) or not text.strip():
        raise GrpoLabError(f"--steps={text} is no range of steps; write A:B, as in 10:20, 10: or :20")
    numbers = [int(part) if part else None for part in parts]
    if numbers[0] is not None and numbers[1] is not None and numbers[0] > numbers[1]:
        raise GrpoLabError(f"--steps={text} ends before it begins; write the smaller step first")
    return numbers[0], numbers[1]


def document(ended: Regrade, flips: list[FlipRow]) -> dict[str, Any]:
    """Return a regrading as JSON has it, with its flips."""
    tally = from_document(ended.counts)
    return {
        "regrade_id": ended.regrade_id,
        "run_id": ended.run_id,
        "reward": ended.reward,
        "version": ended.version,
        "covers": ended.covers,
        "steps": [ended.step_from, ended.step_to],
        "sample": ended.sample,
        "status": ended.status,
        "error": ended.error,
        "done": ended.done,
        "total": ended.total,
        "matrix": {old: {new: tally.count(old, new) for new in VERDICTS} for old in VERDICTS},
        "changed": tally.flips,
        "kinds": tally.kinds,
        "accuracy": {"old": tally.old_accuracy, "new": tally.new_accuracy},
        "mean_reward": {"old": tally.old_mean, "new": tally.new_mean},
        "errors": tally.errors,
        "flips": [{"kind": flip_kind(flip.old_verdict, flip.verdict), **asdict(flip)} for flip in flips],
    }


def shown(ended: Regrade, flips: list[FlipRow]) -> RenderableType:
    """Return a regrading as a person reads it: what it was, the matrix, what changed, and the first flips."""
    tally = from_document(ended.counts)
    what = "completions" if ended.covers == "completions" else "answers of evaluations"
    of = f"steps {ended.step_from} to {ended.step_to}" + (f", a sample of {ended.sample}" if ended.sample else "")
    parts: list[RenderableType] = [
        Text(plain(f"Regrading {ended.regrade_id} by {ended.reward} ({ended.version}), {of}: {ended.status}"), "bold")
    ]
    if ended.error:
        parts.append(Text(plain(ended.error), style="red"))
    if tally.total:
        sentence = tally.sentence(what)
        parts += [_matrix_table(tally), Text(sentence[0].upper() + sentence[1:] + "."), Text(means(tally))]
    if tally.errors:
        parts.append(_error_table(tally))
    if flips:
        parts.append(_flip_table(flips))
    if len(flips) < tally.flips:
        parts.append(Text(f"The first {len(flips)} of {tally.flips:,}; --json lists all."))
    return Group(*parts)


def means(tally: Tally) -> str:
    """Say what accuracy and mean reward were, and what they are by the new grader."""
    old, new = (f"{value:.4f}" if value is not None else "–" for value in (tally.old_mean, tally.new_mean))
    return f"Accuracy {percent(tally.old_accuracy)} → {percent(tally.new_accuracy)}, mean reward {old} → {new}."


def _matrix_table(tally: Tally) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stored ↓  now →")
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right", no_wrap=True)
    for verdict, row in zip(VERDICTS, tally.matrix, strict=True):
        table.add_row(verdict, *(f"{count:,}" for count in row))
    return table


def _error_table(tally: Tally) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("not graded", justify="right")
    table.add_column("reason", overflow="fold")
    for reason, count in sorted(tally.errors.items(), key=lambda each: -each[1]):
        table.add_row(f"{count:,}", Text(plain(reason)))
    if tally.other_errors:
        table.add_row(f"{tally.other_errors:,}", "for other reasons")
    return table


def _flip_table(flips: list[FlipRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step", justify="right", no_wrap=True)
    for column in ("kind", "gold", "answer stored", "answer now", "reason now"):
        table.add_column(column, overflow="fold")
    for flip in flips:
        cells = (flip.gold, flip.old_answer, flip.answer, flip.reason)
        table.add_row(
            str(flip.step), flip_kind(flip.old_verdict, flip.verdict), *(Text(_short(cell)) for cell in cells)
        )
    return table


def _short(text: str | None) -> str:
    if text is None:
        return "–"
    line = plain(text.replace("\n", " "))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


class _Bar:
    """How far a regrading is, on standard error: a bar in a terminal, a line for every tenth elsewhere."""

    def __init__(self, out: Output) -> None:
        self._out, self._tenth = out, 0
        console = Console(stderr=True, highlight=False)
        self._lines = not console.is_terminal
        self._bars = bars.Progress(*bars.Progress.get_default_columns(), console=console, disable=self._lines)
        self._task = self._bars.add_task("grading again", total=None)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, now: Regrade) -> None:
        """Bring what is shown up to date."""
        self._bars.update(self._task, completed=now.done, total=now.total)
        tenth = 10 * now.done // now.total
        if self._lines and tenth > self._tenth:
            self._tenth = tenth
            self._out.note(f"{now.done:,} of {now.total:,} answers graded again")
