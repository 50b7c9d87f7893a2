from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from engine.config import parse_config
from engine.errors import CheckpointError
from engine.metrics import METRICS, family_of
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
    best: int | None = None

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

    def mark_best(self, step):
        self.best = step

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


def run(
    folder: Path,
    *,
    stop: Callable[[Notes], bool] = lambda _: False,
    start: StartPoint | None = None,
    initial_weights: Path | None = None,
    **settings,
) -> tuple[Notes, Outcome]:
    notes = Notes()
    outcome = train(
        parse_config(SMALL | settings),
        recorder=notes,  # type: ignore[arg-type]
        folder=folder,
        threads=1,
        stop=lambda: stop(notes),
        start=start,
        initial_weights=initial_weights,
    )
    return notes, outcome


def weights(folder: Path) -> dict[str, list[float]]:
    newest = latest_checkpoint(folder / "checkpoints")
    assert newest is not None
    return {name: tensor.flatten().tolist() for name, tensor in load_file(newest / "model.safetensors").items()}


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


def test_the_checkpoint_of_the_best_accuracy_is_marked(tmp_path):
    notes, _ = run(tmp_path, **{"evaluation.every": 2, "evaluation.greedy": False, "evaluation.size": 32})
    accuracies = {record.step: record.metrics["accuracy"] for record in notes.evaluations if record.step}
    assert notes.best == max(accuracies, key=lambda step: (accuracies[step], -step))


@pytest.mark.parametrize("recipe", ["grpo", "dr_grpo", "dapo", "gspo", "cispo", "rloo"])
def test_every_recipe_trains(tmp_path, recipe):
    notes = Notes()
    config = load_preset(recipe, SMALL | {"grpo.steps": 2, "grpo.train_batch_size": 4}).config
    train(config, recorder=notes, folder=tmp_path, threads=1, stop=lambda: False)  # type: ignore[arg-type]
    assert [record.metrics["updates/optimizer_steps"] for record in notes.steps] == [4, 4]
    assert all(record.metrics["updates/skipped"] == 0 for record in notes.steps)
    assert any(record.metrics["grad_norm"] > 0 for record in notes.steps)


EVERYTHING = {
    "grpo.importance_correction": "token_truncate",
    "grpo.dual_clip": 3.0,
    "kl.beta": 0.02,
    "kl.target": 0.001,
    "kl.reference": "ema",
    "entropy.bonus": 0.001,
    "entropy.target": 0.4,
    "rollout.dynamic_sampling": True,
    "rollout.dynamic_sampling_max_draws": 2,
    "truncation.completions": "mask",
    "truncation.overlong_buffer": 8,
}


COMPOSED = {
    "reward.placebo": "random",
    "reward.format": 0.1,
    "reward.length": 0.1,
    "reward.repetition": 0.1,
}


def test_every_logged_metric_is_defined_and_every_defined_one_is_logged(tmp_path):
    notes, _ = run(tmp_path, **EVERYTHING | COMPOSED, **{"evaluation.samples": 2})
    logged = {name for record in notes.steps for name in record.metrics}
    logged |= {
        f"eval/validation/{'greedy_' if record.mode == 'greedy' else ''}{name}"
        for record in notes.evaluations
        for name in record.metrics
    }
    on_cpu = {name for name in METRICS if not name.startswith("device/")}  # those: test_device_usage.py
    assert {family_of(name) for name in logged} == on_cpu


def test_equal_seeds_give_bitwise_equal_runs_and_others_do_not(tmp_path):
    one, _ = run(tmp_path / "a", seed=3)
    two, _ = run(tmp_path / "b", seed=3)
    other, _ = run(tmp_path / "c", seed=4)
    assert one.numbers() == two.numbers()
    assert one.answers() == two.answers()
    assert one.numbers() != other.numbers()


@dataclass
class StopAt:
    """Stops a run after a number of steps, or at the n-th time that it is asked within the step after these."""

    steps: int
    asked_within: int = 0
    asked: int = 0

    def __call__(self, notes: Notes) -> bool:
        if len(notes.steps) < self.steps:
            return False
        self.asked += 1
        return self.asked > self.asked_within


REUSE = {"grpo.epochs_per_rollout_batch": 2, "grpo.train_batch_size": 8}


