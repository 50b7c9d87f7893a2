"""The tasks whose problems are read from data: GSM8K, MATH, FinQA, and data of one's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from engine.config.sections import TaskConfig
from engine.errors import TaskError
from engine.tasks.finqa import with_context
from engine.tasks.listed import Entry, ListedTask, listed_task
from engine.tasks.rows import Row, by_column, cell, load_rows


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a task's data has what a problem is made of; of several columns the first that a row has is read."""

    question: tuple[str, ...]
    answer: tuple[str, ...]
    entry_id: tuple[str, ...] = ()
    hub: str | None = None


# MATH's short `answer` is taken where the data has it, else the solution with its box: reading the answer out of a
# gold text is the reward's business.
COLUMNS: Mapping[str, Columns] = {
    "gsm8k": Columns(("question",), ("answer",), hub="openai/gsm8k:main"),
    "math": Columns(("problem",), ("answer", "solution"), ("unique_id",), hub="DigitalLearningGmbH/MATH-lighteval"),
    "finqa": Columns(("qa.question",), ("qa.exe_ans",), ("id",)),
    "jsonl": Columns(("question",), ("answer",)),
}


def dataset_task(config: TaskConfig) -> ListedTask:
    """The task `config.name` over the data at `config.path`, or its own on the hub.

    Raises TaskError where the data is not there, lacks a column, or holds something that is no text and no number.
    """
    columns = COLUMNS[config.name]
    path = config.path or columns.hub
    if path is None:
        raise TaskError(f"task.path: empty, and {config.name} has no dataset of its own; give a file or a folder.")
    rows = load_rows(path)
    if config.split_column is not None:
        rows = by_column(rows, config.split_column)
    entries = {split: [_entry(config, columns, row) for row in members] for split, members in rows.items()}
    return listed_task(config, entries, source=f"{config.name} ({path})")


def as_text(value: Any, *, field: str) -> str:
    """A cell as text: a text as it stands, a whole number without a point, a gap as an empty text.

    Raises TaskError naming the config's `field` for anything else, such as a list.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value - value == 0:
        return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
    raise TaskError(
        f"task.{field}: the column holds {value!r}, which is neither text nor number; name another column, or "
        "write it as a text."
    )


def _entry(config: TaskConfig, columns: Columns, row: Row) -> Entry:
    question = _text(row, config.question_column, columns.question, field="question_column")
    gold = _text(row, config.answer_column, columns.answer, field="answer_column")
    has_id = config.id_column is not None or any(name in row for name in columns.entry_id)
    entry_id = _text(row, config.id_column, columns.entry_id, field="id_column") if has_id else None
    if config.name != "finqa":
        return Entry(question, gold, entry_id or None)
    put = with_context(question, row, config.context, k=config.context_rows)
    return Entry(put, gold, entry_id or None, about=str(row.get("filename", "")))


def _text(row: Row, chosen: str | None, usual: tuple[str, ...], *, field: str) -> str:
    column = chosen or next((name for name in usual if name in row), usual[0])
    return as_text(cell(row, column, field=field), field=field)
