"""New run: from a preset to a queued run."""

import streamlit as st

st.title("New run")
