"""Opening a page over an empty or a filled store, and reading what it drew."""

import atexit
import base64
import json
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sqlalchemy import make_url
from streamlit.testing.v1 import AppTest

from engine.store.database import Database, open_database
from tests.store.filled import fill_demo_store

APP = str(Path(__file__).parents[2] / "dashboard" / "app.py")


_FOLDER = TemporaryDirectory()
atexit.register(_FOLDER.cleanup)


def filled(db: Database) -> list[str]:
    """Fill an SQLite store with the demo runs, by copying them, and return the ids of the runs."""
    run_ids, demo = _demo()
    path = make_url(db.url).database
    assert path is not None
    with closing(sqlite3.connect(demo)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    return run_ids


@cache
def _demo() -> tuple[list[str], Path]:
    path = Path(_FOLDER.name) / "runs.db"
    db = open_database(f"sqlite:///{path}")
    run_ids = fill_demo_store(db)
    db.close()
    return run_ids, path


def open_page(name: str, **address: str) -> AppTest:
    """Run a page at an address and return what it shows; an exception on it fails the test."""
    at = AppTest.from_file(APP, default_timeout=60)
    at.switch_page(f"views/{name}.py")
    for key, value in address.items():
        at.query_params[key] = value
    at.run()
    assert not at.exception
    return at


def figures(at: AppTest) -> list[dict[str, Any]]:
    """Return the figures on a page, as plotly gets them."""
    protos = [element.proto for element in at.get("bidi_component")]
    return [json.loads(json.loads(proto.json)["figure"]) for proto in protos if proto.json]


def numbers(column: Any) -> list[float]:
    """Return a column of a figure as plotly gets it: numbers, or their bytes."""
    if isinstance(column, dict):
        return np.frombuffer(base64.b64decode(column["bdata"]), column["dtype"]).tolist()
    return list(column)
