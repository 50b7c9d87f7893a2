"""The head of a data file: its first rows and their columns, without reading the rest, however long it is."""

import csv
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from engine.errors import TaskError
from engine.tasks.files import FORMATS
from engine.tasks.rows import Row, cell, columns_of, local_files

ROWS = 20
MOST_BYTES = 4 * 2**20  # of a file in JSON; rows that do not end within them are not seen
LONGEST_VALUE = 200
_BETWEEN = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class DataHead:
    """The columns of the first rows, those of a nested one as `a.b`, each with its first value as text."""

    file: Path
    columns: Mapping[str, str]


def data_head(path: str) -> DataHead | None:
    """Return the head of the first file that `task.path` stands for; None where it can only be a hub dataset.

    Raises:
        TaskError: if nothing is there, or its first rows cannot be read.
    """
    files = local_files(path)
    if files is None:
        return None
    file = next(iter(files.values()))[0]
    if file.suffix not in _HEADS:
        raise TaskError(f"task.path: {file} is not a data file; give one of {', '.join(FORMATS)}.")
    try:
        rows = _HEADS[file.suffix](file)
    except (ValueError, OSError, RecursionError, csv.Error) as error:
        raise TaskError(f"task.path: {file} cannot be read as {file.suffix}: {error}; correct the file.") from error
    rows = [row for row in rows if isinstance(row, dict)]
    if not rows:
        raise TaskError(f"task.path: {file} has no rows of columns; JSON is a list of objects or an object a line.")
    columns: dict[str, str] = {}
    for row in rows:
        # Cells beyond a CSV's line of names have none.
        for column in filter(None, columns_of(row)):
            columns.setdefault(column, _shown(cell(row, column, field="path")))
    return DataHead(file, columns)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _json(file: Path) -> list[Any]:
    """The first rows of a list of objects, or of an object a line."""
    with file.open("rb") as opened:
        raw = opened.read(MOST_BYTES + 1)
    # A cut may fall inside a character.
    text = raw[:MOST_BYTES].decode("utf-8-sig", errors="ignore" if len(raw) > MOST_BYTES else "strict")
    whole = len(raw) <= MOST_BYTES
    if text.lstrip().startswith("["):
        return _listed(text, whole=whole)
    lines = text.split("\n") if whole else text.split("\n")[:-1]
    return [json.loads(line) for line in islice((line for line in lines if line.strip()), ROWS)]


def _listed(text: str, *, whole: bool) -> list[Any]:
    decoder = json.JSONDecoder()
    rows: list[Any] = []
    place = text.index("[") + 1
    while len(rows) < ROWS:
        place = _between(text, place)
        if place >= len(text) or text[place] == "]":
            break
        try:
            row, place = decoder.raw_decode(text, place)
        except ValueError:
            if whole:
                raise
            break
        rows.append(row)
    return rows


def _between(text: str, place: int) -> int:
    """Where the next object begins, behind a comma and white space."""
    found = _BETWEEN.match(text, place)
    return found.end() if found else place


def _csv(file: Path) -> list[Any]:
    with file.open(newline="", encoding="utf-8-sig") as opened:
        return list(islice(csv.DictReader(opened, strict=True), ROWS))


def _parquet(file: Path) -> list[Any]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(file) as opened:  # ArrowInvalid is a ValueError
        batch = next(opened.iter_batches(batch_size=ROWS), None)
    return [] if batch is None else list(batch.to_pylist())


_HEADS: Mapping[str, Callable[[Path], list[Row]]] = {
    ".jsonl": _json,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}
