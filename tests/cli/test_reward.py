"""`grpo-lab reward` on stored completions."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import Result

from engine.rewards import own, own_template
from engine.rewards.pool import GraderPool
from engine.rewards.verifiers import REWARDS
from engine.store import queue, writes
from engine.store.database import Database
from tests.store.filled import small_config, step_record

Ask = Callable[..., Any]
Invoke = Callable[..., Result]
MINE = """from engine.types import Reward

def reward(completion, gold, problem):
    return Reward(float(len(completion)), {}, None, "wrong")
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[GraderPool]:
    with GraderPool(1, own=True) as pool:
        yield pool


@pytest.fixture(autouse=True)
def folder(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: GraderPool) -> Path:
    monkeypatch.delenv("GRPO_LAB_REWARDS_DIR", raising=False)
    monkeypatch.setattr(own, "_pool", pool)
    return tmp_path / "rewards"  # beside the store


@pytest.fixture
def mine(folder: Path) -> Path:
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    return folder / "mine.py"


@pytest.fixture
def run_id(db: Database) -> str:
    """A run with two steps of completions, and a newer one that has none."""
    first = queue.enqueue(db, small_config(), name="with completions")
    for step in (1, 2):
        writes.write_step(db, first, step_record(step, 0.5, Random(step)))
    queue.enqueue(db, small_config(), name="without")
    return first


def test_the_list_has_built_in_rewards_and_one_s_own_with_their_digests(ask: Ask, invoke: Invoke, mine: Path):
    found = ask("reward", "list")
    assert found["built_in"] == sorted(REWARDS)
    digest = hashlib.sha256(MINE.encode()).hexdigest()
    assert found["own"] == [{"reward": "own:mine", "path": str(mine), "sha256": digest}]
    assert "own:mine" in invoke("reward", "list").stdout


def test_without_any_the_list_says_how_to_begin(invoke: Invoke):
    assert "begin one: grpo-lab reward new NAME" in " ".join(invoke("reward", "list").stdout.split())


def test_new_writes_the_template_and_leaves_a_file_that_is_there_as_it_is(ask: Ask, folder: Path):
    assert ask("reward", "new", "own:fresh") == {"reward": "own:fresh", "path": str(folder / "fresh.py")}
    template = Path(own_template.__file__).read_text()
    assert (folder / "fresh.py").read_text() == template
    (folder / "fresh.py").write_text(MINE)
    refused = ask("reward", "new", "fresh", exit_code=2)
    assert refused["error"].endswith("fresh.py is there already; choose another name or edit it")
    assert (folder / "fresh.py").read_text() == MINE
    assert "is never a path" in ask("reward", "new", "../fresh", exit_code=2)["error"]


def test_test_judges_the_completions_of_the_newest_run_that_has_any(ask: Ask, mine: Path, run_id: str):
    found = ask("reward", "test", "mine", "--n", "5")
    assert (found["run"], found["n"]) == (run_id, 5)
    assert found["verdicts"] == {"correct": 0, "wrong": 5, "unreadable": 0, "not_graded": 0}
    assert found["values"]["min"] > 0
    assert found["errors"] == []
    assert found["seconds"]["total"] >= found["seconds"]["slowest"] > 0
    assert ask("reward", "test", "own:mine", "--run", "with completions")["n"] == 32


def test_test_prints_every_distinct_error_with_its_line_and_exits_1(invoke: Invoke, mine: Path, run_id: str):
    mine.write_text(MINE.replace("return", "assert not completion, 'too long'\n    return"))
    result = invoke("reward", "test", "mine", exit_code=1)
    assert "verdicts  0 correct, 0 wrong, 0 unreadable, 32 not_graded" in result.stdout
    assert "values    none" in result.stdout
    assert "32 × AssertionError: too long (mine.py line 4)" in result.stdout


def test_a_file_that_cannot_be_loaded_is_told_with_its_line(ask: Ask, mine: Path, run_id: str):
    mine.write_text("def reward(:")
    (error,) = ask("reward", "test", "mine", exit_code=1)["errors"]
    assert error == {"reason": "SyntaxError: invalid syntax (mine.py line 1)", "n": 32}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mine",), "no run has stored completions"),
        (("other",), "the folder has own:mine. `grpo-lab reward new other` writes a template there"),
        (("mine", "--run", "nowhere"), "run=nowhere does not exist"),
    ],
)
def test_a_refused_request_says_what_to_do(ask: Ask, mine: Path, arguments: tuple[str, ...], message: str):
    assert message in ask("reward", "test", *arguments, exit_code=2)["error"]


def test_a_person_s_file_never_runs_in_the_command_itself(ask: Ask, mine: Path, run_id: str):
    mine.write_text("import sys\nsys.marked = True\n" + MINE)
    ask("reward", "test", "mine")
    assert not hasattr(sys, "marked")
