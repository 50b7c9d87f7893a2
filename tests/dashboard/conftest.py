from pathlib import Path

import pytest

from engine.store.database import Database, open_database


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """An empty store that the pages open as well."""
    monkeypatch.setenv("GRPO_LAB_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    return open_database()
