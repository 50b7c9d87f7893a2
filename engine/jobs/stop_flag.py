"""The one flag that asks a process to stop, whoever raises it."""

import signal
from types import FrameType


class StopFlag:
    """Raised by a request in the store, SIGTERM or SIGINT. `reason` is the first reason, None while it is down.

    It stays up, and raising it again does nothing: a second signal never breaks off the save that the first began.
    There is no lock in it, because a signal handler that waits for a lock of the thread it interrupts hangs.
    """

    def __init__(self) -> None:
        self.reason: str | None = None

    def __call__(self) -> bool:
        """Return whether the flag is up."""
        return self.reason is not None

    def raise_for(self, reason: str) -> None:
        """Raise the flag; the first reason is the one that is kept."""
        self.reason = self.reason or reason

    def raise_on_signals(self) -> None:
        """Let SIGTERM and SIGINT raise the flag instead of ending the process. Main thread only."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.raise_for(signal.Signals(number).name)
