"""Real processes, but small ones: sleepers that this test starts and ends."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.jobs import process
from engine.jobs.process import Child, Identity

SLEEP = "import time; time.sleep(60)"


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.02)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Child]:
    child = start(SLEEP, tmp_path)
    yield child
    process.kill_tree(child.identity)
    wait_until(lambda: child.poll() is not None)


def start(code: str, folder: Path, **environment: str) -> Child:
    return process.start_child([sys.executable, "-c", code], log=folder / "logs" / "a.log", environment=environment)


def test_a_child_has_its_own_session_its_environment_and_its_log(tmp_path: Path) -> None:
    child = start("import os; print(os.getsid(0) == os.getpid(), os.environ['WORD'])", tmp_path, WORD="hello")
    wait_until(lambda: child.poll() is not None)
    assert child.poll() == 0
    assert (tmp_path / "logs" / "a.log").read_text() == "True hello\n"


def test_a_live_process_is_known_by_pid_start_and_boot(sleeper: Child) -> None:
    assert process.identify(sleeper.identity.pid) == sleeper.identity
    assert process.is_alive(sleeper.identity)
    assert sleeper.identity.boot_id == process.boot_id() != ""


def test_a_killed_child_is_dead_before_it_is_reaped(tmp_path: Path) -> None:
    child = start(SLEEP, tmp_path)
    os.kill(child.identity.pid, signal.SIGKILL)
    wait_until(lambda: not process.is_alive(child.identity))
    wait_until(lambda: child.poll() is not None)
    assert child.poll() == -signal.SIGKILL
    assert process.identify(child.identity.pid) is None


@pytest.mark.parametrize("change", [{"started_at": 1.0}, {"boot_id": "another boot"}])
def test_a_stranger_with_the_same_pid_is_never_signalled(sleeper: Child, change: dict[str, object]) -> None:
    stored = dataclasses.replace(sleeper.identity, **change)
    assert not process.is_alive(stored)
    assert not process.terminate(stored)
    assert not process.kill_tree(stored)
    assert process.environment_of(stored) == {}
    time.sleep(0.1)
    assert sleeper.poll() is None


def test_terminate_reaches_the_process_alone(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), sys.exit(3)))\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    child = start(code, tmp_path)
    log = tmp_path / "logs" / "a.log"
    wait_until(lambda: "ready" in log.read_text())
    assert process.terminate(child.identity)
    wait_until(lambda: child.poll() is not None)
    assert (child.poll(), log.read_text()) == (3, "ready\nasked\n")


def test_kill_tree_takes_grandchildren_even_in_other_sessions(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True)\n"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    child = start(code, tmp_path)
    log = tmp_path / "logs" / "a.log"
    wait_until(lambda: log.read_text().endswith("\n"))
    grandchild = process.identify(int(log.read_text()))
    assert grandchild is not None
    assert process.is_alive(grandchild)
    assert process.kill_tree(child.identity)
    wait_until(lambda: not process.is_alive(grandchild) and child.poll() is not None)


def test_strays_of_a_dead_run_are_killed_by_session_and_attempt(tmp_path: Path) -> None:
    code = f"import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).pid, flush=True)"
    child = start(code, tmp_path, **{process.ATTEMPT_VARIABLE: "attempt-x"})
    wait_until(lambda: child.poll() is not None)
    stray = process.identify(int((tmp_path / "logs" / "a.log").read_text()))
    assert stray is not None
    assert process.kill_strays(child.identity, "another attempt") == 0
    assert process.is_alive(stray)
    assert process.kill_strays(child.identity, "attempt-x") == 1
    wait_until(lambda: not process.is_alive(stray))


def test_a_pid_that_nobody_has_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert process.identify(gone.pid) is None
    assert not process.is_alive(Identity(gone.pid, 1.0, process.boot_id()))
