"""Metrics that are read once and then followed: only what is new is read from the store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard.frames.metrics import empty, last_steps, merged, tidy, without
from dashboard.frames.updates import tidy_updates
from engine.store.database import Database
from engine.store.reads import metrics, update_metrics
from engine.store.records import Run

# An evaluation is written after the metrics of its step; so the last steps are read again.
_OVERLAP = 2


@dataclass(frozen=True, slots=True)
class Followed:
    """A tidy metric frame (run_id, name, step, value) and a number that grows with every change of it."""

    frame: pd.DataFrame
    version: int
    attempts: tuple[tuple[str, int], ...]
    names: tuple[str, ...] | None


def follow(db: Database, runs: Sequence[Run], names: Sequence[str] | None = None, *, scope: str) -> Followed:
    """Return the metrics of these runs (None: all names), kept for this browser session under `scope`.

    A run with a new attempt is read anew, since a resumed run discards the steps after its checkpoint.
    """
    wanted = None if names is None else tuple(sorted(set(names)))

    def read(cursors: Mapping[str, int]) -> pd.DataFrame:
        return tidy(metrics(db, [run.run_id for run in runs], wanted, cursors))

    return _follow(runs, wanted, scope, read)


def follow_updates(db: Database, run: Run, *, scope: str) -> Followed:
    """Return the metrics of a run's single optimizer steps, kept and read on as those of its steps are."""

    def read(cursors: Mapping[str, int]) -> pd.DataFrame:
        return tidy_updates(update_metrics(db, run.run_id, None, cursors.get(run.run_id, -1)), run.run_id)

    return _follow([run], None, f"updates:{scope}", read)


def _follow(
    runs: Sequence[Run], wanted: tuple[str, ...] | None, scope: str, read: Callable[[Mapping[str, int]], pd.DataFrame]
) -> Followed:
    attempts = tuple((run.run_id, run.attempts) for run in runs)
    before: Followed | None = st.session_state.get(f"followed:{scope}")
    if before is None or before.names != wanted:
        before = Followed(empty(), 0 if before is None else before.version + 1, (), wanted)
    outdated = [run_id for run_id, number in before.attempts if (run_id, number) not in attempts]
    frame = without(before.frame, outdated)
    cursors = {run_id: step - _OVERLAP - 1 for run_id, step in last_steps(frame).items()}
    frame, changed = merged(frame, read(cursors))
    version = before.version + 1 if changed or outdated else before.version
    after = replace(before, frame=frame, version=version, attempts=attempts)
    st.session_state[f"followed:{scope}"] = after
    return after
