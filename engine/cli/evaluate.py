"""`evaluate`: a run that trains nothing and measures a checkpoint, or a model as it is."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.cli.manage import finish, list_of, parse_changes
from engine.cli.options import JsonOption, NameOption, SetOption, WaitOption
from engine.cli.output import output, plain
from engine.cli.summary import summarize
from engine.cli.tables import percent
from engine.config import RunConfig, evaluation_config, evaluation_problems, merge, nest, parse_config
from engine.errors import ConfigError, FieldProblem, StoreError
from engine.presets import load_preset
from engine.stats.intervals import accuracy_interval
from engine.store import queue, reads
from engine.store.database import Database, open_database
from engine.store.records import CheckpointRow, EvaluationRow, Run

BASE = "base-model"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is evaluated: the config to begin with, its preset if it is one, the usual name, and a sentence about it."""

    config: RunConfig
    preset: str | None
    name: str
    sentence: str


def evaluate(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="RUN@STEP, a RUN (its most accurate checkpoint, else its last), tiny-math, a folder or a hub model.",
            show_default=False,
        ),
    ],
    set_: SetOption = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Answers sampled to each problem (k).", show_default=False)
    ] = None,
    split: Annotated[
        Literal["validation", "test"] | None, typer.Option(help="Which held-out problems.", show_default=False)
    ] = None,
    name: NameOption = None,
    wait: WaitOption = False,
    json: JsonOption = False,
) -> None:
    """Queue a run without steps: accuracy, pass@k and majority@k of a checkpoint or a model."""
    with output(json) as out:
        changes = _changes(set_, {"evaluation.samples": samples, "evaluation.split": split})
        db = open_database()
        subject = find_subject(db, what)
        config = parse_config(merge(subject.config.model_dump(), nest(changes)))
        problems = tuple(evaluation_problems(config.sft.steps, config.grpo.steps))
        if problems:
            raise ConfigError(problems)
        out.note(subject.sentence)
        run_id = queue.enqueue(db, config, name=name or subject.name, preset=subject.preset)
        finish(db, out, [run_id], wait=wait, result=_result if wait else list_of)


def find_subject(db: Database, what: str) -> Subject:
    """Return what `what` names: a run's checkpoint, or a model.

    Raises:
        StoreError: if it is neither, several runs have that name, or the run has no such checkpoint.
        ConfigError: if the run's config is of another version.
    """
    text, _, step = what.rpartition("@")
    if text and step.isascii() and step.isdigit():
        return _subject_of_run(db, reads.find_run(db, text), int(step))
    runs = reads.list_runs(db, include_archived=True)
    if what and any(run.name == what or run.run_id.startswith(what) for run in runs):
        return _subject_of_run(db, reads.find_run(db, what), None)
    folder = Path(what).expanduser()
    if what and (what == "tiny-math" or folder.is_dir() or "/" in what):
        # A worker has another working directory.
        model = str(folder.absolute()) if folder.is_dir() else what
        config = load_preset(BASE, {"model.name": model}).config
        return Subject(config, BASE, f"{folder.name}-eval", f"Evaluating the model {model}.")
    raise StoreError(
        f"evaluate={what} is neither a run nor a model; give RUN@STEP, a run (`grpo-lab ls` lists them), tiny-math, a "
        "folder, or a hub model as owner/name"
    )


def chosen_checkpoint(checkpoints: Sequence[CheckpointRow]) -> CheckpointRow:
    """Return the most accurate checkpoint, the earliest of equals; the last one where none was measured."""
    measured = [row for row in checkpoints if row.accuracy is not None]
    return max(measured, key=lambda row: row.accuracy or 0.0) if measured else checkpoints[-1]


def summarize_evaluation(db: Database, row: EvaluationRow) -> dict[str, Any]:
    """Return an evaluation as JSON has it: its settings, its numbers of problems and answers, its metrics."""
    counts = reads.answer_counts(db, row.evaluation_id)
    interval = accuracy_interval(counts.n, counts.right) if len(counts) else None
    return {
        "step": row.step,
        "split": row.split,
        "mode": row.mode,
        "temperature": row.temperature,
        "problems": row.problems,
        "samples": row.samples,
        "metrics": row.metrics,
        "accuracy_interval": None if interval is None else [interval.low, interval.high],
    }


def evaluation_table(evaluations: Sequence[dict[str, Any]]) -> Table:
    """Return one column per evaluation, one line per number: how it was asked, and what came of it."""
    several = list(dict.fromkeys(name for each in evaluations for name in each["metrics"] if "@" in name))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for each in evaluations:
        table.add_column(f"{each['mode']}, T = {each['temperature']:g}", justify="right", no_wrap=True)

    def line(title: str, shown: Callable[[dict[str, Any]], str]) -> None:
        table.add_row(title, *(shown(each) for each in evaluations))

    line("split", lambda each: str(each["split"]))
    line("problems × answers", lambda each: f"{each['problems']:,} × {each['samples']}")
    line("accuracy", partial(_metric, "accuracy"))
    line("  95 % interval", lambda each: _ends(each["accuracy_interval"]))
    for name in several:
        line(name, partial(_metric, name))
    line("format", partial(_metric, "format"))
    line("not graded", partial(_metric, "not_graded"))
    line("mean length, tokens", lambda each: f"{each['metrics'].get('mean_length', math.nan):.1f}")
    return table


def _metric(name: str, evaluation: dict[str, Any]) -> str:
    return percent(evaluation["metrics"].get(name))


def _ends(interval: Sequence[float] | None) -> str:
    return "–" if interval is None else f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}%"


def _changes(assignments: Sequence[str] | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields given with --set and with options of their own; none may be given twice."""
    changes = parse_changes(assignments)
    given = {path: value for path, value in options.items() if value is not None}
    twice = [path for path in given if path in changes]
    if twice:
        raise ConfigError(
            FieldProblem(path, f"{path} is given twice: {given[path]} and --set {path}={changes[path]}; keep one")
            for path in twice
        )
    return changes | given


def _subject_of_run(db: Database, run: Run, step: int | None) -> Subject:
    found = reads.checkpoints(db, run.run_id)
    there = ", ".join(f"{run.run_id}@{row.step}" for row in found) or "none yet: it has no checkpoint"
    asked = [row for row in found if row.step == step]
    if not found or (step is not None and not asked):
        raise StoreError(f"evaluate={run.name}@{step or '?'} names no checkpoint; use one of {there}")
    row = asked[0] if asked else chosen_checkpoint(found)
    why = ""
    if step is None:
        why = ", the last one" if row.accuracy is None else f", the most accurate one ({percent(row.accuracy)})"
    return Subject(
        evaluation_config(run.run_config(), run.run_id, row.step),
        None,
        f"{run.name}@{row.step}-eval",
        f"Evaluating {plain(run.name)} ({run.run_id}) at its checkpoint of step {row.step}{why}.",
    )


def _result(db: Database, runs: Sequence[Run]) -> tuple[Any, RenderableType]:
    """Return the runs with their evaluations, as JSON has them and as they are shown."""
    documents, shown = [], list[RenderableType]()
    for run in runs:
        rows = sorted(reads.evaluations(db, [run.run_id]), key=lambda row: row.mode, reverse=True)
        evaluations = [summarize_evaluation(db, row) for row in rows]
        documents.append(summarize(db, run) | {"evaluations": evaluations})
        shown += [Text(plain(f"{run.run_id} {run.name}: {run.status}"), style="bold"), evaluation_table(evaluations)]
    return documents, Group(*shown)
