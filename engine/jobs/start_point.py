"""Where an attempt begins: at the run's newest whole checkpoint, at its parent's, or at the start."""

from dataclasses import dataclass
from pathlib import Path

from engine.errors import CheckpointError
from engine.jobs.folders import checkpoints_folder, run_folder
from engine.store import reads
from engine.store.database import Database
from engine.store.records import Run


@dataclass(frozen=True, slots=True)
class Beginning:
    """The checkpoint to go on from (None: the start policy) and its step. `passed_over` are newer, unfinished ones."""

    path: Path | None
    step: int
    fork: bool = False
    passed_over: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return it as a sentence."""
        if self.path is None:
            return "starting from the start policy"
        sentence = f"{'forked from' if self.fork else 'going on from'} the checkpoint of step {self.step}: {self.path}"
        return f"{sentence} (newer but unfinished: {', '.join(self.passed_over)})" if self.passed_over else sentence


def find_beginning(db: Database, run: Run) -> Beginning:
    """Return where the next attempt of `run` begins.

    Raises:
        CheckpointError: if a fork's checkpoint is no longer there.
    """
    from engine.training.checkpoint import is_complete, latest_checkpoint, step_of

    own = checkpoints_folder(run_folder(db.url, run.run_id))
    newest = latest_checkpoint(own)
    if newest is not None:
        step = step_of(newest)
        newer = [path.name for path in own.glob("step-*") if int(path.name[5:].split(".")[0]) > step]
        return Beginning(newest, step, passed_over=tuple(sorted(newer)))
    if run.parent_run_id is None or run.parent_step is None:
        return Beginning(None, 0)
    path = checkpoint_path(db, run.parent_run_id, run.parent_step)
    if not is_complete(path):
        there = [row.step for row in reads.checkpoints(db, run.parent_run_id)]
        raise CheckpointError(
            f"fork={run.parent_run_id}@{run.parent_step} has no whole checkpoint at {path} (any more); "
            f"fork from one of its steps {', '.join(map(str, there)) or '(it has none)'}"
        )
    return Beginning(path, run.parent_step, fork=True)


def checkpoint_path(db: Database, run_id: str, step: int) -> Path:
    """Return where the checkpoint of a run's step lies, or would lie."""
    for row in reads.checkpoints(db, run_id):
        if row.step == step:
            return Path(row.path)
    return checkpoints_folder(run_folder(db.url, run_id)) / f"step-{step:06d}"
