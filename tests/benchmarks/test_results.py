import pytest

from benchmarks import results
from benchmarks.entry import Entry, LeftOut, from_document


def entry(name: str, ours: float = 1.0, **more: str) -> Entry:
    return Entry(name, ours, 2.0, "peer", "s", 3, machine="one core", versions={"python": "3"}, **more)


def test_an_outcome_comes_back_from_its_document():
    for outcome in (entry("a/b"), LeftOut("a/c", "no peer"), LeftOut("a/d", "it broke", failed=True)):
        assert from_document(outcome.document()) == outcome
    assert entry("a/b").document()["ratio"] == 0.5


def test_nothing_is_divided_by_a_peer_that_has_nothing():
    nothing = Entry("a/reward", 0.5, 0.0, "peer", "mean", 1)
    assert nothing.document()["ratio"] is None
    assert "ratio –" in nothing.words()


def test_what_is_not_measured_again_stays_with_its_commit_and_day(tmp_path):
    path = tmp_path / "results.json"
    assert results.read(path) == []
    before = results.renewed([], "a", [entry("a/x", commit="c1", date="2026-01-01"), entry("a/gone")])
    before = results.renewed(before, "b", [entry("b/x", commit="c1", date="2026-01-01")])
    after = results.renewed(before, "a", [entry("a/x", 5.0, commit="c2", date="2026-02-02"), LeftOut("a/y", "no peer")])
    results.write(after, path)
    found = {document["name"]: document for document in results.read(path)}
    assert set(found) == {"b/x", "a/x", "a/y"}
    assert (found["b/x"]["commit"], found["b/x"]["date"]) == ("c1", "2026-01-01")
    assert (found["a/x"]["commit"], found["a/x"]["ours"]) == ("c2", 5.0)
    assert found["a/y"]["reason"] == "no peer"


def test_a_benchmark_that_measured_nothing_leaves_its_results_as_they_were():
    before = results.renewed([], "a", [entry("a/x")])
    assert results.renewed(before, "a", [LeftOut("a", "it broke", failed=True)]) == before


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "results.json"
    path.write_text('[{"name": "a/x"}]')
    with pytest.raises(ValueError, match="delete it and measure again"):
        results.read(path)
