"""Times the phases of a step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class PhaseClock:
    """Adds up the seconds spent in named phases, on a clock that never goes back."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Time the block as `phase`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - began

    def take(self) -> dict[str, float]:
        """Return the seconds per phase since the last call, under `time/<phase>`, and start anew."""
        taken = {f"time/{phase}": seconds for phase, seconds in self._seconds.items()}
        self._seconds = {}
        return taken
