import multiprocessing
import os
from collections.abc import Iterable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from engine.errors import StoreError
from engine.store import reads, schema
from engine.store.database import Database, open_database
from engine.store.migrate import FOLDER
from engine.store.migrations import HEAD

FORK = multiprocessing.get_context("fork")


def set_revision(db: Database, revision: str) -> None:
    with db.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def lines_by_table(rows: Iterable[Any]) -> dict[str, list[str]]:
    """The lines of each statement, sorted: the order of constraints has no meaning."""
    return {name: sorted(line.strip().rstrip(",") for line in sql.splitlines()) for name, sql in rows}


def test_the_migrated_schema_is_the_declared_one(db: Database):
    with db.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []


def test_the_migrated_tables_are_word_for_word_those_that_the_schema_would_make(tmp_path: Path):
    db = open_database(f"sqlite:///{tmp_path / 'migrated.db'}")
    made = create_engine(f"sqlite:///{tmp_path / 'made.db'}")
    schema.metadata.create_all(made)
    query = text("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE '%alembic%' AND sql IS NOT NULL")
    with db.read() as migrated, made.connect() as declared:
        assert lines_by_table(migrated.execute(query)) == lines_by_table(declared.execute(query))
    made.dispose()
    db.close()


def test_the_head_known_without_alembic_is_the_newest_migration():
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_opening_again_changes_nothing(db: Database):
    open_database(db.url).close()
    assert reads.list_runs(db) == []


def test_a_newer_schema_is_refused_in_words(db: Database):
    set_revision(db, "0999")
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"schema=0999 .* is newer than this program knows .*update GRPO Lab"):
            open_database(db.url, read_only=read_only)


def test_a_reader_does_not_migrate_but_says_what_to_do(tmp_path: Path):
    (tmp_path / "runs.db").touch()
    with pytest.raises(StoreError, match=r"schema=none .* is older .* start the worker"):
        open_database(f"sqlite:///{tmp_path / 'runs.db'}", read_only=True)


def open_from_elsewhere(url: str, folder: Path, together: Barrier) -> None:
    os.chdir(folder)
    together.wait(timeout=30)
    open_database(url).close()


def test_four_processes_that_open_a_new_store_at_once_all_succeed(url: str, tmp_path: Path):
    together = FORK.Barrier(4)
    processes = [FORK.Process(target=open_from_elsewhere, args=(url, tmp_path, together)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    db = open_database(url, read_only=True)
    assert reads.list_runs(db) == []
    db.close()


def test_the_first_migration_can_be_undone(tmp_path: Path):
    from alembic import command

    db = open_database(f"sqlite:///{tmp_path / 'runs.db'}")
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    with db.write() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    with db.read() as connection:
        tables = set(connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars())
    assert tables == {"alembic_version", "sqlite_sequence"}
    db.close()
