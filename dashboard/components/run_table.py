"""The table of runs: one row each, read from left to right as what, how far, how good, which.

The widths are such that on 800 pixels all is seen up to the accuracies.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.components.duration import duration
from dashboard.components.navigation import open_run
from dashboard.components.status import status_text
from dashboard.components.swatch import swatch
from engine.store.records import Run

_MOST_ROWS = 18
_TABLE, _ORDER, _SELECTED, _CLICK = "runs_table", "runs_order", "runs_selected", "runs_open_click"


def run_frame(
    runs: Sequence[Run], rewards: Mapping[str, list[float]], seconds_left: Mapping[str, float | None]
) -> pd.DataFrame:
    """Return one row per run; accuracies and progress in percent."""
    rows = [
        {
            "line": swatch(run.ordinal),
            "name": run.name,
            "open": "Open",
            "status": status_text(run.status),
            "progress": _progress(run),
            "reward": rewards.get(run.run_id, []),
            "best": _percent(run.best_accuracy),
            "last": _percent(run.last_accuracy),
            "step": f"{run.step:,} / {run.total_steps:,}" if run.total_steps else "evaluation",
            "left": _left(run, seconds_left.get(run.run_id)),
            "duration": duration(run.seconds) if run.attempts else "",
            "seed": run.seed,
            "preset": run.preset or "",
            "id": run.run_id,
        }
        for run in runs
    ]
    return pd.DataFrame(rows)


def choose_runs(runs: Sequence[Run], frame: pd.DataFrame) -> list[Run]:
    """Draw the table and return the chosen runs; a row's own button goes to the page of its run.

    The choice follows the runs, not the rows, as the order changes.
    """
    ids = [run.run_id for run in runs]
    drawn: list[str] = st.session_state.get(_ORDER, [])
    chosen: list[str] = st.session_state.get(_SELECTED, [])
    if _TABLE in st.session_state:
        rows = st.session_state[_TABLE]["selection"]["rows"]
        chosen = [drawn[row] for row in rows if row < len(drawn)]
    click = st.session_state.get(_CLICK)
    if click and click["row"] < len(drawn):
        open_run(drawn[click["row"]])
    if ids != drawn or _TABLE not in st.session_state:
        rows = [ids.index(run_id) for run_id in chosen if run_id in ids]
        st.session_state[_TABLE] = {"selection": {"rows": rows, "columns": [], "cells": []}}
    event: Any = st.dataframe(
        frame,
        hide_index=True,
        column_config=_columns(runs),
        key=_TABLE,
        on_select="rerun",
        selection_mode="multi-row",
        height="content" if len(runs) <= _MOST_ROWS else 35 * (_MOST_ROWS + 1),
        placeholder="",
    )
    kept = [runs[row] for row in event["selection"]["rows"] if row < len(runs)]
    st.session_state[_ORDER], st.session_state[_SELECTED] = ids, [run.run_id for run in kept]
    return kept


def accuracy_help(runs: Sequence[Run]) -> str:
    """Return what the accuracies were measured on: temperature, number of problems, answers to each, and split."""
    settings = [run.config.get("evaluation", {}) for run in runs]
    temperature = _span([each.get("temperature") for each in settings])
    size = _span([each.get("size") for each in settings])
    samples = _span([each.get("samples", 1) for each in settings])
    answers = "" if samples == "1" else f" × {samples} answers"
    splits = sorted({str(each.get("split", "validation")) for each in settings})
    where = "" if splits == ["validation"] else f" of the {' or '.join(splits)} split"
    return f"Held-out accuracy, sampled at T = {temperature}, n = {size} problems{answers}{where}"


def _columns(runs: Sequence[Run]) -> dict[str, Any]:
    column = st.column_config
    measured = accuracy_help(runs)
    return {
        "line": column.ImageColumn("", width=52, pinned=True, help="The run's line in every chart"),
        "name": column.TextColumn("Name", width=150),
        "open": column.ButtonColumn("", width=58, type="tertiary", key=_CLICK),
        "status": column.TextColumn("Status", width=95),
        "progress": column.ProgressColumn("Progress", width=95, min_value=0, max_value=100, format="%.0f %%"),
        "reward": column.LineChartColumn("Reward", width=80, y_min=0, y_max=1, help="Mean reward, step by step"),
        "best": column.NumberColumn("Best accuracy", width=100, format="%.1f %%", help=f"{measured}; the best so far."),
        "last": column.NumberColumn("Last accuracy", width=100, format="%.1f %%", help=f"{measured}; the newest."),
        "step": column.TextColumn("Step", width=85),
        "left": column.TextColumn("Time left", width=85, help="Steps left × mean time of the last 20 steps"),
        "duration": column.TextColumn("Duration", width=85, help="Time its processes ran, all attempts together"),
        "seed": column.NumberColumn("Seed", width=50, format="%d"),
        "preset": column.TextColumn("Preset", width=122),
        "id": column.TextColumn("Id", width=86),
    }


def _progress(run: Run) -> float:
    if run.total_steps == 0:
        return 100.0 if run.status == "succeeded" else 0.0
    return 100.0 * run.step / run.total_steps


def _left(run: Run, seconds: float | None) -> str:
    if run.status == "queued":
        return "waits"
    return duration(seconds) if run.status in ("starting", "running") and seconds is not None else ""


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _span(values: Sequence[Any]) -> str:
    known = sorted({value for value in values if value is not None})
    if not known:
        return "?"
    return f"{known[0]:g}" if len(known) == 1 else f"{known[0]:g}–{known[-1]:g}"
