"""What is compared, and how the curves are drawn: the choices stay for the whole browser session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard.components.navigation import asked_runs
from dashboard.components.run_picker import run_label
from dashboard.components.status import in_reading_order
from dashboard.figures.lines import heading
from dashboard.frames.axes import TITLES, Axis
from dashboard.frames.smoothing import Smoothing
from engine.metrics import METRICS, family_of
from engine.store.records import Run

FIRST_METRICS = ("eval/validation/accuracy", "reward", "entropy", "completions/mean_length")
_SMOOTHINGS: Mapping[Smoothing, str] = {"none": "none", "ema": "exponential", "rolling": "rolling mean"}


@dataclass(frozen=True, slots=True)
class View:
    """How curves are drawn. `amount` is the weight of the past (ema) or the number of steps (rolling)."""

    metrics: tuple[str, ...]
    axis: Axis
    smoothing: Smoothing
    amount: float


def pick_runs(runs: Sequence[Run]) -> list[Run]:
    """Draw the choice of runs and return them in the order they were chosen; the address follows it."""
    by_id = {run.run_id: run for run in in_reading_order(list(runs))}
    key = "compare_runs"
    asked = [run_id for run_id in asked_runs() if run_id in by_id]
    kept = [run_id for run_id in st.session_state.get(key, []) if run_id in by_id]
    st.session_state[key] = asked or kept

    def follow_choice() -> None:
        st.query_params.from_dict({"runs": ",".join(st.session_state[key])} if st.session_state[key] else {})

    missing = len(asked_runs()) - len(asked)
    if missing:
        st.warning(f"{missing} of the runs in the address {'is' if missing == 1 else 'are'} not in the store.")
    picked = st.multiselect(
        "Runs",
        list(by_id),
        key=key,
        format_func=lambda run_id: run_label(by_id[run_id]),
        on_change=follow_choice,
        placeholder="Choose runs to lay over one another",
        persist_state="session",
    )
    return [by_id[run_id] for run_id in picked]


def pick_view(logged: Sequence[str]) -> View:
    """Draw the choice of metrics, axis and smoothing, and return it."""
    order = {name: place for place, name in enumerate(METRICS)}
    names = sorted(dict.fromkeys(logged), key=lambda name: order.get(family_of(name), len(order)))
    key = "compare_metrics"
    kept = st.session_state.get(key, FIRST_METRICS)
    st.session_state[key] = [name for name in kept if name in names]
    metrics = st.multiselect("Metrics", names, key=key, format_func=_metric_label, persist_state="session")
    with st.container(horizontal=True, gap="large", vertical_alignment="bottom"):
        axis = st.segmented_control(
            "Against",
            list(TITLES),
            default="step",
            required=True,
            format_func={"step": "steps", "tokens": "tokens", "minutes": "wall clock"}.__getitem__,
            key="compare_axis",
            persist_state="session",
            help="Tokens: prompt and completion tokens sampled or shown since the run began. Wall clock: the sum "
            "of its step times, so evaluations and pauses are left out.",
        )
        smoothing = st.segmented_control(
            "Smoothing",
            list(_SMOOTHINGS),
            default="none",
            required=True,
            format_func=_SMOOTHINGS.__getitem__,
            key="compare_smoothing",
            persist_state="session",
            help="On every logged value, before long curves are thinned out; values that are not finite are passed "
            "over. The raw line stays visible behind.",
        )
        amount = _amount(smoothing)
    return View(tuple(metrics), axis, smoothing, amount)


def _amount(smoothing: Smoothing) -> float:
    if smoothing == "ema":
        help_ = "How much of the average so far is kept at each value, without start-up bias"
        return st.slider("Weight of the past", 0.0, 0.99, 0.8, 0.01, key="compare_ema", width=220, help=help_)
    if smoothing == "rolling":
        help_ = "The mean of this many last values of the metric"
        return st.slider("Values", 2, 100, 10, key="compare_window", width=220, help=help_, persist_state="session")
    return 0.0


def _metric_label(name: str) -> str:
    return f"{heading(name)} · {name}"
