"""The one flag that asks a run to stop, whoever raises it."""

import signal
import threading
from types import FrameType


class StopFlag:
    """Raised by a request in the store, SIGTERM or SIGINT.

    It stays up, and raising it again does nothing: a second signal never breaks off the save that the first began.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason: str | None = None

    def __call__(self) -> bool:
        """Return whether the flag is up."""
        return self._event.is_set()

    def raise_for(self, reason: str) -> bool:
        """Raise the flag; return whether it was down before. The first reason is the one that is kept."""
        if self._event.is_set():
            return False
        self.reason = reason
        self._event.set()
        return True

    def raise_on_signals(self) -> None:
        """Let SIGTERM and SIGINT raise the flag instead of ending the process. Main thread only."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.raise_for(signal.Signals(number).name)
