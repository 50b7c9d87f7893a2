"""Pure functions from tidy data to plotly figures."""
