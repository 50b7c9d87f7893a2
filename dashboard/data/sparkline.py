"""The reward of a run as a few points: enough for a sparkline."""

import math
from collections.abc import Sequence

import streamlit as st

from dashboard.data.store import HASHES
from engine.store.database import Database
from engine.store.reads import metrics
from engine.store.records import Run

POINTS = 40


@st.cache_data(show_spinner=False, max_entries=1024, hash_funcs=HASHES)
def reward_line(db: Database, run: Run) -> list[float]:
    """Return at most `POINTS` means of consecutive rewards, oldest first; read again only after a new step."""
    return thinned(metrics(db, [run.run_id], ["reward"]).values.tolist())


def thinned(values: Sequence[float], points: int = POINTS) -> list[float]:
    """Return the means of at most `points` bins of equal width; values that are not finite are left out."""
    finite = [value for value in values if math.isfinite(value)]
    width = math.ceil(len(finite) / points) or 1
    bins = [finite[start : start + width] for start in range(0, len(finite), width)]
    return [sum(bin_) / len(bin_) for bin_ in bins]
