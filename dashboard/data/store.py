"""The one handle on the store that all sessions of the web process share."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from engine.store.database import Database, default_url, open_database
from engine.store.records import Run

# For st.cache_data: what is read of a run up to a step changes only with a new step or a new attempt.
HASHES: dict[str | type[Any], Callable[[Any], Any]] = {
    Database: lambda db: db.url,
    Run: lambda run: (run.run_id, run.step, run.attempts),
}


def store() -> Database:
    """Return the store named by the environment, opened and migrated once per process."""
    return _opened(default_url())


@st.cache_resource(show_spinner=False)
def _opened(url: str) -> Database:
    return open_database(url)
