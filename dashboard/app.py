"""The shell around the pages. Started from the repository root: `python -m streamlit run dashboard/app.py`."""

import streamlit as st

from dashboard.components.navigation import pages

st.set_page_config(page_title="GRPO Lab", page_icon=":material/science:", layout="wide")
st.navigation(pages(), position="top").run()
