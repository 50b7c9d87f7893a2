"""The store's schema, one step at a time (Alembic)."""

# Known without importing Alembic, so that opening an up-to-date store stays cheap. A test compares it.
HEAD = "0003"
