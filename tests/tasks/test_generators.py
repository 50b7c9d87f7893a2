import json
import sys

import pytest

from engine.tasks import generators
from engine.tasks.reasoning_gym import generator_names


def test_the_names_of_the_generators_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("reasoning_gym")
    assert generators.main() == 0
    names = json.loads(capsys.readouterr().out)
    assert tuple(names) == generator_names()
    assert {"chain_sum", "gcd"} <= set(names)
    assert names == sorted(names)


def test_without_the_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    assert generators.main() == 2
    assert "pip install" in capsys.readouterr().err
