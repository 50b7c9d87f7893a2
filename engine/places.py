"""Where folders lie that belong to a store: beside its file."""

from pathlib import Path

from sqlalchemy.engine import make_url


def folder_beside(name: str, database_url: str, *, chosen: str | None = None) -> Path:
    """Return the folder `chosen`, else `name` beside a database file, else `name` in the current folder."""
    if chosen:
        return Path(chosen).absolute()
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
        return Path(url.database).absolute().parent / name
    return Path(name).absolute()
