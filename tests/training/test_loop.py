from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.config import parse_config
from engine.metrics import METRICS
from engine.presets import load_preset
from engine.training.checkpoint import latest_checkpoint, step_of
from engine.training.loop import Outcome, StartPoint, train
from engine.types import EvaluationRecord, StepRecord

SMALL = {
    "grpo.steps": 6,
    "rollout.rollout_batch_size": 16,
    "rollout.group_size": 4,
    "evaluation.every": 3,
    "evaluation.size": 8,
    "checkpoints.every": 2,
}
WALL_CLOCK = ("time/", "step_time", "memory/")


@dataclass
class Notes:
    """A recorder that keeps what it is given."""

    steps: list[StepRecord] = field(default_factory=list)
    evaluations: list[EvaluationRecord] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    checkpoints: list[int] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)

    def step(self, record):
        self.steps.append(record)

    def evaluation(self, record):
        self.evaluations.append(record)

    def event(self, kind, message, *, step=None, level="info"):
        self.events.append(kind)

    def checkpoint(self, step, path, accuracy=None):
        self.checkpoints.append(step)

    def delete_checkpoints(self, steps):
        self.deleted += steps

    def flush(self, timeout):
        return True

    def numbers(self) -> list[dict[str, float]]:
        """The metrics of each step that the clock has no part in."""
        return [
            {name: value for name, value in record.metrics.items() if not name.startswith(WALL_CLOCK)}
            for record in self.steps
        ]

    def answers(self) -> list[list[str]]:
        return [[answer.completion.text for answer in record.answers] for record in self.evaluations]


def run(folder: Path, *, stop_after: int | None = None, start: StartPoint | None = None, **settings):
    notes = Notes()
    outcome = train(
        parse_config(SMALL | settings),
        recorder=notes,  # type: ignore[arg-type]
        folder=folder,
        threads=1,
        stop=lambda: stop_after is not None and len(notes.steps) >= stop_after,
        start=start,
    )
    return notes, outcome


def test_a_run_trains_evaluates_and_keeps_checkpoints(tmp_path):
    notes, outcome = run(tmp_path)
    assert outcome == Outcome("succeeded", 6)
    assert [record.step for record in notes.steps] == [1, 2, 3, 4, 5, 6]
    assert [(record.step, record.mode) for record in notes.evaluations] == [
        (step, mode) for step in (0, 3, 6) for mode in ("sampled", "greedy")
    ]
    assert notes.checkpoints == [2, 4, 6]
    newest = latest_checkpoint(tmp_path / "checkpoints")
    assert newest is not None
    assert step_of(newest) == 6


@pytest.mark.parametrize("recipe", ["grpo", "dr_grpo", "dapo", "gspo", "cispo", "rloo"])
def test_every_recipe_trains(tmp_path, recipe):
    notes = Notes()
    config = load_preset(recipe, SMALL | {"grpo.steps": 2, "grpo.train_batch_size": 4}).config
    train(config, recorder=notes, folder=tmp_path, threads=1, stop=lambda: False)  # type: ignore[arg-type]
    assert [record.metrics["updates/optimizer_steps"] for record in notes.steps] == [4, 4]
    assert all(record.metrics["updates/skipped"] == 0 for record in notes.steps)
    assert any(record.metrics["grad_norm"] > 0 for record in notes.steps)


def test_every_logged_metric_is_defined_and_every_defined_one_is_logged(tmp_path):
    notes, _ = run(tmp_path, **{"grpo.dual_clip": 3.0})
    logged = {name for record in notes.steps for name in record.metrics}
    logged |= {
        f"eval/validation/{'greedy_' if record.mode == 'greedy' else ''}{name}"
        for record in notes.evaluations
        for name in record.metrics
    }
    assert logged == set(METRICS)


def test_equal_seeds_give_bitwise_equal_runs_and_others_do_not(tmp_path):
    one, _ = run(tmp_path / "a", seed=3)
    two, _ = run(tmp_path / "b", seed=3)
    other, _ = run(tmp_path / "c", seed=4)
    assert one.numbers() == two.numbers()
    assert one.answers() == two.answers()
    assert one.numbers() != other.numbers()


@pytest.mark.parametrize("stop_after", [1, 4])
@pytest.mark.parametrize("reuse", [{}, {"grpo.epochs_per_rollout_batch": 2, "grpo.train_batch_size": 8}])
def test_a_stopped_and_resumed_run_equals_one_that_never_stopped(tmp_path, stop_after, reuse):
    whole, _ = run(tmp_path / "whole", **reuse)
    first, outcome = run(tmp_path / "cut", stop_after=stop_after, **reuse)
    assert outcome == Outcome("stopped", stop_after)
    path = latest_checkpoint(tmp_path / "cut" / "checkpoints")
    assert path is not None
    rest, outcome = run(tmp_path / "cut", start=StartPoint(path, step_of(path)), **reuse)
    assert outcome == Outcome("succeeded", 6)
    assert first.numbers() + rest.numbers() == whole.numbers()
    assert first.answers() + rest.answers() == whole.answers()


def test_a_fork_starts_with_the_parents_weights_and_its_own_evaluation(tmp_path):
    parent, _ = run(tmp_path / "parent")
    path = latest_checkpoint(tmp_path / "parent" / "checkpoints")
    assert path is not None
    child, outcome = run(tmp_path / "child", start=StartPoint(path, 6, fork=True), **{"grpo.steps": 8})
    assert outcome == Outcome("succeeded", 8)
    assert [record.step for record in child.steps] == [7, 8]
    assert child.evaluations[1].step == 6
    greedy_of_parent = parent.answers()[-1]
    assert child.answers()[1] == greedy_of_parent


def test_the_stored_advantages_follow_from_the_stored_rewards(tmp_path):
    notes, _ = run(tmp_path)
    mixed = [group for record in notes.steps for group in record.groups if group.kind == "mixed"]
    assert mixed
    for group in mixed:
        assert group.reward_mean is not None
        assert group.reward_std is not None
        for member in group.completions:
            assert member.reward.value is not None
            expected = (member.reward.value - group.reward_mean) / (group.reward_std + 1e-6)
            assert member.advantage == pytest.approx(expected, abs=1e-12)


def test_sampler_and_trainer_agree_on_every_token(tmp_path):
    notes, _ = run(tmp_path)
    assert all(record.metrics["sampling/sampling_logp_difference/max"] < 1e-4 for record in notes.steps)
    assert all(record.metrics["ratio/mean"] == pytest.approx(1.0) for record in notes.steps if record.metrics["loss"])


def test_micro_batches_leave_the_first_step_as_it_was(tmp_path):
    whole, _ = run(tmp_path / "a", **{"grpo.steps": 1})
    split, _ = run(tmp_path / "b", **{"grpo.steps": 1, "grpo.gradient_accumulation_steps": 4})
    assert split.steps[0].metrics["grad_norm"] == pytest.approx(whole.steps[0].metrics["grad_norm"], rel=1e-5)


def test_a_time_limit_ends_the_run_with_a_checkpoint(tmp_path):
    notes, outcome = run(tmp_path, **{"stopping.max_minutes": 1e-6})
    assert outcome == Outcome("succeeded", 1)
    assert notes.events == ["time_limit"]
    assert notes.checkpoints == [1]
