"""Data files: JSON, JSON Lines, CSV and Parquet, as rows of columns."""

import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.errors import TaskError


def read_files(files: Iterable[Path]) -> list[Mapping[str, Any]]:
    """The rows of files that belong together, in their order. Values come as the file has them; a CSV's are all text.

    Raises TaskError for a file that is of another kind, is broken, or has no rows.
    """
    rows: list[Mapping[str, Any]] = []
    for file in files:
        if file.suffix not in _READERS:
            raise TaskError(f"task.path: {file} is not a data file; give one of {', '.join(FORMATS)}.")
        try:
            found = _READERS[file.suffix](file)
        except (ValueError, OSError, csv.Error) as error:
            raise _unreadable(file, str(error)) from error
        if not all(isinstance(row, dict) for row in found):
            raise _unreadable(file, "it holds something else than rows of columns")
        if not found:
            raise _unreadable(file, "it has no rows")
        rows += found
    return rows


def _unreadable(file: Path, reason: str) -> TaskError:
    return TaskError(
        f"task.path: {file} cannot be read as {file.suffix}: {reason}; JSON is a list of objects or an object a line, "
        "a .csv has a line of column names; correct the file."
    )


# JSON and CSV are read by the standard library: `datasets` guesses types, and makes a date of "2020-01-01", a float of
# a long integer, and 0.5619700000000001 of 0.56197 where texts stand in the same column.
def _json(file: Path) -> list[Any]:
    text = file.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("["):
        listed: list[Any] = json.loads(text)
        return listed
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _csv(file: Path) -> list[Any]:
    with file.open(newline="", encoding="utf-8-sig") as opened:
        return list(csv.DictReader(opened, strict=True))


def _parquet(file: Path) -> list[Any]:
    from datasets import disable_progress_bars, load_dataset
    from datasets.exceptions import DatasetGenerationError

    disable_progress_bars()
    with tempfile.TemporaryDirectory(prefix="grpo-lab-") as cache:
        try:
            loaded = load_dataset("parquet", data_files=str(file), cache_dir=cache, keep_in_memory=True, split="train")
        except DatasetGenerationError as error:
            raise ValueError(str(error.__cause__ or error)) from error
    return list(loaded)


_READERS: Mapping[str, Callable[[Path], list[Any]]] = {
    ".jsonl": _json,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}
FORMATS = tuple(_READERS)
