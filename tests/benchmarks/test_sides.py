import json
import os
import sys

import pytest

from benchmarks import sides
from benchmarks.sides import Side, alternate, run_side


@pytest.fixture
def modules(monkeypatch, tmp_path):
    monkeypatch.setattr(sides, "ROOT", tmp_path)
    return tmp_path


def test_a_side_that_fails_says_why(modules):
    (modules / "broken.py").write_text("raise SystemExit('no such model')")
    with pytest.raises(RuntimeError, match="broken ended with status 1: no such model"):
        run_side(sys.executable, "broken", {"threads": 1})


def test_what_a_side_prints_besides_is_passed_over(modules):
    (modules / "noisy.py").write_text(
        "import json, sys\n"
        "job = json.load(sys.stdin)\n"
        "print('a warning')\n"
        "print('measured: ' + json.dumps([{'cpu_s': job['threads']}]))\n"
        "print('bye')\n"
    )
    assert run_side(sys.executable, "noisy", json.loads('{"threads": 1}')) == [{"cpu_s": 1}]


def test_another_environment_is_not_given_the_packages_of_this_one(modules, monkeypatch):
    (modules / "path.py").write_text(
        "import json, os\nprint('measured: ' + json.dumps([{'path': os.environ['PYTHONPATH']}]))\n"
    )
    monkeypatch.setenv("PYTHONPATH", "/extras")
    (modules / "python").symlink_to(sys.executable)
    assert run_side(sys.executable, "path", {"threads": 1}) == [{"path": f"{modules}{os.pathsep}/extras"}]
    assert run_side(str(modules / "python"), "path", {"threads": 1}) == [{"path": str(modules)}]


def test_sides_follow_one_another_in_each_round(monkeypatch, capsys):
    order = []

    def run(python: str, module: str, job: dict) -> list[dict[str, float]]:
        order.append(module)
        return [{"cpu_s": float(len(order))}]

    monkeypatch.setattr(sides, "run_side", run)
    measured = alternate({"one": Side("p", "a", {}), "two": Side("p", "b", {})}, 2)
    assert order == ["a", "b", "a", "b"]
    assert measured == {"one": [[{"cpu_s": 1.0}], [{"cpu_s": 3.0}]], "two": [[{"cpu_s": 2.0}], [{"cpu_s": 4.0}]]}
    assert "two, 2 of 2: 4 CPU s/step" in capsys.readouterr().err
