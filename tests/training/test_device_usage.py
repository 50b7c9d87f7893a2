import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from engine.metrics import METRICS
from engine.training.device_usage import DeviceUsage, Reading, device_usage

CUDA = torch.device("cuda", 0)


class Events:
    """A recorder that keeps events alone."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []

    def event(self, kind: str, message: str, *, step: int | None = None, level: str = "info") -> None:
        self.found.append((kind, message, level))


class FakeDriver(ModuleType):
    """The package pynvml with one GPU, 3 GiB of it in use and busy for 40 % of the time."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, answers: bool = True) -> None:
        super().__init__("pynvml")
        self._answers, self.asked_for = answers, ""

    def nvmlInit(self) -> None:  # noqa: N802
        if not self._answers:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        self.asked_for = uuid
        return "handle"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        assert handle == "handle"
        return SimpleNamespace(used=3 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=40)


@pytest.fixture(autouse=True)
def _one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="1234-abcd"))


def test_readings_come_to_their_mean_and_maximum_and_are_given_once() -> None:
    readings = iter([Reading(100, 0.2), Reading(300, 0.6), Reading(200, 0.1), Reading(50, 1.0)])
    enough = threading.Event()

    def read() -> Reading:
        reading = next(readings)
        if reading.memory_used == 300:
            enough.set()
            usage._every = 60.0
        return reading

    usage = DeviceUsage(read, every=0.001).start()
    assert enough.wait(5.0)
    assert usage.take() == {
        "device/memory_used/mean": 200.0,
        "device/memory_used/max": 300.0,
        "device/utilization/mean": pytest.approx(0.3),
        "device/utilization/max": 0.6,
    }
    # A step shorter than the time between two readings has the one that is made for it.
    assert usage.take()["device/memory_used/mean"] == 50.0
    usage.close()


def test_a_driver_that_stops_answering_is_complained_of_once_and_ends_the_readings() -> None:
    def read() -> Reading:
        raise RuntimeError("GPU is lost")

    said: list[str] = []
    usage = DeviceUsage(read, every=60.0, complain=said.append).start()
    assert usage.take() == {}
    assert usage.take() == {}
    usage.close()
    assert said == ["the GPU's driver no longer answers: RuntimeError: GPU is lost"]


def test_on_a_cuda_device_the_driver_is_asked_for_that_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, events = FakeDriver(), Events()
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    with device_usage(CUDA, events) as take:  # type: ignore[arg-type]
        taken = take()
    assert driver.asked_for == "GPU-1234-abcd"
    assert taken["device/memory_used/max"] == 3 << 30
    assert taken["device/utilization/mean"] == 0.4
    assert set(taken) == {name for name in METRICS if name.startswith("device/")}
    assert events.found == []
    assert not [thread for thread in threading.enumerate() if thread.name == "device-usage"]


def test_without_the_package_one_event_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with device_usage(CUDA, events) as take:  # type: ignore[arg-type]
        assert (take(), take()) == ({}, {})
    ((kind, message, level),) = events.found
    assert (kind, level) == ("device_not_measured", "warning")
    assert "nvidia-ml-py is not installed; `pip install 'grpo-lab[gpu]'`" in message


def test_a_driver_that_does_not_answer_is_told_of_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events()
    monkeypatch.setitem(sys.modules, "pynvml", FakeDriver(answers=False))
    with device_usage(CUDA, events) as take:  # type: ignore[arg-type]
        assert take() == {}
    assert "does not answer: Driver Not Loaded" in events.found[0][1]


def test_on_a_cpu_there_is_nothing_to_read_and_nothing_to_install() -> None:
    events = Events()
    with device_usage(torch.device("cpu"), events) as take:  # type: ignore[arg-type]
        assert take() == {}
    assert events.found == []
