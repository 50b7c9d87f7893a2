"""Where an attempt begins: at the run's newest whole checkpoint, at its parent's, or at step 0."""

from dataclasses import dataclass, replace
from pathlib import Path

from engine.config import RunConfig
from engine.errors import CheckpointError
from engine.jobs.folders import checkpoints_folder, run_folder
from engine.store import reads
from engine.store.database import Database
from engine.store.records import Run
from engine.store.starts import named_checkpoint


@dataclass(frozen=True, slots=True)
class Beginning:
    """The checkpoint to go on from (None: none, at step 0) and its step. `passed_over` are newer, unfinished ones.

    `initial_weights` is the folder that `model.init_from` names, where it is needed.
    """

    path: Path | None
    step: int
    fork: bool = False
    passed_over: tuple[str, ...] = ()
    initial_weights: Path | None = None

    def describe(self) -> str:
        """Return it as a sentence."""
        if self.path is None:
            start = "the start policy" if self.initial_weights is None else f"the weights in {self.initial_weights}"
            return f"starting from {start}"
        sentence = f"{'forked from' if self.fork else 'going on from'} the checkpoint of step {self.step}: {self.path}"
        return f"{sentence} (newer but unfinished: {', '.join(self.passed_over)})" if self.passed_over else sentence


def find_beginning(db: Database, run: Run) -> Beginning:
    """Return where the next attempt of `run` begins.

    Raises:
        CheckpointError: if a fork's checkpoint, or the weights to begin with, are not there (any more).
        ConfigError, StoreError: if `model.init_from` names a run or a step that there is not.
    """
    beginning = _find_checkpoint(db, run)
    config = run.run_config()
    # An adapter stands beside the weights it began with, which its own checkpoints do not have.
    if config.model.init_from is None or (beginning.path is not None and config.lora.rank is None):
        return beginning
    return replace(beginning, initial_weights=find_initial_weights(db, config))


def find_initial_weights(db: Database, config: RunConfig) -> Path:
    """Return the folder that `model.init_from` names.

    Raises:
        CheckpointError: if no whole checkpoint, or no model, is there.
        ConfigError, StoreError: if it names a run or a step that there is not.
    """
    from engine.training.checkpoint import is_complete

    start = config.model.init_from
    named = named_checkpoint(db, config)
    path = Path(str(start)) if named is None else Path(named.path)
    if named is not None and not is_complete(path):
        raise CheckpointError(
            f"model.init_from={start} has no whole checkpoint at {path} (any more); "
            f"begin with one of its steps {_steps_there(db, named.run_id, besides=named.step)}"
        )
    if not any((path / name).is_file() for name in ("config.json", "adapter_config.json")):
        raise CheckpointError(
            f"model.init_from={start} has no model: {path} lacks config.json and adapter_config.json; "
            "give a run's checkpoint as run:<id>@<step>, or the folder of a model"
        )
    return path


def _find_checkpoint(db: Database, run: Run) -> Beginning:
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
        raise CheckpointError(
            f"fork={run.parent_run_id}@{run.parent_step} has no whole checkpoint at {path} (any more); "
            f"fork from one of its steps {_steps_there(db, run.parent_run_id)}"
        )
    return Beginning(path, run.parent_step, fork=True)


def checkpoint_path(db: Database, run_id: str, step: int) -> Path:
    """Return where the checkpoint of a run's step lies, or would lie."""
    for row in reads.checkpoints(db, run_id):
        if row.step == step:
            return Path(row.path)
    return checkpoints_folder(run_folder(db.url, run_id)) / f"step-{step:06d}"


def _steps_there(db: Database, run_id: str, *, besides: int | None = None) -> str:
    steps = [str(row.step) for row in reads.checkpoints(db, run_id) if row.step != besides]
    return ", ".join(steps) or "(it has none)"
