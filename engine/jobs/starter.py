"""Starts the process of a claimed run: its command, its environment, its GPU and its log."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.jobs import process
from engine.jobs.environment import child_environment
from engine.jobs.folders import log_path, run_folder, runs_folder
from engine.jobs.process import Child, Identity
from engine.jobs.processes import Processes
from engine.jobs.resources import VISIBLE_GPUS, Resources, pick_gpu
from engine.store import reads
from engine.store.database import Database
from engine.store.records import Claim

Command = Callable[[Claim, int], Sequence[str]]


def run_command(claim: Claim, threads: int) -> list[str]:
    """Return the command line of one attempt's process."""
    module = [sys.executable, "-m", "engine.jobs.run", claim.run_id]
    return [*module, "--attempt", str(claim.attempt_id), "--threads", str(threads)]


@dataclass(frozen=True, slots=True)
class Starter:
    """Starts processes for runs of one store; `command` makes a command line from a claim and a number of threads."""

    db: Database
    resources: Resources
    processes: Processes = process
    command: Command = run_command

    def start(self, claim: Claim, going: Iterable[Identity]) -> tuple[Child, Path]:
        """Start the process of `claim` beside those that are going; return it and its log.

        Raises:
            OSError: if it cannot be started.
        """
        log = log_path(run_folder(self.db.url, claim.run_id), claim.number)
        environment = child_environment(
            attempt_id=claim.attempt_id,
            database_url=self.db.url,
            runs=runs_folder(self.db.url),
            threads=self.resources.threads,
            gpu=self._gpu_for(claim, going),
        )
        command = self.command(claim, self.resources.threads)
        return self.processes.start_child(command, log=log, environment=environment), log

    def _gpu_for(self, claim: Claim, going: Iterable[Identity]) -> str | None:
        if not self.resources.gpus:
            return None
        run = reads.get_run(self.db, claim.run_id)
        if run is not None and run.config.get("model", {}).get("device") == "cpu":
            return ""
        # The process itself says which GPU it got: that holds for runs of earlier workers, too.
        environments = [self.processes.environment_of(identity) for identity in going]
        return pick_gpu(self.resources.gpus, [found.get(VISIBLE_GPUS, "") for found in environments])
