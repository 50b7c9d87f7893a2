"""Commands that look: `ls` and `show`."""

from typing import Annotated

import typer

from engine.cli.options import JsonOption, RunArgument
from engine.cli.output import output
from engine.cli.summary import summarize
from engine.cli.tables import facts_table, run_table
from engine.store import reads
from engine.store.database import open_database


def ls(
    everything: Annotated[bool, typer.Option("--all", help="Archived runs as well.")] = False, json: JsonOption = False
) -> None:
    """List the runs, newest first."""
    with output(json) as out:
        db = open_database()
        runs = reads.list_runs(db, include_archived=everything)
        shown = run_table(runs) if runs else "No runs yet; try: grpo-lab launch quick-start --wait"
        out.result([summarize(db, run, metrics=False) for run in runs], shown)


def show(run: RunArgument, json: JsonOption = False) -> None:
    """Show one run: its state, its accuracies and the last value of each metric."""
    with output(json) as out:
        db = open_database()
        summary = summarize(db, reads.find_run(db, run))
        out.result(summary, facts_table(summary))
