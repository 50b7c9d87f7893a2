"""One child process: started in a session of its own, known again by more than its pid, signalled with care."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

ATTEMPT_VARIABLE = "GRPO_LAB_ATTEMPT"


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a process from a later one with the same pid, after a reboot or not."""

    pid: int
    started_at: float
    boot_id: str


@dataclass(frozen=True, slots=True)
class Child:
    """A process that this one started. `poll` returns its exit code (−n: died of signal n) or None while it lives."""

    identity: Identity
    poll: Callable[[], int | None]


def start_child(command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> Child:
    """Start `command` in a new session, so that it outlives this process and its terminal; output goes to `log`.

    Raises:
        OSError: if the program or the log's folder is missing.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **environment},
        )
    # An unreaped child keeps its entry in the process table, so this cannot miss one that has ended already.
    identity = identify(popen.pid)
    assert identity is not None
    return Child(identity, popen.poll)


def identify(pid: int) -> Identity | None:
    """Return who has this pid now, or None if nobody has."""
    started_at = _started_at(pid)
    return None if started_at is None else Identity(pid, started_at, boot_id())


def is_alive(identity: Identity) -> bool:
    """Whether this very process still runs; one that ended but is not yet reaped does not."""
    if identify(identity.pid) != identity:
        return False
    try:
        return psutil.Process(identity.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def terminate(identity: Identity) -> bool:
    """Ask the process to end (SIGTERM); return whether it was there. A stranger with its pid is left alone."""
    if not is_alive(identity):
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(identity.pid, signal.SIGTERM)
    return True


def kill_tree(identity: Identity) -> bool:
    """Kill the process and all below it (SIGKILL); return whether it was there. A stranger is left alone."""
    if not is_alive(identity):
        return False
    try:
        root = psutil.Process(identity.pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.Error:
        return False
    for process in tree:
        # psutil compares start times before it signals, so a pid that was freed meanwhile is safe.
        with contextlib.suppress(psutil.Error):
            process.kill()
    return True


def kill_strays(identity: Identity, attempt_id: str) -> int:
    """Kill what a dead run left behind in its session (graders, samplers that hold a GPU); return how many.

    The session's number alone could belong to a stranger by now, so the attempt named in the environment must fit.
    """
    killed = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == identity.pid and process.environ().get(ATTEMPT_VARIABLE) == attempt_id:
                process.kill()
                killed += 1
    return killed


def environment_of(identity: Identity) -> dict[str, str]:
    """Return the environment the process was started with; empty if it is gone or not ours to read."""
    if not is_alive(identity):
        return {}
    try:
        return psutil.Process(identity.pid).environ()
    except (psutil.Error, OSError):
        return {}


@cache
def boot_id() -> str:
    """Return a name for this boot of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"


def host_name() -> str:
    """Return the name under which this machine appears in the store."""
    return socket.gethostname()


def _started_at(pid: int) -> float | None:
    """Seconds from boot to the start of `pid` where the kernel says so (Linux), else its creation time.

    psutil's creation time is built from the wall clock, and moves when that clock is set; this does not.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        pass
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None
