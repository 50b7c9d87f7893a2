import importlib
import json

import pytest

import benchmarks.__main__ as command
from benchmarks.__main__ import NAMES, main, run_one
from benchmarks.entry import Entry, LeftOut, MissingPeerError, show

FAST = Entry("fast/all", 1.0, 2.0, "peer", "s", 1)


def test_every_benchmark_has_a_measure_that_takes_repetitions():
    for name in NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        assert "repetitions" in module.measure.__kwdefaults__
        assert module.__doc__


def test_a_gap_is_shown_and_only_a_failure_fails(monkeypatch, tmp_path, capsys):
    outcomes = {
        "benchmarks.rollout": [FAST, LeftOut("rollout/vllm", "vLLM is not installed")],
        "benchmarks.floor": [LeftOut("floor", "ended with status 1: it broke", failed=True)],
    }
    monkeypatch.setattr(command, "run_one", lambda module, options: outcomes[module])
    path = tmp_path / "results.json"
    assert main(["rollout"], path=path) == 0
    assert main(["rollout", "floor"], path=path) == 1
    shown = capsys.readouterr().out
    assert "rollout/vllm  left out: vLLM is not installed" in shown
    assert "floor         FAILED: ended with status 1: it broke" in shown
    assert [document["name"] for document in json.loads(path.read_text())] == ["fast/all", "rollout/vllm"]


def test_a_name_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["flor"])
    assert "flor: no such benchmark; choose from rollout" in capsys.readouterr().err


def test_a_benchmark_runs_in_a_process_of_its_own(monkeypatch, tmp_path):
    (tmp_path / "fast.py").write_text(
        "import sys\n"
        "from benchmarks.entry import Entry, run_alone, say\n"
        "def measure(*, repetitions):\n"
        "    say('half way')\n"
        "    return [Entry('fast/all', 1.0, 2.0, 'peer', 's', repetitions)]\n"
        "run_alone('fast', None, measure, 3)\n"
    )
    (tmp_path / "broken.py").write_text("raise ValueError('no such thing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (entry,) = run_one("fast", ["--repetitions", "2"])
    assert isinstance(entry, Entry)
    assert (entry.name, entry.n, entry.ratio) == ("fast/all", 2, 0.5)
    (gap,) = run_one("broken")
    assert (gap.name, gap.failed) == ("broken", True)
    assert gap.reason == "ended with status 1: ValueError: no such thing"


def test_a_peer_that_is_missing_is_no_failure(capsys):
    def measure() -> list[Entry]:
        raise MissingPeerError("TRL cannot be installed")

    show("step_time", measure, as_json=True)
    (document,) = json.loads(capsys.readouterr().out)
    assert (document["name"], document["reason"], document["failed"]) == ("step_time", "TRL cannot be installed", False)
