from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import parse_config
from engine.rollout.transformers_engine import TransformersEngine
from engine.training.checkpoint import latest_checkpoint
from engine.training.loop import StartPoint, train
from engine.training.optimizer import OptimizerStep
from engine.training.weight_version import StaleWeightsError
from engine.types import EvaluationRecord, StepRecord

TINY = {
    "grpo.steps": 3,
    "rollout.rollout_batch_size": 8,
    "rollout.group_size": 4,
    "rollout.max_tokens": 8,
    "evaluation.size": 2,
    "evaluation.greedy": False,
    "evaluation.every": 100,
    "checkpoints.every": 2,
}


class Records:
    """A recorder that keeps steps and evaluations."""

    def __init__(self) -> None:
        self.steps: list[StepRecord] = []
        self.evaluations: list[EvaluationRecord] = []

    def step(self, record: StepRecord) -> None:
        self.steps.append(record)

    def evaluation(self, record: EvaluationRecord) -> None:
        self.evaluations.append(record)

    def versions(self) -> list[float | None]:
        return [record.metrics.get("sampling/weight_version") for record in self.steps]

    def flush(self, timeout: float) -> bool:
        return True

    def event(self, *_: Any, **__: Any) -> None: ...
    def checkpoint(self, *_: Any, **__: Any) -> None: ...
    def delete_checkpoints(self, *_: Any) -> None: ...
    def mark_best(self, *_: Any) -> None: ...


def run(records: Records, folder: Path, start: StartPoint | None = None, **settings: Any) -> None:
    config = parse_config(TINY | {path.replace("__", "."): value for path, value in settings.items()})
    train(config, recorder=records, folder=folder, threads=1, stop=lambda: False, start=start)  # type: ignore[arg-type]


def test_a_step_is_sampled_with_the_weights_of_all_optimizer_steps_before_it(tmp_path: Path) -> None:
    records = Records()
    run(records, tmp_path, grpo__train_batch_size=4, grpo__epochs_per_rollout_batch=2)
    assert records.versions() == [0.0, 4.0, 8.0]


def test_steps_of_sft_change_the_weights_as_well_and_are_sampled_with_none(tmp_path: Path) -> None:
    records = Records()
    run(records, tmp_path, sft__steps=2, sft__batch_size=2, grpo__steps=2)
    assert records.versions() == [None, None, 2.0, 3.0]


def test_a_resume_counts_on(tmp_path: Path) -> None:
    first, second = Records(), Records()
    run(first, tmp_path, grpo__steps=2)
    path = latest_checkpoint(tmp_path / "checkpoints")
    assert path is not None
    run(second, tmp_path, StartPoint(path, 2), grpo__steps=3)
    assert first.versions() + second.versions() == [0.0, 1.0, 2.0]


def test_a_sampler_whose_weights_did_not_follow_ends_the_run_before_it_is_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Records()
    monkeypatch.setattr(TransformersEngine, "weights_changed", lambda _self, _version: None)
    with pytest.raises(
        StaleWeightsError, match=r"are those after 0 optimizer steps, the trainer's those after 1: .*res"
    ):
        run(records, tmp_path)
    assert records.versions() == [0.0]


def test_an_evaluation_of_stale_weights_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records()
    monkeypatch.setattr(TransformersEngine, "weights_changed", lambda _self, _version: None)
    with pytest.raises(StaleWeightsError):
        run(records, tmp_path, evaluation__every=1)
    assert [record.step for record in records.evaluations] == [0]


def test_an_optimizer_step_that_was_skipped_changed_nothing() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = OptimizerStep(model, torch.optim.AdamW(model.parameters()), 1.0, 5)
    model(torch.ones(1, 2)).sum().backward()
    assert optimizer.apply(float("nan"), step=1)[1] is False
    assert optimizer.changes == 0
    model(torch.ones(1, 2)).sum().backward()
    assert optimizer.apply(1.0, step=1)[1] is True
    assert optimizer.changes == 1
