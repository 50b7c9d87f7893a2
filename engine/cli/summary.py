"""A run as one JSON object: what scripts read."""

import math
from collections.abc import Mapping
from typing import Any

from engine.store import reads
from engine.store.database import Database
from engine.store.records import Run


def summarize(db: Database, run: Run, *, metrics: bool = True) -> dict[str, Any]:
    """Return the run's facts, its sampled validation accuracies and (unless left out) each metric's last value."""
    summary: dict[str, Any] = {
        "run_id": run.run_id,
        "name": run.name,
        "status": run.status,
        "steps": run.step,
        "total_steps": run.total_steps,
        "seconds": round(run.seconds, 3),
        "seed": run.seed,
        "preset": run.preset,
        "parent": None if run.parent_run_id is None else {"run_id": run.parent_run_id, "step": run.parent_step},
        "attempts": run.attempts,
        "archived": run.archived,
        "error": run.error,
        "eval": {
            "first": run.first_accuracy,
            "best": run.best_accuracy,
            "best_step": run.best_step,
            "last": run.last_accuracy,
        },
    }
    return summary | ({"metrics": reads.last_metrics(db, run.run_id)} if metrics else {})


def finite(tree: Any) -> Any:
    """Return `tree` with the numbers that JSON lacks as words: "NaN", "Infinity", "-Infinity"."""
    if isinstance(tree, float) and not math.isfinite(tree):
        return "NaN" if math.isnan(tree) else "Infinity" if tree > 0 else "-Infinity"
    if isinstance(tree, Mapping):
        return {key: finite(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [finite(value) for value in tree]
    return tree
