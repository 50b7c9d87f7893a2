import os
from types import SimpleNamespace

import pytest

from benchmarks.filled_store import Size
from benchmarks.pages import ADDRESS, check_page, measure


def test_every_part_of_every_page_is_measured(monkeypatch):
    monkeypatch.setenv(ADDRESS, "sqlite:////nowhere/runs.db")
    found = {entry.name: entry for entry in measure(Size(2, 5, 3, 2), repetitions=1)}
    assert {name.partition(":")[0] for name in found} == {
        "pages/compare 2x5x8",
        "pages/run 5 steps",
        "pages/groups 3x2",
    }
    parts = {"read", "frame", "figures", "opened", "refreshed"}
    assert {name.partition(": ")[2] for name in found} == parts | {"opened, by the wall", "refreshed, by the wall"}
    assert all(entry.ours > 0 and entry.other > 0 for entry in found.values())
    assert os.environ[ADDRESS] == "sqlite:////nowhere/runs.db"


def test_a_page_that_shows_an_error_or_too_little_is_refused():
    def page(*errors: str) -> SimpleNamespace:
        return SimpleNamespace(exception=[SimpleNamespace(value=each) for each in errors], get=lambda name: [])

    check_page(page(), "run", 0)
    with pytest.raises(RuntimeError, match="the page run shows an error: no such column"):
        check_page(page("no such column"), "run", 0)
    with pytest.raises(RuntimeError, match="the page run shows 0 figures, not 9"):
        check_page(page(), "run", 9)
