"""Presets: RunConfigs as YAML, each a small difference to a parent (`extends:`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config import RunConfig, merge, nest, parse_config
from engine.errors import ConfigError, FieldProblem
from engine.presets.document import document_name, document_names, read_document

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Preset:
    """A named starting point: its sentence, its parent, and the config it comes to."""

    name: str
    sentence: str
    extends: str | None
    config: RunConfig


def preset_names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the names of all presets, `quick-start` first."""
    return document_names(folder)


def load_preset(name_or_path: str, overrides: Mapping[str, Any] | None = None, *, folder: Path = FOLDER) -> Preset:
    """Load a preset by name, or any YAML file by path, with `overrides` laid over it.

    Raises:
        ConfigError: if there is no such preset, `extends` runs in a circle, or the result is not valid.
    """
    document = read_document("preset", name_or_path, folder)
    tree = _tree(name_or_path, folder, seen=())
    config = parse_config(merge(tree, nest(overrides or {})))
    return Preset(
        name=document_name(name_or_path),
        sentence=str(document.get("about", "")),
        extends=document.get("extends"),
        config=config,
    )


def _tree(name: str, folder: Path, seen: tuple[str, ...]) -> dict[str, Any]:
    if name in seen:
        raise ConfigError([FieldProblem("extends", f"extends={name} runs in a circle: {' → '.join((*seen, name))}")])
    document = read_document("preset", name, folder)
    own = nest({key: value for key, value in document.items() if key not in ("extends", "about")})
    parent = document.get("extends")
    return merge(_tree(str(parent), folder, (*seen, name)), own) if parent else own
