"""How long a step takes, as measured by runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard.data.store import HASHES
from engine.config import RunConfig
from engine.store.database import Database
from engine.store.reads import list_runs, metrics
from engine.store.records import Run

# Everything a run spends time on between two steps; the last two are logged at some steps only.
_NAMES = ("step_time", "time/evaluate", "time/checkpoint")
_RECENT = 20
_FEWEST_STEPS = 3
_MOST_RUNS = 5


@dataclass(frozen=True, slots=True)
class Pace:
    """Mean seconds per step, evaluations and checkpoints shared out, over `n_runs` runs."""

    seconds_per_step: float
    n_runs: int


def seconds_left(db: Database, run: Run) -> float | None:
    """Return the seconds a run still needs at the pace of its last steps; None before the first, or without any."""
    if run.total_steps == 0:
        return None
    if run.step >= run.total_steps:
        return 0.0
    pace = _seconds_per_step(db, run, max(run.step - _RECENT, 0))
    return None if pace is None else pace * (run.total_steps - run.step)


def pace_of_runs_like(db: Database, config: RunConfig) -> Pace | None:
    """Return the pace of the newest runs with this model, SFT, rollout batch size and max tokens; None without any."""
    wanted = _traits(config.model_dump())
    like = [run for run in list_runs(db, include_archived=True) if _traits(run.config) == wanted]
    like = sorted(like, key=lambda run: -run.ordinal)[:_MOST_RUNS]
    paces = [
        _seconds_per_step(db, run, run.parent_step or 0)
        for run in like
        if run.step - (run.parent_step or 0) >= _FEWEST_STEPS
    ]
    known = [pace for pace in paces if pace is not None]
    return Pace(sum(known) / len(known), len(known)) if known else None


@st.cache_data(show_spinner=False, max_entries=512, hash_funcs=HASHES)
def _seconds_per_step(db: Database, run: Run, after_step: int) -> float | None:
    table = metrics(db, [run.run_id], _NAMES, after_step)
    return mean_seconds(table.names, table.values.tolist())


def mean_seconds(names: Sequence[str], values: Sequence[float]) -> float | None:
    """Return all time spent divided by the number of steps; values that are not finite count as no time."""
    n_steps = sum(name == "step_time" for name in names)
    return sum(value for value in values if math.isfinite(value)) / n_steps if n_steps else None


def _traits(config: dict[str, dict[str, object]]) -> tuple[object, ...]:
    rollout, model = config.get("rollout", {}), config.get("model", {})
    # A step of SFT is far shorter than one of GRPO.
    phases = config.get("sft", {}).get("steps", 0), config.get("grpo", {}).get("steps") == 0
    return model.get("name"), rollout.get("rollout_batch_size"), rollout.get("max_tokens"), phases
