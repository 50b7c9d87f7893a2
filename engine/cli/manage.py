"""Commands that change something: `launch`, `stop`, `resume`, `fork`, `archive`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table

from engine.cli.options import JsonOption, NameOption, RunArgument, SetOption, WaitOption
from engine.cli.output import INTERRUPTED, NOT_SUCCEEDED, Output, output
from engine.cli.summary import summarize
from engine.cli.tables import run_table
from engine.cli.waiting import wait_for
from engine.config import RunConfig, diff, merge, nest, parse_assignment, parse_config
from engine.errors import ConfigError, FieldProblem, StoreError
from engine.presets import load_preset
from engine.store import queue, reads
from engine.store.database import Database, open_database
from engine.store.records import Run

ResultOf = Callable[[Database, Sequence[Run]], tuple[Any, RenderableType]]


def launch(
    preset: Annotated[str, typer.Argument(help="Name of a preset, or the path of a .yaml file.", show_default=False)],
    set_: SetOption = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="As many runs, with seeds 0, 1, 2, …")] = None,
    seed: Annotated[int | None, typer.Option(help="One run with this seed.")] = None,
    name: NameOption = None,
    wait: WaitOption = False,
    json: JsonOption = False,
) -> None:
    """Queue runs of a preset, each field changeable with --set."""
    with output(json) as out:
        changes = parse_changes(set_)
        presets = [load_preset(preset, {**changes, **seed_of}) for seed_of in _seed_changes(changes, seeds, seed)]
        db = open_database()
        run_ids = [
            queue.enqueue(db, each.config, name=_name(name or each.name, each.config, seeds), preset=each.name)
            for each in presets
        ]
        finish(db, out, run_ids, wait=wait)


def stop(run: RunArgument, json: JsonOption = False) -> None:
    """Ask a run to stop; it saves a checkpoint first. A waiting run is stopped at once."""
    with output(json) as out:
        db = open_database()
        run_id = reads.find_run(db, run).run_id
        queue.request_stop(db, run_id)
        _show_one(db, out, run_id)


def resume(run: RunArgument, wait: WaitOption = False, json: JsonOption = False) -> None:
    """Queue a failed, stopped or lost run again; it goes on from its last checkpoint."""
    with output(json) as out:
        db = open_database()
        run_id = reads.find_run(db, run).run_id
        queue.requeue(db, run_id)
        finish(db, out, [run_id], wait=wait)


def fork(
    run_at_step: Annotated[str, typer.Argument(metavar="RUN@STEP", help="A run and a step it has a checkpoint of.")],
    set_: SetOption = None,
    name: NameOption = None,
    wait: WaitOption = False,
    json: JsonOption = False,
) -> None:
    """Queue a new run that goes on from another's checkpoint with changed fields."""
    with output(json) as out:
        db = open_database()
        parent, step = _parent(db, run_at_step)
        config = parse_config(merge(nest(parent.config), nest(parse_changes(set_))))
        _check_fork(parent, step, config)
        run_id = queue.enqueue(
            db, config, name=name or f"{parent.name}@{step}", preset=parent.preset, parent=(parent.run_id, step)
        )
        finish(db, out, [run_id], wait=wait)


def archive(
    run: RunArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Show it in the list again.")] = False,
    json: JsonOption = False,
) -> None:
    """Hide an ended run from the list; nothing is deleted."""
    with output(json) as out:
        db = open_database()
        run_id = reads.find_run(db, run).run_id
        queue.archive(db, run_id, archived=not undo)
        _show_one(db, out, run_id)


def parse_changes(assignments: Sequence[str] | None) -> dict[str, Any]:
    """Return the fields given with --set and their values; every fault is named at once."""
    problems: list[FieldProblem] = []
    changes: dict[str, Any] = {}
    for text in assignments or ():
        try:
            path, value = parse_assignment(text)
            changes[path] = value
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return changes


def _seed_changes(changes: Mapping[str, Any], seeds: int | None, seed: int | None) -> list[dict[str, int]]:
    given = {"--set seed": changes.get("seed"), "--seeds": seeds, "--seed": seed}
    chosen = [f"{option}={value}" for option, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise ConfigError([FieldProblem("seed", f"seed is given twice: {', '.join(chosen)}; keep one")])
    if seeds is not None:
        return [{"seed": number} for number in range(seeds)]
    return [{} if seed is None else {"seed": seed}]


def _name(base: str, config: RunConfig, seeds: int | None) -> str:
    return base if seeds is None else f"{base}-seed-{config.seed}"


def _parent(db: Database, run_at_step: str) -> tuple[Run, int]:
    text, _, step = run_at_step.rpartition("@")
    parent = reads.find_run(db, text or run_at_step)
    steps = [row.step for row in reads.checkpoints(db, parent.run_id)]
    if not step.isdigit() or not text or int(step) not in steps:
        there = ", ".join(f"{parent.run_id}@{number}" for number in steps) or "none yet: it has no checkpoint"
        raise StoreError(f"fork={run_at_step} names no checkpoint; use one of {there}")
    return parent, int(step)


def _check_fork(parent: Run, step: int, config: RunConfig) -> None:
    problems = []
    if config.total_steps <= step:
        more = 2 * step - config.sft.steps
        message = f"steps={config.grpo.steps} leaves nothing to do from step {step} on; --set steps={more} or more"
        problems.append(FieldProblem("grpo.steps", message))
    changed = diff(parent.run_config(), config)
    for path in ("model.name", "model.init_from", "lora.rank", "lora.alpha"):
        if path in changed:
            old, new = (value if value is not None else "empty" for value in changed[path])
            message = f"{path}={new} does not fit the checkpoint, which is of {path}={old}; launch a new run instead"
            problems.append(FieldProblem(path, message))
    if problems:
        raise ConfigError(problems)


def _show_one(db: Database, out: Output, run_id: str) -> None:
    run = reads.find_run(db, run_id)
    out.result(summarize(db, run), run_table([run]))


def list_of(db: Database, runs: Sequence[Run]) -> tuple[list[dict[str, Any]], Table]:
    """Return runs one by one, as JSON has them and as they are shown."""
    return [summarize(db, run) for run in runs], run_table(runs)


def finish(db: Database, out: Output, run_ids: Sequence[str], *, wait: bool, result: ResultOf = list_of) -> None:
    """Wait if asked to, and give the result of the runs; exit 1 if one that was waited for did not succeed."""
    interrupted = wait and not wait_for(db, run_ids, out)
    runs = [reads.find_run(db, run_id) for run_id in run_ids]
    out.result(*result(db, runs))
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if wait and any(run.status != "succeeded" for run in runs):
        raise typer.Exit(NOT_SUCCEEDED)
