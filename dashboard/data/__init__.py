"""What pages read: the store's handle, and small results drawn from it."""

from dashboard.data.store import store

__all__ = ["store"]
