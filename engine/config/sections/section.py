"""What a section and a field of it are."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def about(default: Any, sentence: str, *, unit: str = "", words: tuple[str, ...] = (), **rules: Any) -> Any:
    """Declare a field.

    `words` are the names that other programs use for it; they are accepted wherever a config is read.
    """
    return Field(default, description=sentence, json_schema_extra={"unit": unit, "words": list(words)}, **rules)


class Section(BaseModel):
    """Base of every section: frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)
