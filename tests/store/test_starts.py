from pathlib import Path

import pytest

from engine.config import parse_config
from engine.errors import ConfigError, StoreError
from engine.store import queue, reads, writes
from engine.store.database import Database


@pytest.fixture
def first(db: Database) -> str:
    """A run with checkpoints of steps 20 and 40."""
    run_id = queue.enqueue(db, parse_config({}), name="first light")
    for step in (20, 40):
        writes.write_checkpoint(db, run_id, step, f"/x/step-{step:06d}", None)
    return run_id


def start_of(db: Database, run_id: str) -> str | None:
    run = reads.get_run(db, run_id)
    assert run is not None
    return run.run_config().model.init_from


@pytest.mark.parametrize("named", ["first light", "the beginning of its id", "its id"])
def test_the_run_to_begin_with_is_kept_by_its_full_id(db: Database, first: str, named: str):
    text = {"first light": named, "its id": first}.get(named, first[:5])
    run_id = queue.enqueue(db, parse_config({"model.init_from": f"run:{text}@40"}), name="second")
    assert start_of(db, run_id) == f"run:{first}@40"


def test_paths_are_kept_absolute_since_a_worker_runs_elsewhere(db: Database, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = parse_config({"model.init_from": "weights", "sft.steps": 5, "sft.path": "data/some.jsonl"})
    run = reads.get_run(db, queue.enqueue(db, config, name="x"))
    assert run is not None
    kept = run.run_config()
    assert (kept.model.init_from, kept.sft.path) == (str(tmp_path / "weights"), str(tmp_path / "data/some.jsonl"))
    assert run.arm == kept.arm_digest()


def test_an_unknown_run_is_refused(db: Database):
    with pytest.raises(
        StoreError, match=r"^model\.init_from=run:nothing@40: run=nothing does not exist; `grpo-lab ls`"
    ):
        queue.enqueue(db, parse_config({"model.init_from": "run:nothing@40"}), name="x")
    assert reads.list_runs(db) == []


def test_an_unknown_step_is_refused_with_those_there_are(db: Database, first: str):
    with pytest.raises(ConfigError) as caught:
        queue.enqueue(db, parse_config({"model.init_from": f"run:{first}@41"}), name="x")
    assert str(caught.value) == (
        f"model.init_from=run:{first}@41 names no checkpoint; use one of run:{first}@20, run:{first}@40"
    )
    empty = queue.enqueue(db, parse_config({}), name="empty")
    with pytest.raises(ConfigError, match="use one of none yet: it has no checkpoint"):
        queue.enqueue(db, parse_config({"model.init_from": f"run:{empty}@1"}), name="x")


def test_weights_of_another_model_are_refused(db: Database, first: str):
    with pytest.raises(ConfigError, match=r"^model\.name=gpt, but run:.*@40 has weights of tiny-math; set model\.name"):
        queue.enqueue(db, parse_config({"model.name": "gpt", "model.init_from": f"run:{first}@40"}), name="x")


def test_a_fork_needs_no_more_what_its_parent_began_with(db: Database, first: str):
    parent = queue.enqueue(db, parse_config({"model.init_from": f"run:{first}@20"}), name="parent")
    writes.delete_checkpoints(db, first, [20])
    run = reads.get_run(db, parent)
    assert run is not None
    child = queue.enqueue(db, run.run_config(), name="child", parent=(parent, 10))
    assert start_of(db, child) == f"run:{first}@20"
