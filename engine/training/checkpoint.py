"""Checkpoints: written beside their place, then renamed; an unfinished one is never taken for a whole one.

A checkpoint folder `step-000025/` is a model folder of transformers with three more files: `optimizer.safetensors`,
`rng.safetensors`, and `state.json`, which lists every file with its size and is what makes it complete.
"""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from engine.errors import CheckpointError
from engine.policy.policy import Policy, save_policy

FORMAT = 1
_WRITING = ".writing"


@dataclass(frozen=True, slots=True)
class TrainingState:
    """What a run must remember besides weights and optimizer. `step` is also the position in the data:
    the problems of a step depend on its number alone.
    """

    step: int = 0
    num_tokens: int = 0
    skipped_in_a_row: int = 0
    seconds: float = 0.0
    accuracy: float | None = None  # on held-out problems, where this very step was evaluated


def save_checkpoint(folder: Path, policy: Policy, optimizer: torch.optim.Optimizer, state: TrainingState) -> Path:
    """Write the checkpoint of `state.step` into `folder` and return its path.

    Raises:
        OSError: if the disk is full or not writable; earlier checkpoints are untouched then.
    """
    final = folder / f"step-{state.step:06d}"
    writing = folder / f"{final.name}{_WRITING}"
    shutil.rmtree(writing, ignore_errors=True)
    writing.mkdir(parents=True)
    try:
        save_policy(policy, writing)
        save_file(_optimizer_tensors(optimizer), writing / "optimizer.safetensors")
        save_file({"torch": torch.get_rng_state()}, writing / "rng.safetensors")
        sizes = {path.name: path.stat().st_size for path in sorted(writing.iterdir())}
        document = {"format": FORMAT, "state": asdict(state), "files": sizes}
        (writing / "state.json").write_text(json.dumps(document, indent=1))
        for path in writing.iterdir():
            _sync(path)
        shutil.rmtree(final, ignore_errors=True)
        writing.rename(final)
        _sync(folder)
    except BaseException:
        shutil.rmtree(writing, ignore_errors=True)
        raise
    return final


def load_checkpoint(path: Path, optimizer: torch.optim.Optimizer) -> TrainingState:
    """Restore optimizer and random state from `path`; the weights are read by `load_policy(path)`.

    Raises:
        CheckpointError: if the checkpoint is unfinished, of a newer format, or of another model.
    """
    document = _read_state(path)
    tensors = load_file(path / "optimizer.safetensors")
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = tensor
    try:
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    except ValueError as error:
        raise CheckpointError(f"checkpoint={path} does not fit this run's model: {error}") from error
    torch.set_rng_state(load_file(path / "rng.safetensors")["torch"])
    return TrainingState(**document["state"])


def latest_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint in `folder`, or None."""
    complete = [path for path in folder.glob("step-*") if is_complete(path)]
    return max(complete, key=step_of, default=None)


def is_complete(path: Path) -> bool:
    """Whether every file that `state.json` lists is there in full."""
    try:
        _read_state(path)
    except CheckpointError:
        return False
    return True


def step_of(path: Path) -> int:
    """Return the step in a checkpoint's name."""
    return int(path.name.removeprefix("step-"))


def best_checkpoint(folder: Path) -> Path | None:
    """Return the complete checkpoint with the highest held-out accuracy, the earliest of equals, or None."""
    evaluated = [
        (path, accuracy)
        for path in sorted(folder.glob("step-*"))
        if is_complete(path) and (accuracy := _read_state(path)["state"]["accuracy"]) is not None
    ]
    return max(evaluated, key=lambda pair: pair[1], default=(None, 0.0))[0]


def prune_checkpoints(folder: Path, *, keep: int) -> list[int]:
    """Delete all but the newest `keep` checkpoints and the best one; return the steps deleted."""
    kept = sorted((path for path in folder.glob("step-*") if is_complete(path)), key=step_of)[-keep:]
    staying = {*kept, best_checkpoint(folder)}
    doomed = [path for path in folder.glob("step-*") if path not in staying]
    for path in doomed:
        shutil.rmtree(path)
    return sorted(step_of(path) for path in doomed if path.suffix != _WRITING)


def _read_state(path: Path) -> dict[str, Any]:
    if path.suffix == _WRITING:
        raise CheckpointError(f"checkpoint={path} was never finished; use an earlier one")
    try:
        document = json.loads((path / "state.json").read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint={path} has no readable state.json; use an earlier one") from error
    if document["format"] > FORMAT:
        raise CheckpointError(
            f"checkpoint={path} has format {document['format']}, this program reads up to {FORMAT}; update the program"
        )
    for name, size in document["files"].items():
        file = path / name
        if not file.is_file() or file.stat().st_size != size:
            raise CheckpointError(f"checkpoint={path} lacks {name} ({size} bytes); use an earlier one")
    return dict(document)


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{index}.{key}": value.contiguous()
        for index, entries in optimizer.state_dict()["state"].items()
        for key, value in entries.items()
    }


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
