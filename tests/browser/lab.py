"""A whole lab on a store of its own: the web process and the worker as a user starts them, and their clean end."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.jobs import process
from engine.jobs.worker import identity_of
from engine.jobs.workers import live_workers
from engine.store.database import Database, open_database
from engine.store.reads import attempts, get_run, list_runs
from engine.store.records import Run

ROOT = Path(__file__).parents[2]
ARTEFACTS = ROOT / "artefacts"
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Lab:
    """Where a lab answers, and its store."""

    address: str
    db: Database

    def at(self, path: str) -> str:
        """Return the address of a page."""
        return f"{self.address}/{path}"

    def run(self, run_id: str) -> Run:
        """Return a run as it stands in the store now."""
        run = get_run(self.db, run_id)
        assert run is not None
        return run

    def wait_for(self, run_id: str, ready: Callable[[Run], bool], seconds: float = PATIENCE) -> Run:
        """Return a run as soon as it is `ready`; fail after that many seconds."""
        wait_until(lambda: ready(self.run(run_id)), seconds, lambda: f"run {run_id} is {self.run(run_id)}")
        return self.run(run_id)


@contextlib.contextmanager
def open_lab(
    folder: Path, name: str, *, worker: bool = True, fill: Callable[[Database], object] = lambda _: None
) -> Iterator[Lab]:
    """Start a lab whose store lies in `folder` and is first filled by `fill`; end it and the runs that it started.

    What its processes say is kept in artefacts/logs/`name`-web.log and -worker.log.
    """
    url = f"sqlite:///{folder / 'runs.db'}"
    environment = {
        **os.environ,
        "GRPO_LAB_DATABASE_URL": url,
        "GRPO_LAB_RUNS_DIR": str(folder / "runs"),
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    port = _free_port()
    web = ["-m", "streamlit", "run", "dashboard/app.py", "--server.port", str(port)]
    with contextlib.ExitStack() as stack:
        db = open_database(url)
        stack.callback(db.close)
        fill(db)
        lab = Lab(f"http://127.0.0.1:{port}", db)
        serving = stack.enter_context(_process(web, environment, f"{name}-web"))
        if worker:
            # The last to come is the first to go: the worker before its runs, so that it starts no more of them.
            stack.callback(_end_runs, db)
            working = stack.enter_context(_process(["-m", "engine.jobs.worker"], environment, f"{name}-worker"))
            wait_until(lambda: live_workers(db, datetime.now(UTC)), PATIENCE, lambda: "no worker", working.poll)
        wait_until(lambda: _answers(lab.at("_stcore/health")), PATIENCE, lambda: "no answer", serving.poll)
        yield lab


def wait_until(
    ready: Callable[[], object],
    seconds: float,
    what: Callable[[], str],
    ended: Callable[[], int | None] = lambda: None,
) -> None:
    """Return as soon as `ready` is true; fail after so many seconds, or if the process in question has ended."""
    deadline = time.monotonic() + seconds
    while not ready():
        code = ended()
        assert code is None, f"{what()}: the process ended with {code}; see artefacts/logs"
        assert time.monotonic() < deadline, f"after {seconds:g} s: {what()}"
        time.sleep(0.05)


@contextlib.contextmanager
def _process(arguments: Sequence[str], environment: Mapping[str, str], log: str) -> Iterator["subprocess.Popen[bytes]"]:
    logs = ARTEFACTS / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / f"{log}.log").open("wb") as output:
        command = [sys.executable, *arguments]
        child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _end_runs(db: Database) -> None:
    for run in list_runs(db, include_archived=True):
        for attempt in attempts(db, run.run_id):
            identity = identity_of(attempt)
            if identity is not None:
                process.kill_tree(identity)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
