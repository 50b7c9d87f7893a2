"""Column types that mean the same on SQLite and on PostgreSQL."""

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator

# SQLite gives out ids by itself only for a column declared exactly INTEGER PRIMARY KEY.
BIG_ID = BigInteger().with_variant(Integer(), "sqlite")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime in UTC. SQLite keeps no zone, so a naive value could not be told from a local one."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return `value` in UTC.

        Raises:
            ValueError: if `value` has no zone.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time={value.isoformat()} has no zone; pass an aware datetime such as datetime.now(UTC)")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return the stored time as an aware datetime in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class JsonText(TypeDecorator[Any]):
    """A JSON tree kept as text: PostgreSQL's own JSON type refuses NaN, which a reward part may be."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return `value` as JSON text."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """Return the tree."""
        return None if value is None else json.loads(value)
