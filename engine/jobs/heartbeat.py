"""The thread in a run's process that says it is alive, and hears what is asked of it."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

EVERY = 2.0
"""Seconds between two heartbeats."""


class Heartbeat:
    """Calls `beat(now)` at once and then every two seconds until closed, whatever the main thread is busy with.

    A beat that fails is reported once per spell through `complain` and tried again: a locked store ends no run.
    """

    def __init__(
        self, beat: Callable[[datetime], None], *, every: float = EVERY, complain: Callable[[str], None] = print
    ) -> None:
        self._beat, self._every, self._complain = beat, every, complain
        self._closed = threading.Event()
        self._silent_since: float | None = None
        self._thread = threading.Thread(target=self._work, name="heartbeat", daemon=True)

    def start(self) -> "Heartbeat":
        """Begin, and return itself."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End; a beat that hangs in the store is not waited for longer than a few seconds."""
        self._closed.set()
        self._thread.join(timeout=5.0)

    def _work(self) -> None:
        while True:
            self._beat_once()
            if self._closed.wait(self._every):
                return

    def _beat_once(self) -> None:
        try:
            self._beat(datetime.now(UTC))
        except Exception as error:  # the thread must outlive every fault of the store
            if self._silent_since is None:
                self._silent_since = time.monotonic()
                self._complain(f"heartbeat failed, trying on: {type(error).__name__}: {error}")
            return
        if self._silent_since is not None:
            self._complain(f"heartbeat is back after {time.monotonic() - self._silent_since:.0f} s")
            self._silent_since = None
