"""The notice that nobody takes runs out of the queue."""

import streamlit as st

from dashboard.data.workers import worker_alive
from engine.store.database import Database


def worker_notice(db: Database, n_waiting: int) -> None:
    """Say so, and what to do, while no worker is alive; nothing otherwise."""
    if worker_alive(db):
        return
    waiting = f" {n_waiting} {'run waits' if n_waiting == 1 else 'runs wait'}." if n_waiting else ""
    st.warning(f"No worker is running: start it with `make run` or `make worker`.{waiting}", icon=":material/warning:")
