import time

import pytest
import torch

from engine.training.clock import PhaseClock

CPU = torch.device("cpu")


class FakeProbe:
    """Reads out given peaks, one per phase, and checks that each reading follows a reset."""

    def __init__(self, *peaks: int) -> None:
        self._peaks = list(peaks)
        self._fresh = False

    def reset(self) -> None:
        self._fresh = True

    def peak(self) -> int:
        assert self._fresh
        self._fresh = False
        return self._peaks.pop(0)


def test_a_phase_that_comes_twice_has_the_sum_of_its_times_and_the_larger_peak():
    clock = PhaseClock(CPU, probe=FakeProbe(300, 50, 200))
    with clock("rollout"):
        time.sleep(0.02)
    with clock("update"):
        pass
    with clock("rollout"):
        time.sleep(0.02)
    taken = clock.take()
    assert taken["memory/rollout"] == 300.0
    assert taken["memory/update"] == 50.0
    assert taken["time/rollout"] >= 0.04
    assert taken["time/update"] < taken["time/rollout"]
    assert clock.take() == {}


def test_a_phase_that_fails_is_measured_too():
    clock = PhaseClock(CPU, probe=FakeProbe(7))

    def fail() -> None:
        with clock("update"):
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        fail()
    assert clock.take()["memory/update"] == 7.0


def test_a_phase_costs_less_than_a_millisecond_more():
    clock, times = PhaseClock(CPU), []
    for _ in range(20):
        began = time.perf_counter()
        with clock("score"):
            pass
        times.append(time.perf_counter() - began)
    assert min(times) < 1e-3
