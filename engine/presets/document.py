"""A document: one YAML mapping on disk, such as a preset or a suite."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from engine.errors import ConfigError, FieldProblem


def document_names(folder: Path) -> tuple[str, ...]:
    """Return the names of all documents in a folder, `quick-start` first."""
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    return tuple(sorted(names, key=lambda name: name != "quick-start"))


def document_name(name_or_path: str) -> str:
    """Return the name of a document that was given by its name or its path. A name may have a dot: `1.5b`."""
    return Path(name_or_path).stem if _is_path(name_or_path) else name_or_path


def read_document(kind: str, name_or_path: str, folder: Path) -> dict[Any, Any]:
    """Read a document by its name in the folder, or any YAML file by path; `kind` is what errors call it.

    Raises:
        ConfigError: if there is no such file, or it is not a YAML mapping with each key once.
    """
    given = f"{kind}={name_or_path}"
    path = Path(name_or_path) if _is_path(name_or_path) else folder / f"{name_or_path}.yaml"
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        known = ", ".join(document_names(folder))
        message = f"{given} does not exist; use one of {known}, or the path of a .yaml file"
        raise ConfigError([FieldProblem(kind, message)]) from None
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise ConfigError([FieldProblem(kind, f"{given} is not readable as YAML: {error}")]) from None
    if not isinstance(document, dict):
        raise ConfigError([FieldProblem(kind, f"{given} must be a mapping of names to values")])
    return document


def _is_path(name_or_path: str) -> bool:
    return name_or_path.endswith((".yaml", ".yml"))


class _Loader(yaml.SafeLoader):
    """The safe loader, which keeps the last of two equal keys, made to refuse them."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise ConstructorError(None, None, f"{key.value} is there twice; keep one", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)
