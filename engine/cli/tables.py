"""Runs as tables for a person's eyes."""

import math
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from engine.cli.output import plain
from engine.store.records import Run

STYLES = {"succeeded": "green", "failed": "red", "lost": "red", "stopped": "yellow", "running": "cyan"}


def run_table(runs: Sequence[Run]) -> Table:
    """Return one line per run."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("run", "name", "status"):
        table.add_column(column, overflow="fold")
    for column in ("step", "first", "best", "last", "time"):
        table.add_column(column, justify="right", no_wrap=True)
    for run in runs:
        table.add_row(
            run.run_id,
            Text(plain(run.name)),
            Text(run.status, style=STYLES.get(run.status, "")),
            f"{run.step}/{run.total_steps}" if run.total_steps else "–",
            percent(run.first_accuracy),
            percent(run.best_accuracy),
            percent(run.last_accuracy),
            duration(run.seconds),
        )
    return table


def facts_table(summary: dict[str, Any]) -> Table:
    """Return a run's summary, one fact a line, its metrics at the end."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in summary.items():
        if name == "eval":
            value = ", ".join(f"{key} {percent(value[key])}" for key in ("first", "best", "last"))
        elif name == "seconds":
            name, value = "time", duration(value)
        elif name == "parent" and value:
            value = f"{value['run_id']}@{value['step']}"
        if value not in (None, "") and name != "metrics":
            table.add_row(name, Text(plain(str(value))))
    for name, value in sorted(summary.get("metrics", {}).items()):
        table.add_row(Text(plain(name)), f"{value:.6g}")
    return table


def arm_table(comparison: dict[str, Any]) -> Table:
    """Return one line per arm of a suite; below three succeeded runs in each the table calls itself preliminary."""
    title = Text(plain(f"{comparison['suite']}: {comparison['question']}"), style="bold")
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    table.add_column("arm", overflow="fold")
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("final accuracy by seed")
    for column in ("mean", "difference", "time"):
        table.add_column(column, justify="right", no_wrap=True)
    fewest = math.inf
    for arm in comparison["arms"]:
        is_baseline, difference = arm["arm"] == comparison["baseline"], arm["difference"]
        succeeded = sum(run["status"] == "succeeded" for run in arm["runs"])
        fewest = min(fewest, succeeded)
        table.add_row(
            Text(plain(arm["arm"]) + (" (baseline)" if is_baseline else "")),
            f"{succeeded} of {len(arm['runs'])}",
            " ".join(percent(accuracy) for accuracy in arm["final_accuracies"]),
            percent(arm["mean"]),
            "–" if difference is None or is_baseline else f"{100 * difference:+.1f} pp",
            duration(sum(run["seconds"] for run in arm["runs"])),
        )
    if fewest < 3:
        table.caption = "preliminary: fewer than 3 runs of an arm have succeeded"
        table.caption_justify = "left"
    return table


def percent(share: float | None) -> str:
    """Return a share as a percentage, a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{share:.1%}"


def duration(seconds: float) -> str:
    """Return seconds as `42 s`, `3:07` or `2:03:07`."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}:{minutes:02}:{whole % 60:02}"
    return f"{minutes}:{whole % 60:02}" if minutes else f"{whole} s"
