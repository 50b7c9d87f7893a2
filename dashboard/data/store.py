"""The one handle on the store that all sessions of the web process share."""

import streamlit as st

from engine.store.database import Database, default_url, open_database


def store() -> Database:
    """Return the store named by the environment, opened and migrated once per process."""
    return _opened(default_url())


@st.cache_resource(show_spinner=False)
def _opened(url: str) -> Database:
    return open_database(url)
