"""The one thing to do with an empty store."""

import streamlit as st

from dashboard.components.draft import Draft, draft_from_preset
from dashboard.components.launch import launch
from dashboard.components.navigation import open_run
from engine.store.database import Database

_DRAFT = "quick_start_draft"


def quick_start(db: Database) -> None:
    """Say what will happen and offer it."""
    if _DRAFT not in st.session_state:
        st.session_state[_DRAFT] = draft_from_preset("quick-start")
    draft: Draft = st.session_state[_DRAFT]
    steps = draft.base.grpo.steps
    st.write(
        "No run yet. The quick start trains tiny-math, a small language model that comes with this program, "
        f"on arithmetic: {steps} GRPO steps, about two minutes on two CPU cores. "
        "The first point of its curve appears after a few seconds."
    )
    if st.button("Start the quick start", type="primary", icon=":material/play_arrow:"):
        open_run(launch(db, draft)[0])
