import multiprocessing
import os
import re
from collections.abc import Iterable, Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from engine.config import RunConfig
from engine.errors import StoreError
from engine.store import queue, reads, schema, writes
from engine.store.database import Database, open_database
from engine.store.migrate import FOLDER
from engine.store.migrations import HEAD
from engine.types import StepRecord
from tests.store.first_schema import fill_first_schema

FORK = multiprocessing.get_context("fork")


def set_revision(db: Database, revision: str) -> None:
    with db.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def parts_by_table(rows: Iterable[Any]) -> dict[str, list[str]]:
    """The columns and constraints of each statement, sorted: their order has no meaning."""
    return {name: sorted(part.strip() for part in re.split(r",(?![^(]*\))", _opened(sql))) for name, sql in rows}


def _opened(sql: str) -> str:
    """The statement with its outer parentheses as commas, so that what they hold splits at commas of its own."""
    before, _, rest = sql.partition("(")
    within, _, after = rest.rpartition(")")
    return f"{before},{within},{after}"


def move_to(db: Database, revision: str, *, down: bool = False) -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    with db.write() as connection:
        config.attributes["connection"] = connection
        (command.downgrade if down else command.upgrade)(config, revision)


@pytest.fixture
def old_db(url: str) -> Iterator[Database]:
    """A store as the first released version made it, with a run in it."""
    database = open_database(url, migrate=False)
    move_to(database, "0001")
    fill_first_schema(database)
    yield database
    database.close()


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
        assert parts_by_table(migrated.execute(query)) == parts_by_table(declared.execute(query))
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


def test_the_migrations_can_be_undone(tmp_path: Path):
    db = open_database(f"sqlite:///{tmp_path / 'runs.db'}")
    move_to(db, "base", down=True)
    with db.read() as connection:
        tables = set(connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars())
    assert tables == {"alembic_version", "sqlite_sequence"}
    db.close()


def test_a_store_of_the_first_schema_is_migrated_with_all_it_holds(old_db: Database):
    open_database(old_db.url).close()
    (run,) = reads.list_runs(old_db)
    assert (run.run_id, run.status, run.step) == ("oldrun23", "succeeded", 2)
    assert list(reads.metrics(old_db, ["oldrun23"], ["reward"]).values) == [0.5, 0.75]
    assert [row.trained for row in reads.groups(old_db, "oldrun23", 1)] == [True, True]
    (first, second) = reads.groups(old_db, "oldrun23", 1)
    assert [(row.text, row.kl) for row in reads.completions(old_db, first.group_id)] == [("four", None), ("five", None)]
    assert [row.text for row in reads.completions(old_db, second.group_id)] == ["nine"]
    completion_id = reads.completions(old_db, first.group_id)[0].completion_id
    tokens = reads.token_data(old_db, completion_id)
    assert tokens is not None
    assert tokens.token_ids.tolist() == [7, 8]
    assert len(reads.update_metrics(old_db, "oldrun23", None)) == 0


def test_a_migrated_store_takes_what_the_new_schema_has(old_db: Database):
    open_database(old_db.url).close()
    writes.write_step(old_db, "oldrun23", StepRecord(3, {"reward": 1.0}, (), [{"loss": 0.1}, {"loss": 0.2}]))
    assert reads.update_metrics(old_db, "oldrun23", ["loss"]).values.tolist() == [0.1, 0.2]
    queue.enqueue(old_db, RunConfig(), name="new")
    assert [run.ordinal for run in reads.list_runs(old_db)] == [2, 1]


def test_a_run_of_the_first_version_may_go_on_writing_after_the_migration(old_db: Database):
    open_database(old_db.url).close()
    fill_first_schema(old_db, run_id="oldrun45", ordinal=2)
    assert [row.trained for row in reads.groups(old_db, "oldrun45", 1)] == [True, True]


def test_a_store_of_the_first_schema_is_not_read_before_it_is_migrated(old_db: Database):
    with pytest.raises(StoreError, match=r"schema=0001 .* is older than this program needs \(0003\); start the worker"):
        open_database(old_db.url, read_only=True)


def test_going_back_to_the_first_schema_loses_the_new_columns_alone(old_db: Database):
    open_database(old_db.url).close()
    move_to(old_db, "0001", down=True)
    with old_db.read() as connection:
        found = [
            connection.execute(text(f'SELECT count(*) FROM "{table}"')).scalar()
            for table in ("metric", "group", "completion", "completion_tokens")
        ]
    assert found == [2, 2, 3, 1]
