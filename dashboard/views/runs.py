"""Runs: what runs, what waits, what ended."""

import streamlit as st

st.title("Runs")
