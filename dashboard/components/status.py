"""A run's status as a word with a symbol, so that no colour is needed to read it."""

from engine.store.records import Run, RunStatus
from engine.store.status import ENDED, LIVE

SYMBOLS: dict[RunStatus, str] = {
    "queued": "◌",
    "starting": "◔",
    "running": "▶",
    "stopping": "◑",
    "succeeded": "✓",
    "failed": "✕",
    "stopped": "■",
    "lost": "?",
}


def status_text(status: RunStatus) -> str:
    """Return the status as shown everywhere, such as `▶ running`."""
    return f"{SYMBOLS[status]} {status}"


def in_reading_order(runs: list[Run]) -> list[Run]:
    """Return what runs (newest first), then what waits (next first), then what ended (newest first)."""
    live = [run for run in runs if run.status in LIVE]
    waiting = [run for run in runs if run.status == "queued"]
    ended = [run for run in runs if run.status in ENDED]
    return [*_newest_first(live), *sorted(waiting, key=lambda run: run.ordinal), *_newest_first(ended)]


def _newest_first(runs: list[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: -run.ordinal)


def count_line(runs: list[Run]) -> str:
    """Return how many run, wait and have ended, such as `1 running · 0 waiting · 8 ended`."""
    n_live = sum(run.status in LIVE for run in runs)
    n_waiting = sum(run.status == "queued" for run in runs)
    return f"{n_live} running · {n_waiting} waiting · {len(runs) - n_live - n_waiting} ended"