@pytest.mark.parametrize(
    ("stop", "kept"),
    [
        (StopAt(1), "step-000001"),
        (StopAt(4), "step-000004"),
        # Of the fourth step: sampled, then one micro-batch in each of four optimizer steps.
        (StopAt(3, asked_within=1), "within-000004"),
        (StopAt(3, asked_within=3), "within-000004"),
        (StopAt(0, asked_within=2), "within-000001"),
    ],
    ids=["after 1", "after 4", "sampled", "inside the epochs", "inside the first"],
)
@pytest.mark.parametrize("settings", [REUSE, REUSE | EVERYTHING], ids=["plain", "everything"])
def test_a_stopped_and_resumed_run_equals_one_that_never_stopped(tmp_path, stop, kept, settings):
    if settings is not REUSE and kept.startswith("within"):
        # Dynamic sampling asks before each further draw as well.
        stop = replace(stop, asked_within=stop.asked_within + 1)
    stop = replace(stop)
    whole, _ = run(tmp_path / "whole", **settings)
    first, outcome = run(tmp_path / "cut", stop=stop, **settings)
    assert outcome == Outcome("stopped", stop.steps)
    path = latest_checkpoint(tmp_path / "cut" / "checkpoints")
    assert path is not None
    assert path.name == kept
    rest, outcome = run(tmp_path / "cut", start=StartPoint(path, step_of(path)), **settings)
    assert outcome == Outcome("succeeded", 6)
    assert first.numbers() + rest.numbers() == whole.numbers()
    assert first.answers() + rest.answers() == whole.answers()
    assert [record.updates for record in first.steps + rest.steps] == [record.updates for record in whole.steps]
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")
    assert not list((tmp_path / "cut" / "checkpoints").glob("within-*"))


