import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from engine.config import RunConfig
from engine.store import queue
from engine.store.database import Database, open_database

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


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    database = open_database(url)
    yield database
    database.close()


@pytest.fixture
def run_id(db: Database) -> str:
    return queue.enqueue(db, RunConfig(), name="first")
