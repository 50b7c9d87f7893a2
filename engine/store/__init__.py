"""The store: runs, their metrics and every completion, in SQLite or PostgreSQL. Imports no torch.

`database` opens it, `queue` moves runs along, `writes` and `recorder` fill it, `reads` returns frozen records.
"""
