"""Queueing what the form holds."""

from dashboard.components.draft import Draft, seeded
from engine.store.database import Database
from engine.store.queue import enqueue


def launch(db: Database, draft: Draft) -> list[str]:
    """Queue one run per seed and return their ids; the same draft sent twice gives the same runs."""
    return [
        enqueue(
            db,
            config,
            name=name,
            preset=draft.preset,
            launch_token=f"{draft.token}:{config.seed}",
            parent=draft.parent,
        )
        for name, config in seeded(draft)
    ]
