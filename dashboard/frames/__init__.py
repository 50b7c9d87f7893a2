"""From what the store returns to tidy tables; no Streamlit here."""
