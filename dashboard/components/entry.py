"""What a person types for a field: from a value to its text and back."""

from decimal import Decimal
from typing import Any

from engine.config import Field
from engine.errors import FieldProblem

Entry = str | bool | list[Any] | None


def entry_of(field: Field, value: Any) -> Entry:
    """Return what the form shows for a value; `read_entry` reads it back to an equal value."""
    if field.kind in ("int", "float"):
        return "" if value is None else number_text(value)
    if field.kind == "choices":
        return list(value)
    return "" if value is None and field.kind == "text" else value


def read_entry(field: Field, entry: Entry) -> Any:
    """Return the value that was typed, not yet checked against the field's range; or a FieldProblem."""
    if field.kind not in ("int", "float"):
        return None if field.optional and entry == "" else entry
    text = str(entry if entry is not None else "").strip().replace("_", "").replace(" ", "")
    if not text:
        return None if field.optional else _problem(field, "(empty)", "is needed")
    try:
        number = float(text)
    except ValueError:
        return _problem(field, str(entry), "is not a number")
    if field.kind == "float":
        return number
    if not number.is_integer():
        return _problem(field, str(entry), "is not a whole number")
    return int(text) if text.lstrip("+-").isdigit() else int(number)


def number_text(value: float) -> str:
    """Return a number as a person writes it, such as `128`, `0.2` or `3e-4`; it reads back to an equal number."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{Decimal(repr(value)):e}".lower() if 0 < abs(value) < 1e-3 else repr(value)


def _problem(field: Field, shown: str, rule: str) -> FieldProblem:
    example = number_text(field.default) if field.default is not None else "2"
    ranges = f" ({field.range_text})" if field.range_text else ""
    return FieldProblem(field.path, f"{field.path}={shown} {rule}; write it as {example}{ranges}")
