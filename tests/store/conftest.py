import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from engine.config import RunConfig
from engine.store import queue
from engine.store.database import Database, file_url, open_database

POSTGRES_URL = os.environ.get("GRPO_LAB_TEST_POSTGRES_URL")


@pytest.fixture(params=["sqlite", "postgresql"] if POSTGRES_URL else ["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a store; PostgreSQL as well where GRPO_LAB_TEST_POSTGRES_URL names a database to empty."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.db'}"
    assert POSTGRES_URL is not None
    engine = create_engine(POSTGRES_URL)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return POSTGRES_URL


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty SQLite store to copy: migrating takes most of a short test's time."""
    path = tmp_path_factory.mktemp("store") / "runs.db"
    open_database(file_url(path)).close()
    return path


@pytest.fixture
def db(url: str, migrated_file: Path) -> Iterator[Database]:
    place = make_url(url)
    if place.get_backend_name() == "sqlite":
        shutil.copy(migrated_file, str(place.database))
    database = open_database(url)
    yield database
    database.close()


@pytest.fixture
def run_id(db: Database) -> str:
    return queue.enqueue(db, RunConfig(), name="first")
