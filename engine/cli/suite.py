"""`suite`: launch an experiment, and lay its arms beside the baseline arm."""

from collections.abc import Sequence
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from engine.cli.manage import finish, parse_changes
from engine.cli.options import JsonOption, SetOption, WaitOption
from engine.cli.output import output, plain
from engine.cli.summary import summarize
from engine.cli.tables import arm_table
from engine.errors import ConfigError, FieldProblem
from engine.presets.suites import Suite, load_suite, suite_names
from engine.store import queue
from engine.store.database import Database, open_database
from engine.store.records import Run


def suite(
    name: Annotated[
        str | None, typer.Argument(help="Name of a suite, or the path of a .yaml file.", show_default=False)
    ] = None,
    set_: SetOption = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Runs per arm, with seeds 0, 1, 2, …; else as the suite has it.")
    ] = None,
    wait: WaitOption = False,
    listing: Annotated[bool, typer.Option("--list", help="List the suites, as without NAME.")] = False,
    json: JsonOption = False,
) -> None:
    """Queue the runs of a suite, seed by seed over all arms; --set changes a field of every arm."""
    with output(json) as out:
        if listing or name is None:
            _check_nothing_to_launch({"NAME": name, "--set": set_, "--seeds": seeds, "--wait": wait})
            suites = [load_suite(each) for each in suite_names()]
            out.result([_facts(each) for each in suites], _suite_table(suites))
            return
        chosen = load_suite(name, parse_changes(set_))
        db = open_database()
        run_ids = enqueue_suite(db, chosen, seeds or chosen.seeds)
        if not wait:
            out.note(f"Queued {len(run_ids)} runs; `grpo-lab ls` shows how far they are.")
        finish(db, out, run_ids, wait=wait, result=lambda db, runs: _result(db, chosen, runs))


def enqueue_suite(db: Database, suite: Suite, seeds: int) -> list[str]:
    """Queue the runs of a suite and return their ids: each arm's with seed 0 first, then each arm's with seed 1, …"""
    return [
        queue.enqueue(db, arm.with_seed(seed), name=f"{suite.name}/{arm.name}/seed-{seed}", preset=arm.preset)
        for seed in range(seeds)
        for arm in suite.arms
    ]


def compare(suite: Suite, summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the arms of a suite with their runs (given in the order they were queued in).

    A final accuracy is the last one of a run that has succeeded, None of any other; `mean` is over those there are,
    `difference` is the mean less that of the baseline arm. Both are None where there is nothing to take them of.
    """
    runs = {arm.name: summaries[place :: len(suite.arms)] for place, arm in enumerate(suite.arms)}
    finals = {name: [_final_accuracy(run) for run in of_arm] for name, of_arm in runs.items()}
    means = {name: _mean(accuracies) for name, accuracies in finals.items()}
    base = means[suite.baseline]
    arms = [
        {
            "arm": name,
            "runs": list(of_arm),
            "final_accuracies": finals[name],
            "mean": mean,
            "difference": None if mean is None or base is None else mean - base,
        }
        for (name, of_arm), mean in zip(runs.items(), means.values(), strict=True)
    ]
    return {"suite": suite.name, "question": suite.question, "baseline": suite.baseline, "arms": arms}


def _final_accuracy(run: dict[str, Any]) -> float | None:
    accuracy: float | None = run["eval"]["last"] if run["status"] == "succeeded" else None
    return accuracy


def _mean(accuracies: Sequence[float | None]) -> float | None:
    there = [accuracy for accuracy in accuracies if accuracy is not None]
    return fmean(there) if there else None


def _result(db: Database, suite: Suite, runs: Sequence[Run]) -> tuple[dict[str, Any], Table]:
    comparison = compare(suite, [summarize(db, run) for run in runs])
    return comparison, arm_table(comparison)


def _check_nothing_to_launch(given: dict[str, Any]) -> None:
    idle = ", ".join(option for option, value in given.items() if value)
    if idle:
        message = f"{idle} is for a launch, and this lists the suites; give a NAME without --list, or leave {idle} out"
        raise ConfigError([FieldProblem("suite", message)])


def _facts(suite: Suite) -> dict[str, Any]:
    return {
        "suite": suite.name,
        "question": suite.question,
        "baseline": suite.baseline,
        "seeds": suite.seeds,
        "arms": [arm.name for arm in suite.arms],
    }


def _suite_table(suites: Sequence[Suite]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("suite", "question", "arms"):
        table.add_column(column, overflow="fold")
    table.add_column("seeds", justify="right")
    for suite in suites:
        arms = ", ".join(arm.name for arm in suite.arms)
        table.add_row(*(Text(plain(cell)) for cell in (suite.name, suite.question, arms, str(suite.seeds))))
    return table
