"""Checkpoints: written beside their place, then renamed; an unfinished one is never taken for a whole one.

A checkpoint folder `step-000025/` is a model folder of transformers (or of peft, where adapters are trained) with a few
more files: `optimizer.safetensors`, `rng.safetensors`, `reference.safetensors` where there is a reference policy, and
`state.json`, which lists every file with its size and is what makes it complete.

`within-000026/` is what a stop inside step 26 leaves: the same, and the step in hand. A run goes on from it; a fork
cannot, and the next checkpoint removes it.
"""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from engine.errors import CheckpointError
from engine.policy.policy import Policy, save_policy
from engine.policy.reference import ReferencePolicy
from engine.training.in_hand import StepInHand, save_step_in_hand
from engine.training.state import TrainingState

FORMAT = 3
_WRITING = ".writing"
_STEP, _WITHIN = "step-", "within-"
REFERENCE = "reference.safetensors"


def save_checkpoint(
    folder: Path,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    *,
    reference: ReferencePolicy | None = None,
    in_hand: StepInHand | None = None,
) -> Path:
    """Write the checkpoint of `state.step`, or of a stop inside the step after it, into `folder`; return its path.

    Raises:
        OSError: if the disk is full or not writable; earlier checkpoints are untouched then.
    """
    final = folder / (f"{_STEP}{state.step:06d}" if in_hand is None else f"{_WITHIN}{state.step + 1:06d}")
    writing = folder / f"{final.name}{_WRITING}"
    shutil.rmtree(writing, ignore_errors=True)
    writing.mkdir(parents=True)
    try:
        save_policy(policy, writing)
        save_file(_optimizer_tensors(optimizer), writing / "optimizer.safetensors")
        save_file(_random_state(), writing / "rng.safetensors")
        if reference is not None:
            save_file(reference.tensors(), writing / REFERENCE)
        if in_hand is not None:
            save_step_in_hand(writing, in_hand)
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


def load_checkpoint(
    path: Path, optimizer: torch.optim.Optimizer, *, reference: ReferencePolicy | None = None
) -> TrainingState:
    """Restore optimizer, random state and `reference` from `path`; the weights are read by `load_policy(path)`.

    Raises:
        CheckpointError: if the checkpoint is unfinished, of a newer format, or of another model, or if there is a
            reference policy and it is not in the checkpoint.
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
    if reference is not None:
        if not (path / REFERENCE).is_file():
            raise CheckpointError(f"checkpoint={path} has no reference policy; fork from it, which begins a new one")
        reference.restore(load_file(path / REFERENCE))
    _restore_random_state(load_file(path / "rng.safetensors"))
    saved = document["state"]
    # In format 1 every step drew prompts once, and there were neither controllers nor early stopping; up to format 2
    # changes of the weights were not counted, and the count begins with the resume.
    return TrainingState(**{"draws": saved["step"]} | saved)


def latest_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint in `folder`, or None."""
    complete = [path for kind in (_STEP, _WITHIN) for path in folder.glob(f"{kind}*") if is_complete(path)]
    return max(complete, key=lambda path: (step_of(path), path.name.startswith(_WITHIN)), default=None)


def is_complete(path: Path) -> bool:
    """Whether every file that `state.json` lists is there in full."""
    try:
        _read_state(path)
    except CheckpointError:
        return False
    return True


def step_of(path: Path) -> int:
    """Return the last step that the checkpoint at `path` has finished, from its name."""
    if path.name.startswith(_WITHIN):
        return int(path.name.removeprefix(_WITHIN)) - 1
    return int(path.name.removeprefix(_STEP))


def best_checkpoint(folder: Path) -> Path | None:
    """Return the complete checkpoint with the highest held-out accuracy, the earliest of equals, or None."""
    evaluated = [
        (path, accuracy)
        for path in sorted(folder.glob(f"{_STEP}*"))
        if is_complete(path) and (accuracy := _read_state(path)["state"]["accuracy"]) is not None
    ]
    return max(evaluated, key=lambda pair: pair[1], default=(None, 0.0))[0]


def prune_checkpoints(folder: Path, *, keep: int) -> list[int]:
    """Delete all but the newest `keep` checkpoints and the best one; return the steps deleted.

    What a stop inside a step had left goes as well.
    """
    kept = sorted((path for path in folder.glob(f"{_STEP}*") if is_complete(path)), key=step_of)[-keep:]
    staying = {*kept, best_checkpoint(folder)}
    doomed = [path for path in folder.glob(f"{_STEP}*") if path not in staying]
    for path in (*doomed, *folder.glob(f"{_WITHIN}*")):
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


def _random_state() -> dict[str, torch.Tensor]:
    states = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _restore_random_state(states: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
