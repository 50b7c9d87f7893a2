"""Where things lie: folders that belong to a store, and this copy of the program."""

import os
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import make_url

import engine


def folder_beside(name: str, database_url: str, *, chosen: str | None = None) -> Path:
    """Return the folder `chosen`, else `name` beside a database file, else `name` in the current folder."""
    if chosen:
        return Path(chosen).absolute()
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
        return Path(url.database).absolute().parent / name
    return Path(name).absolute()


def python_path(inherited: Mapping[str, str] = os.environ) -> str:
    """Return the PYTHONPATH of a child process: this copy of the program first, then what is inherited."""
    root = str(Path(engine.__file__).parents[1])
    return os.pathsep.join(part for part in (root, inherited.get("PYTHONPATH")) if part)