def test_a_step_in_hand_that_cannot_be_kept_is_an_event_and_the_checkpoint_before_it_stays(tmp_path, monkeypatch):
    def disk_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.training.checkpoint.save_step_in_hand", disk_full)
    notes, outcome = run(tmp_path, stop=StopAt(3, asked_within=3), **REUSE)
    assert outcome == Outcome("stopped", 3)
    assert notes.events == ["grader", "checkpoint_failed"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-000002"]
    newest = latest_checkpoint(tmp_path / "checkpoints")
    assert newest is not None
    assert step_of(newest) == 2


@pytest.mark.parametrize("reference", ["start", "ema", "copy"])
def test_a_resumed_run_keeps_its_reference_policy(tmp_path, reference):
    settings = {"kl.beta": 0.05, "kl.reference": reference, "kl.copy_every": 2, "optimizer.learning_rate": 1e-3}
    whole, _ = run(tmp_path / "whole", **settings)
    first, _ = run(tmp_path / "cut", stop=StopAt(3), **settings)
    path = latest_checkpoint(tmp_path / "cut" / "checkpoints")
    assert path is not None
    rest, _ = run(tmp_path / "cut", start=StartPoint(path, step_of(path)), **settings)
    kl = [record.metrics["kl"] for record in whole.steps]
    assert [record.metrics["kl"] for record in first.steps + rest.steps] == kl
    assert kl[0] == pytest.approx(0.0, abs=1e-9)
    assert kl[1] > 1e-6
    if reference == "copy":
        assert kl[2] == pytest.approx(0.0, abs=1e-9)


def test_the_controller_raises_beta_while_the_policy_is_further_away_than_its_target(tmp_path):
    settings = {"kl.beta": 0.05, "kl.target": 1e-9, "kl.gain": 0.5, "optimizer.learning_rate": 1e-3}
    notes, _ = run(tmp_path, **settings)
    beta = [record.metrics["kl/beta"] for record in notes.steps]
    # At the first step policy and reference are one: the error is clipped at -20 %, then at +20 %.
    assert beta[0] == 0.05
    assert beta[1:3] == pytest.approx([0.05 * 0.9, 0.05 * 0.9 * 1.1])


def test_against_a_copy_made_at_every_step_the_divergence_is_that_of_the_update_alone(tmp_path):
    settings = {"kl.beta": 0.05, "kl.reference": "copy", "kl.copy_every": 1, "optimizer.learning_rate": 1e-3}
    notes, _ = run(tmp_path, **settings | REUSE)
    for record in notes.steps:
        assert record.metrics["kl"] == pytest.approx(0.0, abs=1e-9)
        assert record.updates[0]["kl"] == pytest.approx(0.0, abs=1e-9)
        assert record.metrics["kl/update"] == record.updates[-1]["kl"] > 1e-6


def test_a_kl_term_in_the_reward_is_in_the_stored_advantages(tmp_path):
    settings = {"kl.beta": 0.5, "kl.placement": "reward", "kl.estimator": "k1", "optimizer.learning_rate": 1e-3}
    notes, _ = run(tmp_path, **settings)
    for group in notes.steps[-1].groups:
        divergence = [member.kl for member in group.completions]
        assert all(value is not None for value in divergence)
        mean = sum(divergence) / len(divergence)
        for member in group.completions:
            assert member.reward.value is not None
            scaled = (member.reward.value - group.reward_mean) / (group.reward_std + 1e-6) if group.reward_std else 0.0
            assert member.advantage == pytest.approx(scaled - 0.5 * (member.kl - mean), abs=1e-5)
    assert any(abs(member.kl) > 1e-3 for group in notes.steps[-1].groups for member in group.completions)


def test_dynamic_sampling_trains_on_mixed_groups_and_tells_what_it_cost(tmp_path):
    plain, _ = run(tmp_path / "plain")
    notes, _ = run(tmp_path / "dynamic", **{"rollout.dynamic_sampling": True, "rollout.dynamic_sampling_max_draws": 20})
    assert min(record.metrics["groups/mixed"] for record in plain.steps) < 1
    for record in notes.steps:
        trained = [group for group in record.groups if group.trained]
        left_out = [group for group in record.groups if not group.trained]
        assert [group.kind for group in trained] == ["mixed"] * 4
        assert len(trained) + len(left_out) == 4 * record.metrics["dynamic_sampling/draws"]
        assert record.metrics["dynamic_sampling/discarded"] == len(left_out) / len(record.groups)
        assert all(member.advantage is None for group in left_out for member in group.completions)
    sampled = [
        len(group.prompt_token_ids) + len(member.completion.token_ids)
        for record in notes.steps
        for group in record.groups
        for member in group.completions
    ]
    assert notes.steps[-1].metrics["num_tokens"] == sum(sampled)


def test_dynamic_sampling_fills_up_with_flat_groups_when_its_draws_are_used_up(tmp_path):
    notes, _ = run(tmp_path, **{"rollout.dynamic_sampling": True, "rollout.dynamic_sampling_max_draws": 1})
    plain, _ = run(tmp_path / "plain")
    assert [record.metrics["reward"] for record in notes.steps] == [record.metrics["reward"] for record in plain.steps]
    assert all(len(record.groups) == 4 for record in notes.steps)


def test_metrics_of_every_optimizer_step_are_kept_where_there_are_several(tmp_path):
    notes, _ = run(tmp_path, **REUSE)
    for record in notes.steps:
        assert len(record.updates) == 4
        norms = [update["grad_norm"] for update in record.updates]
        assert record.metrics["grad_norm"] == pytest.approx(sum(norms) / 4)
        assert len(set(norms)) == 4
    single, _ = run(tmp_path / "single")
    assert all(record.updates == [] for record in single.steps)


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
    assert notes.events == ["grader", "time_limit"]
    assert notes.checkpoints == [1]


def test_a_token_budget_ends_the_run_after_the_step_that_reaches_it(tmp_path):
    whole, _ = run(tmp_path / "whole")
    tokens = [record.metrics["num_tokens"] for record in whole.steps]
    notes, outcome = run(tmp_path / "short", **{"stopping.max_sampled_tokens": int(tokens[2])})
    assert outcome == Outcome("succeeded", 3)
    assert notes.events == ["grader", "token_limit"]
    assert notes.checkpoints == [2, 3]


def test_a_run_without_a_gain_in_validation_accuracy_ends(tmp_path):
    """No accuracy is more than 1 above another: of the evaluations at 0, 2, 4 the second and third are no gain."""
    settings = {"evaluation.every": 2, "stopping.patience": 2, "stopping.min_gain": 1.0}
    notes, outcome = run(tmp_path, **settings)
    assert outcome == Outcome("succeeded", 4)
    assert notes.events == ["grader", "no_gain"]
    # Resumed after the second evaluation, it still remembers the first.
    run(tmp_path / "cut", stop=StopAt(3), **settings)
    path = latest_checkpoint(tmp_path / "cut" / "checkpoints")
    assert path is not None
    _, outcome = run(tmp_path / "cut", start=StartPoint(path, step_of(path)), **settings)
    assert outcome == Outcome("succeeded", 4)


def test_a_fork_begins_with_a_divergence_of_0_from_its_own_start(tmp_path):
    settings = {"kl.beta": 0.05, "optimizer.learning_rate": 1e-3}
    run(tmp_path / "parent", **settings)
    path = latest_checkpoint(tmp_path / "parent" / "checkpoints")
    assert path is not None
    child, _ = run(tmp_path / "child", start=StartPoint(path, 6, fork=True), **settings | {"grpo.steps": 8})
    assert child.steps[0].metrics["kl"] == pytest.approx(0.0, abs=1e-9)
    assert child.steps[1].metrics["kl"] > 1e-6


LORA = {"lora.rank": 4, "optimizer.learning_rate": 1e-3, "kl.beta": 0.01}


def test_an_adapter_is_trained_beside_frozen_weights_and_resumed_to_the_bit(tmp_path):
    whole, _ = run(tmp_path / "whole", **LORA)
    first, _ = run(tmp_path / "cut", stop=StopAt(3), **LORA)
    path = latest_checkpoint(tmp_path / "cut" / "checkpoints")
    assert path is not None
    assert not (path / "model.safetensors").exists()
    rest, outcome = run(tmp_path / "cut", start=StartPoint(path, step_of(path)), **LORA)
    assert outcome == Outcome("succeeded", 6)
    assert first.numbers() + rest.numbers() == whole.numbers()
    assert whole.steps[0].metrics["grad_norm"] > 0
    assert whole.steps[-1].metrics["kl"] > 1e-6
    assert all(record.metrics["sampling/sampling_logp_difference/max"] < 1e-3 for record in whole.steps)


def test_a_checkpoint_with_an_adapter_is_not_gone_on_with_without_one(tmp_path):
    run(tmp_path, **LORA | {"grpo.steps": 2})
    path = latest_checkpoint(tmp_path / "checkpoints")
    assert path is not None
    with pytest.raises(CheckpointError, match=r"lora\.rank=empty, but .* is that of an adapter"):
        run(tmp_path / "child", start=StartPoint(path, 2, fork=True))


def test_gradient_checkpointing_changes_no_number(tmp_path):
    plain, _ = run(tmp_path / "plain", **{"grpo.steps": 3})
    checkpointed, _ = run(tmp_path / "checkpointed", **{"grpo.steps": 3, "model.gradient_checkpointing": True})
    assert checkpointed.numbers() == plain.numbers()


def test_the_size_of_a_chunk_of_logits_changes_rounding_alone(tmp_path):
    """1 MiB holds the logits of 939 tokens of 279 each, and 128 completions have more."""
    settings = {"grpo.steps": 1, "rollout.rollout_batch_size": 128}
    whole, _ = run(tmp_path / "whole", **settings)
    chunked, _ = run(tmp_path / "chunked", **settings, **{"model.logits_memory": 1})
    assert 128 * whole.steps[0].metrics["completions/mean_length"] > 939
    assert chunked.steps[0].metrics["grad_norm"] == pytest.approx(whole.steps[0].metrics["grad_norm"], rel=1e-5)
    assert chunked.steps[0].metrics["entropy"] == pytest.approx(whole.steps[0].metrics["entropy"], rel=1e-5)


WITHOUT_STEPS = {"grpo.steps": 0, "evaluation.size": 4, "evaluation.samples": 2}


def test_a_run_without_steps_evaluates_the_start_and_succeeds(tmp_path):
    notes, outcome = run(tmp_path, **WITHOUT_STEPS)
    assert outcome == Outcome("succeeded", 0)
    assert [(record.step, record.mode, len(record.answers)) for record in notes.evaluations] == [
        (0, "sampled", 8),
        (0, "greedy", 4),
    ]
    assert "pass@2" in notes.evaluations[0].metrics
    assert (notes.steps, notes.checkpoints) == ([], [])


def test_a_run_without_steps_asks_for_nothing_that_only_training_needs(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("it trains nothing")

    monkeypatch.setattr("engine.training.setup.enable_gradient_checkpointing", refuse)
    settings = {"model.gradient_checkpointing": True, "optimizer.name": "adamw_8bit", "kl.measure": True}
    assert run(tmp_path, **WITHOUT_STEPS, **settings)[1].status == "succeeded"


def test_a_run_without_steps_evaluates_the_split_that_was_asked_for(tmp_path):
    notes, _ = run(tmp_path, **WITHOUT_STEPS, **{"evaluation.split": "test", "evaluation.greedy": False})
    (record,) = notes.evaluations
    assert (record.split, {answer.problem.split for answer in record.answers}) == ("test", {"test"})
