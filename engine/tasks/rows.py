"""Rows of a data file, of a folder of them, or of a dataset of the hub, by split."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.errors import TaskError
from engine.tasks.files import FORMATS, read_files
from engine.tasks.hub import hub_rows
from engine.types import Split

Row = Mapping[str, Any]

_SPLIT_WORDS: Mapping[str, Split] = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
_HUB_NAME = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(:(?P<subset>[\w.-]+))?")


def load_rows(path: str) -> dict[Split, list[Row]]:
    """The rows of `path`: a local file or folder if there is one of that name, else a dataset of the hub.

    A file is training data. A folder gives the splits that its files' names say: `train.jsonl`, `dev_200.json`,
    `test-00000-of-00002.parquet`; files that name no split are not read. Numbers and texts come as the file has them;
    a CSV's cells are all text.

    Raises TaskError where nothing is there, or it cannot be read.
    """
    files = local_files(path)
    if files is not None:
        return {split: read_files(members) for split, members in files.items()}
    match = _HUB_NAME.fullmatch(path)
    assert match is not None  # held by local_files
    named = {split_named(name): rows for name, rows in hub_rows(match["name"], match["subset"]).items()}
    return {split: rows for split, rows in named.items() if split is not None}


def local_files(path: str) -> dict[Split, list[Path]] | None:
    """The files that `path` stands for, by split; None where it can only be a dataset of the hub. None is opened.

    Raises TaskError where nothing is there and it is no name of a dataset, or a folder has no file of a split.
    """
    try:
        place = Path(path).expanduser()
        if place.is_file():
            return {"train": [place]}
        if place.is_dir():
            return split_files(place)
    except (OSError, RuntimeError) as error:  # no right to look there, a name too long, no such user behind ~
        raise TaskError(f"task.path: {path} cannot be looked at: {error}; give another file or folder.") from error
    if _HUB_NAME.fullmatch(path) is None or place.suffix in FORMATS:
        raise TaskError(
            f"task.path: there is no {path}; give a file ({', '.join(FORMATS)}), a folder of them, or a hub dataset as "
            "owner/name or owner/name:subset."
        )
    return None


def split_files(folder: Path) -> dict[Split, list[Path]]:
    """The data files of `folder` by the split that their names say.

    Raises TaskError where no name says one.
    """
    found: dict[Split, list[Path]] = {}
    files = sorted(file for file in folder.iterdir() if file.suffix in FORMATS and file.is_file())
    for file in files:
        split = split_named(file.stem)
        if split is not None:
            found.setdefault(split, []).append(file)
    if not found:
        seen = ", ".join(file.name for file in files[:5]) or "no data file"
        raise TaskError(
            f"task.path: no file in {folder} is named after a split (it has {seen}); name them train.jsonl, "
            "validation.jsonl, test.jsonl (or .json, .csv, .parquet), or give one file."
        )
    return found


def split_named(text: str) -> Split | None:
    """The split that a name says, such as `dev_200` or `test-00000-of-00002`; None where it says none."""
    words = re.split(r"[^a-z0-9]+", text.casefold())
    return next((_SPLIT_WORDS[word] for word in words if word in _SPLIT_WORDS), None)


def by_column(rows: Mapping[Split, list[Row]], column: str) -> dict[Split, list[Row]]:
    """All rows again, by the split that `column` says.

    Raises TaskError where a row says none.
    """
    found: dict[Split, list[Row]] = {}
    for row in (row for part in rows.values() for row in part):
        value = cell(row, column, field="split_column")
        split = split_named(str(value))
        if split is None:
            raise TaskError(
                f"task.split_column: {column} says {value!r} in a row; it must say train, validation or test; correct "
                "the data or leave split_column empty."
            )
        found.setdefault(split, []).append(row)
    return found


def cell(row: Row, column: str, *, field: str) -> Any:
    """The value in `column` of a row; `qa.question` is `question` in the nested `qa`.

    Raises TaskError naming the config's `field` where the row has no such column.
    """
    if column in row:
        return row[column]
    value: Any = row
    for part in column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise TaskError(
                f"task.{field}: {column} is not a column of the data, which has {', '.join(columns_of(row))}; name "
                "one of those."
            )
        value = value[part]
    return value


def columns_of(row: Row) -> Iterator[str]:
    """The columns of a row, those of a nested one after a dot."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in value)
        else:
            yield name
