"""Whether a model's weights are on this machine, and what has to happen first where they are not."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.planner.catalogue import SMOLLM2, TINY_MATH, lacks_for_smollm2, made_files, smollm2_place
from engine.planner.hub_cache import cached_file, is_hub_name

State = Literal["here", "to_make", "to_download", "missing"]
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Presence:
    """Where the weights are, or how they come; the sentence names places and ways out."""

    state: State
    sentence: str


def find_presence(name: str) -> Presence:
    """Return where the weights of a `model.name` are. Nothing is loaded, made or fetched."""
    if name == TINY_MATH:
        return Presence("here", "It comes with this program.")
    if name == SMOLLM2:
        return _of_smollm2()
    if _is_folder(name):
        return _of_folder(Path(name))
    if _complete(lambda filename: cached_file(name, filename)):
        return Presence("here", "It is in the local Hugging Face cache.")
    if is_hub_name(name):
        return Presence("to_download", "It is not in the local Hugging Face cache: a run downloads it as it starts.")
    return Presence("missing", f"model.name={name} is neither a folder here nor a name of the hub; correct it")


def _of_smollm2() -> Presence:
    place = smollm2_place()
    if made_files(place) is not None:
        return Presence("here", f"It was made here: {place}")
    lacks = lacks_for_smollm2()
    if lacks is not None:
        return Presence("missing", lacks)
    return Presence("to_make", f"The first run makes it, in one to two minutes (540 MB): {place}")


def _of_folder(folder: Path) -> Presence:
    if (folder / "adapter_config.json").is_file():
        return Presence("here", "It is a folder here, an adapter beside the model that it was trained on.")
    if not (folder / "config.json").is_file():
        return Presence("missing", f"model.name={folder} lacks config.json; give the folder of a model")
    if not _complete(lambda filename: folder / filename):
        return Presence("missing", f"model.name={folder} lacks its weights as safetensors; give the folder of a model")
    return Presence("here", "It is a folder here.")


def _complete(find: Callable[[str], Path | None]) -> bool:
    """Whether the weights are there whole: in one file, or in every file that the index names."""
    if _there(find(SINGLE)):
        return True
    index = find(INDEX)
    if index is None or not _there(index):
        return False
    try:
        named = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return bool(named) and all(_there(find(str(filename))) for filename in named)


def _there(path: Path | None) -> bool:
    return path is not None and path.is_file()


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # too long for a path
        return False
