"""The fields of a RunConfig as data: what the form draws and the docs list."""

import types
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from engine.config.run_config import RunConfig
from engine.config.sections import Section

FieldKind = Literal["int", "float", "bool", "text", "choice", "choices"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: where it is, what it may be, what it means. Bounds are None where there is none."""

    path: str
    section: str
    key: str
    kind: FieldKind
    optional: bool
    default: Any
    choices: tuple[Any, ...]
    minimum: float | None
    maximum: float | None
    excludes_minimum: bool
    excludes_maximum: bool
    unit: str
    sentence: str
    words: tuple[str, ...]

    @property
    def range_text(self) -> str:
        """The allowed values in words, such as `1 to 64 epochs` or `one of mean, token`."""
        if self.choices:
            return ("any of " if self.kind == "choices" else "one of ") + ", ".join(map(str, self.choices))
        if self.minimum is None or self.maximum is None:
            return ""
        low = f"above {self.minimum:g}" if self.excludes_minimum else f"{_plain(self.minimum)}"
        high = f"below {self.maximum:g}" if self.excludes_maximum else f"{_plain(self.maximum)}"
        text = f"{low} to {high}{f' {self.unit}' if self.unit else ''}"
        return f"{text}, or empty" if self.optional else text


@cache
def fields() -> tuple[Field, ...]:
    """Return every field in the tree's order."""
    found = []
    for name, info in RunConfig.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, Section):
            found += [_field(name, key, inner) for key, inner in section.model_fields.items()]
        else:
            found.append(_field("", name, info))
    return tuple(found)


def _field(section: str, key: str, info: FieldInfo) -> Field:
    annotation, optional = _without_none(info.annotation)
    kind, choices = _kind(annotation)
    extra = info.json_schema_extra
    assert isinstance(extra, dict)
    bounds = {type(rule): rule for rule in info.metadata}
    lower, upper = bounds.get(Ge), bounds.get(Le)
    above, below = bounds.get(Gt), bounds.get(Lt)
    return Field(
        path=f"{section}.{key}" if section else key,
        section=section,
        key=key,
        kind=kind,
        optional=optional,
        default=info.default,
        choices=choices,
        minimum=lower.ge if lower else above.gt if above else None,
        maximum=upper.le if upper else below.lt if below else None,
        excludes_minimum=above is not None,
        excludes_maximum=below is not None,
        unit=str(extra["unit"]),
        sentence=info.description or "",
        words=tuple(str(word) for word in extra["words"]),  # type: ignore[union-attr]
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) in (Union, types.UnionType):
        kept = [part for part in get_args(annotation) if part is not type(None)]
        return kept[0], True
    return annotation, False


def _kind(annotation: Any) -> tuple[FieldKind, tuple[Any, ...]]:
    if get_origin(annotation) is Literal:
        return "choice", get_args(annotation)
    if get_origin(annotation) is tuple:
        return "choices", get_args(get_args(annotation)[0])
    kinds: dict[Any, FieldKind] = {bool: "bool", int: "int", float: "float", str: "text"}
    return kinds[annotation], ()


def _plain(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ") if float(number).is_integer() and number < 1e10 else f"{number:g}"
