"""Times the phases of a step and takes their peak memory."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from engine.training.memory import MemoryProbe, memory_probe


class PhaseClock:
    """Adds up the seconds of named phases on a clock that never goes back, and keeps the peak memory of each.

    Memory is the GPU's if `device` is one, else the process's. A phase must not lie inside another.
    """

    def __init__(self, device: torch.device, *, probe: MemoryProbe | None = None) -> None:
        self._probe = probe or memory_probe(device)
        self._seconds: dict[str, float] = {}
        self._bytes: dict[str, int] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Measure the block as `phase`."""
        self._probe.reset()
        began = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - began
            self._bytes[phase] = max(self._bytes.get(phase, 0), self._probe.peak())

    def take(self) -> dict[str, float]:
        """Return seconds and peak bytes per phase since the last call, and start anew.

        They are called `time/<phase>` and `memory/<phase>`.
        """
        taken = {f"time/{phase}": seconds for phase, seconds in self._seconds.items()}
        taken |= {f"memory/{phase}": float(peak) for phase, peak in self._bytes.items()}
        self._seconds, self._bytes = {}, {}
        return taken
