"""The few statements that every table needs alike."""

from collections.abc import Collection
from dataclasses import fields
from typing import Any

from sqlalchemy import Column, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def columns_of(record: type, *tables: Table) -> list[Column[Any]]:
    """Return the columns that fill `record`, in the order of its fields; the first table that has one gives it."""
    return [next(table.c[field.name] for table in tables if field.name in table.c) for field in fields(record)]


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that knows ON CONFLICT, which both databases write alike and SQLAlchemy keeps apart."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def upsert(connection: Connection, table: Table, keep: Collection[str] = ()) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that overwrites the row of the same primary key, but for the columns in `keep`."""
    keys = [column.name for column in table.primary_key]
    statement = insert_into(connection, table)
    rest = {column.name: statement.excluded[column.name] for column in table.c if column.name not in {*keys, *keep}}
    return statement.on_conflict_do_update(index_elements=keys, set_=rest)
