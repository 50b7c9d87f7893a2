"""The peak memory of a phase: on the GPU, or of the process."""

import re
from pathlib import Path
from typing import Protocol

import psutil
import torch

CLEAR_REFS = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")
_RESET_PEAK = "5"
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class MemoryProbe(Protocol):
    """Measures the most memory in use between `reset` and `peak`."""

    def reset(self) -> None:
        """Begin anew."""
        ...

    def peak(self) -> int:
        """Return the most bytes in use since the last reset."""
        ...


class CudaPeak:
    """The most that tensors took on a GPU, as torch's allocator counts it. Has not yet run on one."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def reset(self) -> None:
        """Forget earlier peaks."""
        torch.cuda.reset_peak_memory_stats(self._device)

    def peak(self) -> int:
        """Return allocated bytes at their peak."""
        return int(torch.cuda.max_memory_allocated(self._device))


class ResidentPeak:
    """The peak of the process's resident set, which Linux counts and lets a process reset (proc_pid_clear_refs(5))."""

    def reset(self) -> None:
        """Set the peak to what is resident now."""
        CLEAR_REFS.write_text(_RESET_PEAK)

    def peak(self) -> int:
        """Return VmHWM in bytes."""
        found = _PEAK.search(STATUS.read_text())
        if found is None:
            raise OSError(f"{STATUS} has no line VmHWM")
        return 1024 * int(found[1])


class ResidentNow:
    """The resident set at the end of a phase, where the system does not tell the peak."""

    def __init__(self) -> None:
        self._process = psutil.Process()

    def reset(self) -> None:
        """Nothing is kept."""

    def peak(self) -> int:
        """Return the bytes resident now."""
        return int(self._process.memory_info().rss)


def memory_probe(device: torch.device) -> MemoryProbe:
    """Return the best probe that there is for a model on `device`."""
    if device.type == "cuda":
        return CudaPeak(device)
    probe = ResidentPeak()
    try:
        probe.reset()
        probe.peak()
    except OSError:
        return ResidentNow()
    return probe
