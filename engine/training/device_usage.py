"""How full and how busy the run's GPU is, read from the driver in a thread beside the training."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean

import torch

from engine.store.recorder import Recorder

EVERY = 0.5
"""Seconds between two readings. The driver's own utilization is that of a span of 1/6 to 1 s before it is asked."""
INSTALL = "`pip install 'grpo-lab[gpu]'`"


@dataclass(frozen=True, slots=True)
class Reading:
    """What the driver says: bytes in use on the whole GPU, by whichever process, and the share of time it was busy."""

    memory_used: int
    utilization: float


class DeviceUsage:
    """Reads a GPU every half second until closed, and gives mean and maximum of the readings since it was last asked.

    Readings that fail end it: `complain` is told once, and training goes on.
    """

    def __init__(
        self, read: Callable[[], Reading], *, every: float = EVERY, complain: Callable[[str], None] = print
    ) -> None:
        self._read, self._every, self._complain = read, every, complain
        self._readings: list[Reading] = []
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="device-usage", daemon=True)

    def start(self) -> "DeviceUsage":
        """Begin, and return itself."""
        self._thread.start()
        return self

    def take(self) -> dict[str, float]:
        """Return `device/*` metrics of the readings since the last call, of one made now at the least; else nothing."""
        self._read_once()
        with self._lock:
            readings, self._readings = self._readings, []
        if not readings:
            return {}
        memory, busy = [each.memory_used for each in readings], [each.utilization for each in readings]
        return {
            "device/memory_used/mean": fmean(memory),
            "device/memory_used/max": float(max(memory)),
            "device/utilization/mean": fmean(busy),
            "device/utilization/max": max(busy),
        }

    def close(self) -> None:
        """End; a reading that hangs in the driver is not waited for longer than a few seconds."""
        self._closed.set()
        self._thread.join(timeout=5.0)

    def _work(self) -> None:
        while not self._closed.wait(self._every):
            self._read_once()

    def _read_once(self) -> None:
        if self._closed.is_set():
            return
        try:
            reading = self._read()
        except Exception as error:  # whatever the driver's package raises, it is no reason to end a run
            with self._lock:
                first = not self._closed.is_set()
                self._closed.set()
            if first:
                self._complain(f"the GPU's driver no longer answers: {type(error).__name__}: {error}")
            return
        with self._lock:
            self._readings.append(reading)


@contextmanager
def device_usage(device: torch.device, recorder: Recorder) -> Iterator[Callable[[], dict[str, float]]]:
    """Yield what returns the `device/*` metrics since the last call: none but on a CUDA device. Has not run on one.

    Without the package nvidia-ml-py, or a driver that it can ask, there are none either, and one event says so.
    """
    usage = _started(device, recorder) if device.type == "cuda" else None
    try:
        yield usage.take if usage else dict
    finally:
        if usage:
            usage.close()


def _started(device: torch.device, recorder: Recorder) -> DeviceUsage | None:
    def complain(reason: str) -> None:
        recorder.event("device_not_measured", f"device/* is not measured: {reason}", level="warning")

    try:
        import pynvml
    except ImportError:
        complain(f"the package nvidia-ml-py is not installed; {INSTALL}")
        return None
    try:
        pynvml.nvmlInit()
        # By its uuid: the driver counts all GPUs, torch those that CUDA_VISIBLE_DEVICES leaves.
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
    except pynvml.NVMLError as error:
        complain(f"the GPU's driver does not answer: {error}; nvidia-smi may tell more")
        return None

    def read() -> Reading:
        used = int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
        return Reading(used, pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100)

    return DeviceUsage(read, complain=complain).start()
