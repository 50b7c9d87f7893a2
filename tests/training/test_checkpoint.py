import json
import shutil

import pytest
import torch

from engine.config import parse_config
from engine.errors import CheckpointError
from engine.policy.policy import Policy, load_policy
from engine.policy.reference import ReferencePolicy
from engine.training import checkpoint as checkpoints
from engine.training.checkpoint import (
    best_checkpoint,
    is_complete,
    latest_checkpoint,
    load_checkpoint,
    prune_checkpoints,
    save_checkpoint,
    step_of,
)
from engine.training.optimizer import make_optimizer
from engine.training.state import TrainingState


@pytest.fixture
def policy(model) -> Policy:
    return Policy(model, load_policy("tiny-math").tokenizer)


@pytest.fixture
def optimizer(model):
    optimizer = make_optimizer(model, parse_config({}).optimizer)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


def test_a_checkpoint_gives_back_weights_optimizer_and_state(tmp_path, policy, optimizer):
    state = TrainingState(step=25, num_tokens=1234, skipped_in_a_row=1, seconds=7.5, accuracy=0.5)
    path = save_checkpoint(tmp_path, policy, optimizer, state)
    assert path == tmp_path / "step-000025"
    loaded = load_policy(str(path))
    for before, after in zip(policy.model.parameters(), loaded.model.parameters(), strict=True):
        assert torch.equal(before, after)
    fresh = make_optimizer(loaded.model, parse_config({}).optimizer)
    assert load_checkpoint(path, fresh) == state
    saved, restored = optimizer.state_dict()["state"], fresh.state_dict()["state"]
    assert saved.keys() == restored.keys()
    assert all(torch.equal(saved[k][name], restored[k][name]) for k in saved for name in saved[k])


def test_the_random_state_is_restored(tmp_path, policy, optimizer):
    torch.manual_seed(7)
    path = save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=1))
    expected = torch.rand(3)
    torch.manual_seed(8)
    load_checkpoint(path, optimizer)
    assert torch.equal(torch.rand(3), expected)


def test_the_newest_complete_checkpoint_is_taken(tmp_path, policy, optimizer):
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=step))
    (tmp_path / "step-000003" / "state.json").unlink()
    (tmp_path / "step-000004.writing").mkdir()
    newest = latest_checkpoint(tmp_path)
    assert newest is not None
    assert step_of(newest) == 2


def test_a_cut_file_makes_a_checkpoint_incomplete(tmp_path, policy, optimizer):
    path = save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=1))
    weights = path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert not is_complete(path)
    with pytest.raises(CheckpointError, match=r"lacks model\.safetensors"):
        load_checkpoint(path, optimizer)


def test_a_failed_save_leaves_nothing_behind_and_the_last_one_whole(tmp_path, policy, optimizer, monkeypatch):
    first = save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=1))

    def disk_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_file", disk_full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=2))
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]
    assert is_complete(first)


def test_a_newer_format_is_refused_in_words(tmp_path, policy, optimizer):
    path = save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=1))
    document = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps(document | {"format": 99}))
    with pytest.raises(CheckpointError, match=r"format 99.*update the program"):
        load_checkpoint(path, optimizer)


def test_a_checkpoint_of_the_first_format_is_read(tmp_path, policy, optimizer):
    path = save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=5))
    state = {"step": 5, "num_tokens": 9, "skipped_in_a_row": 1, "seconds": 2.5, "accuracy": 0.5}
    document = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps(document | {"format": 1, "state": state}))
    restored = load_checkpoint(path, optimizer)
    assert restored == TrainingState(**state, draws=5)


def test_a_checkpoint_without_the_reference_policy_that_a_run_needs_is_refused(tmp_path, policy, optimizer):
    path = save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=1))
    with pytest.raises(CheckpointError, match=r"has no reference policy; fork from it"):
        load_checkpoint(path, optimizer, reference=ReferencePolicy(policy.model))
    with_reference = save_checkpoint(
        tmp_path, policy, optimizer, TrainingState(step=2), reference=ReferencePolicy(policy.model)
    )
    assert load_checkpoint(with_reference, optimizer, reference=ReferencePolicy(policy.model)).step == 2


def test_pruning_keeps_the_newest_and_the_best(tmp_path, policy, optimizer):
    source = save_checkpoint(tmp_path, policy, optimizer, TrainingState(step=1, accuracy=0.2))
    for step, accuracy in ((2, 0.9), (3, 0.9), (4, None), (5, 0.4)):
        copy = tmp_path / f"step-{step:06d}"
        shutil.copytree(source, copy)
        document = json.loads((copy / "state.json").read_text())
        document["state"] |= {"step": step, "accuracy": accuracy}
        (copy / "state.json").write_text(json.dumps(document))
    (tmp_path / "step-000006.writing").mkdir()
    best = best_checkpoint(tmp_path)
    assert best is not None
    assert step_of(best) == 2
    assert prune_checkpoints(tmp_path, keep=2) == [1, 3]
    assert sorted(step_of(path) for path in tmp_path.iterdir()) == [2, 4, 5]
