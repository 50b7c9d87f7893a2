from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.config import parse_config
from engine.store import queue
from engine.store.database import Database, open_database
from tests.jobs.fakes import Enqueue


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.delenv("GRPO_LAB_RUNS_DIR", raising=False)
    database = open_database(f"sqlite:///{tmp_path / 'runs.db'}")
    yield database
    database.close()


@pytest.fixture
def enqueue(db: Database) -> Enqueue:
    def put(name: str = "a run", parent: tuple[str, int] | None = None, **fields: object) -> str:
        return queue.enqueue(db, parse_config(fields), name=name, parent=parent)

    return put
