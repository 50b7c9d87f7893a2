"""The shell around the pages. Started from the repository root: `python -m streamlit run dashboard/app.py`."""

from pathlib import Path

import streamlit as st

from dashboard.components.navigation import follow, pages

# A file of ours: an icon by name would be fetched from another host.
st.set_page_config(page_title="GRPO Lab", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
st.html(Path(__file__).parent / "components" / "page.css")
page = st.navigation(pages(), position="top")
follow()
page.run()
