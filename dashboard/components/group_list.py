"""The groups of one step: choosing the step, and one of its groups.

The address is the truth: without a step in it a live run is followed, and choosing a step or a group ends that.
"""

from collections.abc import Sequence
from typing import Any, cast

import streamlit as st

from dashboard.frames.groups import (
    FILTERS,
    LEFT_OUT_HELP,
    SORTS,
    Filter,
    filtered,
    group_table,
    nearest,
    neighbours,
    ordered,
)
from engine.store.database import Database
from engine.store.reads import get_run, groups, steps_with_groups
from engine.store.records import GroupRow, Run
from engine.store.status import LIVE

SLIDER_LIMIT = 2_000
_TABLE_ROWS = 8


def go(run_id: str, step: int | None, group: int | None = None) -> None:
    """Put a step, and a group of it, into the address."""
    given = {"run": run_id, "step": step, "group": group}
    st.query_params.from_dict({name: str(value) for name, value in given.items() if value is not None})


def pick_step(db: Database, run: Run, steps: Sequence[int], asked: int | None) -> int:
    """Draw the choice of a step and return it: the one asked for, or the newest."""
    step = steps[-1] if asked is None else nearest(steps, asked)
    before, after = neighbours(steps, step)
    with st.container(horizontal=True, vertical_alignment="bottom", key="step_bar"):
        _arrow("◀ Step", "Step before", run.run_id, before)
        _arrow("Step ▶", "Step after", run.run_id, after)
        _step_input(run.run_id, steps, step)
        if run.status in LIVE:
            _follow_switch(db, run, step, following=asked is None)
    if asked is not None and asked != step:
        st.caption(f"Step {asked:,} has no stored groups; {step:,} is the nearest that has.")
    return step


def _arrow(label: str, purpose: str, run_id: str, step: int | None) -> None:
    st.button(label, key=label, help=purpose, disabled=step is None, on_click=go, args=(run_id, step))


def _step_input(run_id: str, steps: Sequence[int], step: int) -> None:
    key = f"step:{run_id}"
    st.session_state[key] = step
    if 1 < len(steps) <= SLIDER_LIMIT:
        st.select_slider("Step", steps, key=key, on_change=lambda: go(run_id, st.session_state[key]))
    else:
        st.number_input("Step", steps[0], steps[-1], key=key, on_change=lambda: go(run_id, st.session_state[key]))


def _follow_switch(db: Database, run: Run, step: int, *, following: bool) -> None:
    key = f"follow:{run.run_id}"
    st.session_state[key] = following

    def switch() -> None:
        go(run.run_id, None if st.session_state[key] else step)

    st.toggle("Follow latest", key=key, on_change=switch, help="Show each new step as it arrives", width="content")
    if following:
        st.fragment(_watch, run_every="2s")(db, run, step)


def _watch(db: Database, run: Run, step: int) -> None:
    current = get_run(db, run.run_id)
    if current is None or current.status != run.status:
        st.rerun()
    if current.step > step and steps_with_groups(db, run.run_id)[-1] > step:
        st.rerun()


def pick_group(db: Database, run: Run, step: int, asked: int | None) -> GroupRow | None:
    """Draw the table of the groups of a step and return the chosen one, the first by default."""
    of_step = groups(db, run.run_id, step)
    kinds, sort = _filter_bar(of_step)
    found = ordered(filtered(of_step, kinds), sort)
    if not found:
        st.info(f"No group of step {step:,} is {kinds}. Choose another filter or another step.")
        return None
    indices = [group.index for group in found]
    row = indices.index(asked) if asked in indices else 0
    key = f"groups:{run.run_id}:{step}:{kinds}:{sort}"
    st.session_state[key] = {"selection": {"rows": [row], "columns": [], "cells": []}}

    def chosen() -> None:
        rows = cast(Any, st.session_state[key])["selection"]["rows"]
        if rows and rows[0] < len(indices):
            go(run.run_id, step, indices[rows[0]])

    st.dataframe(
        group_table(found),
        hide_index=True,
        placeholder="–",
        key=key,
        on_select=chosen,
        selection_mode="single-row-required",
        height="auto" if len(found) <= _TABLE_ROWS else 36 + 35 * _TABLE_ROWS,
        column_config=_columns(any_left_out=any(not group.trained for group in found)),
    )
    _walk(run.run_id, step, indices, row)
    return found[row]


def _filter_bar(of_step: Sequence[GroupRow]) -> tuple[Filter, str]:
    counts = {kinds: len(filtered(of_step, kinds)) for kinds in FILTERS}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kinds = st.segmented_control(
            "Groups",
            list(FILTERS),
            default="all",
            required=True,
            format_func=lambda each: f"{each} · {counts[each]}",
            key="group_filter",
            persist_state="session",
            help="In mixed groups the rewards differ, under costs or placebos also where no answer is right; flat "
            "ones have equal rewards and so teach nothing under a baseline.",
        )
        sort = st.selectbox("Order", list(SORTS), key="group_sort", persist_state="session", width=220)
    return kinds, sort


def _walk(run_id: str, step: int, indices: Sequence[int], row: int) -> None:
    before, after = neighbours(indices, indices[row])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("◀ Group", disabled=before is None, on_click=go, args=(run_id, step, before), help="Group before")
        st.button("Group ▶", disabled=after is None, on_click=go, args=(run_id, step, after), help="Group after")
        st.caption(f"{row + 1} of {len(indices)} in this list", width="content")


def _columns(*, any_left_out: bool) -> dict[str, Any]:
    column = st.column_config
    return {
        "group": column.NumberColumn("Group", width=60, help="Its place in the rollout batch, from 0"),
        "problem": column.TextColumn("Problem", width="large", help="The question, at most 300 characters of it"),
        "gold": column.TextColumn("Gold", width=80, help="The right answer"),
        "kind": column.TextColumn(
            "Kind",
            width=150 if any_left_out else 90,
            help="mixed: rewards differ; or flat, rewards equal: all right, all wrong, tied"
            + (f". {LEFT_OUT_HELP}" if any_left_out else ""),
        ),
        "right": column.TextColumn("Right", width=70, help="Completions judged correct, of all in the group"),
        "share": column.ProgressColumn("Share right", width=110, min_value=0, max_value=1, format="percent"),
        "reward": column.NumberColumn("Reward", width=80, format="%.3f", help="Mean reward of the group"),
        "std": column.NumberColumn("Std", width=70, format="%.3f", help="Sample standard deviation of its rewards"),
        "length": column.NumberColumn("Length", width=75, format="%.1f", help="Mean length in tokens"),
    }
