"""Runs side by side: how they ended, and in which fields they differ."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dashboard.frames.metrics import last_values
from engine.config import fields, nest
from engine.errors import ConfigError
from engine.store.records import Run

FINAL = ("reward", "entropy", "completions/mean_length")
NOT_SET = "(not in this run)"


def labels(runs: Sequence[Run]) -> dict[str, str]:
    """Return a name for each run, the same name never twice, with a mark on runs that did not end well."""
    names = [run.name for run in runs]
    return {
        run.run_id: (run.name if names.count(run.name) == 1 else f"{run.name} ({run.run_id})")
        + ({"failed": " ✕ failed", "lost": " ? lost", "stopped": " ■ stopped"}.get(run.status, ""))
        for run in runs
    }


def final_table(runs: Sequence[Run], frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run, as it stands now; what a run lacks stays empty."""
    last = last_values(frame)
    rows = [
        {
            "run": labels(runs)[run.run_id],
            "status": run.status,
            "seed": run.seed,
            "steps": run.step,
            "first": run.first_accuracy,
            "best": run.best_accuracy,
            "last": run.last_accuracy,
            **{name: last.get((run.run_id, name)) for name in FINAL},
            "minutes": run.seconds / 60 if run.seconds else None,
        }
        for run in runs
    ]
    columns = ["run", "status", "seed", "steps", "first", "best", "last", *FINAL, "minutes"]
    return pd.DataFrame(rows, columns=columns)


def config_differences(runs: Sequence[Run]) -> pd.DataFrame:
    """Return one row per field in which the runs' configs differ: the field, and its value in each run as text.

    Stored configs are compared under today's names where all of theirs are known, and as they are otherwise, so
    that a run of an older version can be compared too.
    """
    flat = {run.run_id: dict(_leaves(_named(run.config))) for run in runs}
    order = {field.path: number for number, field in enumerate(fields())}
    paths = sorted(
        {path for values in flat.values() for path in values}, key=lambda path: (order.get(path, 10**6), path)
    )
    rows = []
    for path in paths:
        values = [_shown(flat[run.run_id], path) for run in runs]
        if len(set(values)) > 1:
            rows.append([path, *values])
    names = labels(runs)
    return pd.DataFrame(rows, columns=["field", *(names[run.run_id] for run in runs)])


def _named(config: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return nest(config)
    except ConfigError:
        return config


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found = []
    for key, value in tree.items():
        found += _leaves(value, f"{prefix}{key}.") if isinstance(value, Mapping) else [(f"{prefix}{key}", value)]
    return found


def _shown(values: Mapping[str, Any], path: str) -> str:
    if path not in values:
        return NOT_SET
    value = values[path]
    if value is None:
        return "(empty)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
