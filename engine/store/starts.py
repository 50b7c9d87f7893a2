"""What a config names outside itself: a run's checkpoint to begin with, and files. Made to hold for any process."""

from pathlib import Path

from engine.config import RunConfig
from engine.errors import ConfigError, FieldProblem, StoreError
from engine.store.database import Database
from engine.store.read_runs import checkpoints, find_run
from engine.store.records import CheckpointRow


def settled(db: Database, config: RunConfig, *, fork: bool = False) -> RunConfig:
    """Return the config with absolute paths, and with the run in `model.init_from` by its full id.

    A worker has another working directory than whoever launches, and a name may come to fit several runs. A `fork`
    keeps its parent's `model.init_from`, and begins elsewhere.

    Raises:
        StoreError: if there is no such run.
        ConfigError: if it has no checkpoint of the step, or trains another model.
    """
    changes: dict[str, object] = {}
    if config.sft.path is not None:
        changes["sft"] = config.sft.model_copy(update={"path": _absolute(config.sft.path)})
    if config.model.init_from is not None and not fork:
        named = named_checkpoint(db, config)
        start = _absolute(config.model.init_from) if named is None else f"run:{named.run_id}@{named.step}"
        changes["model"] = config.model.model_copy(update={"init_from": start})
    return config.model_copy(update=changes)


def named_checkpoint(db: Database, config: RunConfig) -> CheckpointRow | None:
    """Return the checkpoint that `model.init_from` names; None where it is a folder or empty.

    Raises:
        StoreError: if there is no such run.
        ConfigError: if it has no checkpoint of the step, or trains another model.
    """
    if config.model.initial_checkpoint is None:
        return None
    text, step = config.model.initial_checkpoint
    try:
        run = find_run(db, text)
    except StoreError as error:
        raise StoreError(f"model.init_from={config.model.init_from}: {error}") from error
    there = {row.step: row for row in checkpoints(db, run.run_id)}
    if step not in there:
        known = ", ".join(f"run:{run.run_id}@{each}" for each in there) or "none yet: it has no checkpoint"
        message = f"model.init_from={config.model.init_from} names no checkpoint; use one of {known}"
        raise ConfigError([FieldProblem("model.init_from", message)])
    theirs = run.config.get("model", {}).get("name")
    if theirs != config.model.name:
        message = (
            f"model.name={config.model.name}, but {config.model.init_from} has weights of {theirs}; "
            f"set model.name={theirs}, or begin with another checkpoint"
        )
        raise ConfigError([FieldProblem("model.name", message)])
    return there[step]


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())
