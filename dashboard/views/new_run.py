"""New run: from a preset, or a run to fork, to queued runs."""

import streamlit as st

from dashboard.components.form import common_fields, current_draft, other_sections
from dashboard.components.launch_panel import launch_panel, ways_to_say_it
from dashboard.components.memory_card import memory_card
from dashboard.components.origin import follow_address, origin
from dashboard.components.preview_card import preview_card
from dashboard.data import store

db = store()
follow_address(db)

st.title("New run")
left, right = st.columns([5, 3], gap="medium")
with left:
    origin()
    draft = current_draft()
    common_fields(draft)
    preview_card(draft)
    other_sections(draft)
with right:
    launch_panel(db, draft)
    memory_card(db, draft)
    ways_to_say_it(draft)
