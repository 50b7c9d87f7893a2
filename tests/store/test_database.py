from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from engine.config import RunConfig
from engine.errors import StoreError
from engine.store import queue, reads
from engine.store.database import Database, default_url, file_url, open_database

INSERT_WORKER = text("INSERT INTO worker VALUES ('w', 'h', 1, '2026-01-01 00:00:00', '2026-01-01 00:00:00')")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.db'}"


def pragma(db: Database, name: str) -> object:
    with db.read() as connection:
        return connection.execute(text(f"PRAGMA {name}")).scalar()


def test_the_default_is_runs_db_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GRPO_LAB_DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    assert default_url() == f"sqlite:///{tmp_path}/runs.db"


def test_the_environment_names_another_store(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRPO_LAB_DATABASE_URL", "postgresql://somewhere/lab")
    assert default_url() == "postgresql://somewhere/lab"


def test_every_connection_has_the_pragmas(url: str):
    db = open_database(url)
    with db.read(), db.read():  # so that the next ones are third and new
        assert pragma(db, "journal_mode") == "wal"
        assert pragma(db, "foreign_keys") == 1
        assert pragma(db, "busy_timeout") == 30_000
        assert pragma(db, "synchronous") == 1
    db.close()


def test_a_folder_with_signs_that_mean_something_in_urls_works(tmp_path: Path):
    folder = tmp_path / "50%20 of #1?"
    folder.mkdir()
    db = open_database(file_url(folder / "runs.db"))
    assert (folder / "runs.db").exists()
    assert reads.list_runs(db) == []
    db.close()


def test_a_relative_file_stays_the_same_file_when_the_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    db = open_database("sqlite:///runs.db")
    queue.enqueue(db, RunConfig(), name="first")
    db.close()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(reads.list_runs(db)) == 1
    db.close()


def test_a_write_that_fails_half_way_leaves_nothing(url: str):
    db = open_database(url)

    def insert_and_fail() -> None:
        with db.write() as connection:
            connection.execute(INSERT_WORKER)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        insert_and_fail()
    assert queue.workers(db) == []
    db.close()


def test_a_read_only_store_refuses_writes(url: str):
    db = open_database(url)
    run_id = queue.enqueue(db, RunConfig(), name="first")
    reader = open_database(url, read_only=True)
    assert reads.list_runs(reader)[0].run_id == run_id
    with pytest.raises(OperationalError, match="readonly"):
        queue.enqueue(reader, RunConfig(), name="second")
    reader.close()
    db.close()


def test_a_reader_is_not_held_up_by_an_open_write(url: str):
    db = open_database(url)
    reader = open_database(url, busy_seconds=0.1)
    with db.write() as connection:
        connection.execute(INSERT_WORKER)
        assert queue.workers(reader) == []
    assert len(queue.workers(reader)) == 1
    reader.close()
    db.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("not a url", "is not a URL"),
        ("sqlite://", "has no file"),
        ("sqlite:///:memory:", "has no file"),
        ("sqlite:////no/such/folder/runs.db", "folder /no/such/folder does not exist"),
        ("mysql://host/lab", "names mysql; use sqlite or postgresql"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_in_words(url: str, words: str):
    with pytest.raises(StoreError, match=words):
        open_database(url)


def test_reading_a_store_that_is_not_there_does_not_make_it(tmp_path: Path):
    with pytest.raises(StoreError, match="does not exist; start the worker"):
        open_database(f"sqlite:///{tmp_path / 'runs.db'}", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused_in_words(tmp_path: Path):
    (tmp_path / "runs.db").write_text("this is a letter to grandmother, not a database " * 50)
    with pytest.raises(StoreError, match="file is not a database"):
        open_database(f"sqlite:///{tmp_path / 'runs.db'}")


def test_a_password_is_not_shown_in_an_error():
    with pytest.raises(StoreError) as caught:
        open_database("mysql://user:secret@host/lab")
    assert "secret" not in str(caught.value)
