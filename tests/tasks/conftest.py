import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

SHARED_DATA = "GRPO_LAB_SHARED_DATA"


@pytest.fixture
def write_jsonl(tmp_path) -> Callable[[str, Iterable[Mapping[str, Any]]], Path]:
    """Writes rows to a file under the test's own folder."""

    def write(name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def shared_data() -> Path:
    """The folder with the published data sets; a test that needs it is skipped without it."""
    folder = os.environ.get(SHARED_DATA)
    if not folder:
        pytest.skip(f"{SHARED_DATA} does not name a folder with GSM8K, MATH and FinQA")
    return Path(folder)
