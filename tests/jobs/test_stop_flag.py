import os
import signal
from collections.abc import Iterator

import pytest

from engine.jobs.stop_flag import StopFlag


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_first_reason_is_kept() -> None:
    flag = StopFlag()
    assert not flag()
    flag.raise_for("asked")
    flag.raise_for("SIGTERM")
    assert (flag(), flag.reason) == (True, "asked")


def test_a_second_signal_during_a_save_does_not_break_it_off() -> None:
    flag = StopFlag()
    flag.raise_on_signals()
    os.kill(os.getpid(), signal.SIGTERM)
    saved = []
    for part in range(3):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        saved.append(part)
    assert (saved, flag.reason) == ([0, 1, 2], "SIGTERM")
