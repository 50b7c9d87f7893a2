"""A machine without processes: what the worker does to it is written down."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.jobs.process import Child, Identity

BOOT = "boot-1"
Enqueue = Callable[..., str]


@dataclass
class FakeProcess:
    identity: Identity
    command: list[str]
    log: Path
    environment: dict[str, str]
    exit_code: int | None = None


@dataclass
class FakeProcesses:
    """Stands in for `engine.jobs.process`."""

    refuse_start: OSError | None = None
    by_pid: dict[int, FakeProcess] = field(default_factory=dict)
    signals: list[tuple[str, int]] = field(default_factory=list)
    strays_of: list[str] = field(default_factory=list)
    _pids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1001))

    @property
    def started(self) -> list[FakeProcess]:
        return list(self.by_pid.values())

    def end(self, pid: int, code: int) -> None:
        self.by_pid[pid].exit_code = code

    def start_child(self, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> Child:
        if self.refuse_start:
            raise self.refuse_start
        pid = next(self._pids)
        made = FakeProcess(Identity(pid, pid / 10, BOOT), list(command), log, dict(environment))
        self.by_pid[pid] = made
        return Child(made.identity, lambda: made.exit_code)

    def is_alive(self, identity: Identity) -> bool:
        known = self.by_pid.get(identity.pid)
        return known is not None and known.identity == identity and known.exit_code is None

    def terminate(self, identity: Identity) -> bool:
        self.signals.append(("SIGTERM", identity.pid))
        return True

    def kill_tree(self, identity: Identity) -> bool:
        self.signals.append(("SIGKILL", identity.pid))
        self.end(identity.pid, -9)
        return True

    def kill_strays(self, identity: Identity, attempt_id: str) -> int:
        self.strays_of.append(attempt_id)
        return 0

    def environment_of(self, identity: Identity) -> dict[str, str]:
        return self.by_pid[identity.pid].environment


@dataclass
class FakeClock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds
