import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from engine.cli import app
from engine.store.database import Database, open_database

Invoke = Callable[..., Result]


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    monkeypatch.setenv("GRPO_LAB_DATABASE_URL", url)
    monkeypatch.delenv("GRPO_LAB_RUNS_DIR", raising=False)
    database = open_database(url)
    yield database
    database.close()


@pytest.fixture
def invoke(db: Database) -> Invoke:
    def call(*arguments: str, exit_code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == exit_code, (result.stdout, result.stderr, result.exception)
        return result

    return call


@pytest.fixture
def ask(invoke: Invoke) -> Callable[..., Any]:
    """Run a command with --json and return its one document."""

    def call(*arguments: str, exit_code: int = 0) -> Any:
        return json.loads(invoke(*arguments, "--json", exit_code=exit_code).stdout)

    return call
