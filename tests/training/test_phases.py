"""Runs of SFT, of SFT and then GRPO, and runs that begin with the weights of another."""

from dataclasses import replace

import pytest

from engine.errors import CheckpointError, TaskError
from engine.metrics import METRICS
from engine.training.checkpoint import latest_checkpoint, step_of
from engine.training.loop import Outcome, StartPoint
from engine.training.setup import set_up
from tests.training.test_loop import EVERYTHING, LORA, REUSE, StopAt, run, weights

PURE = {"sft.steps": 4, "grpo.steps": 0, "sft.batch_size": 32, "sft.learning_rate": 3e-4}
BOTH = {"sft.steps": 3, "grpo.steps": 3, "sft.batch_size": 8, "sft.learning_rate": 1e-3}


def newest(folder):
    path = latest_checkpoint(folder / "checkpoints")
    assert path is not None
    return path


def test_a_run_of_sft_alone_learns_evaluates_and_keeps_checkpoints(tmp_path):
    notes, outcome = run(tmp_path, **PURE)
    assert outcome == Outcome("succeeded", 4)
    assert [record.step for record in notes.steps] == [1, 2, 3, 4]
    assert [record.step for record in notes.evaluations] == [0, 0, 3, 3, 4, 4]
    assert notes.checkpoints == [2, 4]
    first, last = notes.steps[0].metrics, notes.steps[-1].metrics
    assert last["loss"] < 0.75 * first["loss"]
    assert last["entropy"] < first["entropy"]
    assert first["num_tokens"] > 32 * 20  # thirty-two prompts of twenty tokens, and their responses
    assert all(record.groups == () for record in notes.steps)


def test_the_metrics_of_sft_are_those_of_its_update_and_are_defined(tmp_path):
    notes, _ = run(tmp_path, **PURE)
    names = {name for name in notes.steps[-1].metrics if not name.startswith(("time/", "memory/"))}
    assert names == {
        "loss",
        "entropy",
        "grad_norm",
        "learning_rate",
        "num_tokens",
        "step_time",
        "updates/optimizer_steps",
        "updates/skipped",
    }
    assert {name for record in notes.steps for name in record.metrics} <= set(METRICS)
    assert notes.steps[0].metrics["step_time"] == notes.steps[0].metrics["time/update"]


def test_grpo_follows_sft_in_one_count_of_steps_with_an_evaluation_and_a_checkpoint_between(tmp_path):
    notes, outcome = run(tmp_path, **BOTH, **{"evaluation.every": 100, "checkpoints.every": 100})
    assert outcome == Outcome("succeeded", 6)
    assert ["reward" in record.metrics for record in notes.steps] == [False] * 3 + [True] * 3
    assert [record.step for record in notes.evaluations[::2]] == [0, 3, 6]
    assert notes.checkpoints == [3, 6]


def test_each_phase_has_a_schedule_of_its_own(tmp_path):
    schedule = {"optimizer.learning_rate": 1e-4, "optimizer.schedule": "linear", "optimizer.warmup_steps": 1}
    notes, _ = run(tmp_path, **BOTH, **schedule)
    rates = [record.metrics["learning_rate"] for record in notes.steps]
    # Warm-up reaches the peak at once; of the two steps after it the first is at the peak, the second half way down.
    assert rates == pytest.approx([1e-3, 1e-3, 5e-4, 1e-4, 1e-4, 5e-5])


def test_the_reference_policy_is_that_at_the_end_of_sft(tmp_path):
    notes, _ = run(tmp_path, **BOTH, **{"kl.beta": 0.05, "optimizer.learning_rate": 1e-3})
    kl = [record.metrics.get("kl") for record in notes.steps]
    assert kl[:3] == [None] * 3
    assert kl[3] == pytest.approx(0.0, abs=1e-9)
    assert kl[4] > 1e-6


def test_sft_and_then_grpo_equals_a_run_of_sft_and_one_of_grpo_that_begins_with_its_weights(tmp_path):
    settings = REUSE | EVERYTHING
    one, _ = run(tmp_path / "one", **BOTH, **settings)
    run(tmp_path / "sft", **BOTH | settings | {"grpo.steps": 0})
    path = newest(tmp_path / "sft")
    given = settings | {"grpo.steps": 3, "model.init_from": str(path)}
    two, _ = run(tmp_path / "grpo", initial_weights=path, **given)

    def without_count(notes):
        counts = ("num_tokens", "sampling/weight_version")  # of the run
        return [{name: value for name, value in each.items() if name not in counts} for each in notes.numbers()]

    assert without_count(one)[3:] == without_count(two)
    assert weights(tmp_path / "one") == weights(tmp_path / "grpo")


MOST = {name: value for name, value in EVERYTHING.items() if not name.startswith("rollout.")}


@pytest.fixture(scope="module")
def uncut(tmp_path_factory):
    """The run that the stopped ones are held against."""
    folder = tmp_path_factory.mktemp("uncut")
    notes, _ = run(folder, **CUT)
    return notes, weights(folder)


CUT = BOTH | REUSE | MOST | {"grpo.gradient_accumulation_steps": 2, "optimizer.schedule": "cosine"}


@pytest.mark.parametrize(
    ("stop", "kept"),
    [
        (StopAt(1), "step-000001"),
        # SFT asks before each of its two micro-batches, and drops a step that it does not finish.
        (StopAt(1, asked_within=2), "step-000001"),
        (StopAt(3), "step-000003"),
        # Of the first step of GRPO: sampled, then after one optimizer step of four.
        (StopAt(3, asked_within=1), "within-000004"),
        (StopAt(3, asked_within=3), "within-000004"),
        (StopAt(5), "step-000005"),
    ],
    ids=["in sft", "inside a step of sft", "between", "sampled", "inside the first of grpo", "in grpo"],
)
def test_a_run_stopped_in_either_phase_goes_on_to_the_same_end(tmp_path, stop, kept, uncut):
    whole, weights_of_whole = uncut
    first, outcome = run(tmp_path / "cut", stop=replace(stop), **CUT)
    assert outcome == Outcome("stopped", stop.steps)
    path = newest(tmp_path / "cut")
    assert path.name == kept
    rest, outcome = run(tmp_path / "cut", start=StartPoint(path, step_of(path)), **CUT)
    assert outcome == Outcome("succeeded", 6)
    assert first.numbers() + rest.numbers() == whole.numbers()
    assert first.answers() + rest.answers() == whole.answers()
    assert weights(tmp_path / "cut") == weights_of_whole


def test_a_token_budget_counts_the_examples_of_sft(tmp_path):
    whole, _ = run(tmp_path / "whole", **PURE)
    budget = int(whole.steps[1].metrics["num_tokens"])
    notes, outcome = run(tmp_path / "short", **PURE, **{"stopping.max_sampled_tokens": budget})
    assert outcome == Outcome("succeeded", 2)
    assert notes.events == ["grader", "token_limit"]


def test_sft_learns_from_the_lines_of_a_file_alone(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"prompt": "What is 1 + 1?", "response": " xyzzy"}\n')
    settings = PURE | {"sft.path": str(path), "sft.steps": 12}
    notes, _ = run(tmp_path / "run", **settings)
    prompt, response = ["What is ", "1", " + ", "1", "?"], [*" xyzzy", "the end token"]
    assert notes.steps[0].metrics["num_tokens"] == 32 * (len(prompt) + len(response))
    assert notes.steps[-1].metrics["loss"] < 0.5 * notes.steps[0].metrics["loss"]


def test_a_file_is_read_before_the_model_and_no_more_once_sft_is_over(tmp_path, monkeypatch):
    settings = BOTH | {"sft.path": str(tmp_path / "nowhere.jsonl")}

    def no_model(*_, **__):
        raise AssertionError("the model was loaded")

    with monkeypatch.context() as patched:
        patched.setattr("engine.training.setup.load_policy", no_model)
        with pytest.raises(TaskError, match=r"nowhere\.jsonl cannot be read"):
            run(tmp_path / "a", **settings)
    run(tmp_path / "b", stop=StopAt(4), **BOTH)
    path = newest(tmp_path / "b")
    _, outcome = run(tmp_path / "b", start=StartPoint(path, step_of(path)), **settings)
    assert outcome == Outcome("succeeded", 6)


def test_an_adapter_is_taught_and_resumed_to_the_bit(tmp_path):
    settings = BOTH | LORA | {"grpo.steps": 3}
    whole, _ = run(tmp_path / "whole", **settings)
    first, _ = run(tmp_path / "cut", stop=StopAt(2), **settings)
    path = newest(tmp_path / "cut")
    rest, _ = run(tmp_path / "cut", start=StartPoint(path, step_of(path)), **settings)
    assert first.numbers() + rest.numbers() == whole.numbers()
    assert whole.steps[2].metrics["loss"] < whole.steps[0].metrics["loss"]
    assert whole.steps[3].metrics["kl"] == pytest.approx(0.0, abs=1e-9)


class TestInitialWeights:
    def test_a_run_begins_at_step_0_with_all_but_the_weights_new(self, tmp_path):
        parent, _ = run(tmp_path / "parent", **{"kl.beta": 0.05, "optimizer.learning_rate": 1e-3})
        path = newest(tmp_path / "parent")
        child, outcome = run(
            tmp_path / "child",
            initial_weights=path,
            **{"model.init_from": str(path), "kl.beta": 0.05, "optimizer.learning_rate": 1e-3, "grpo.steps": 2},
        )
        assert outcome == Outcome("succeeded", 2)
        assert [record.step for record in child.steps] == [1, 2]
        assert child.evaluations[0].step == 0
        greedy_at_the_parents_end = parent.answers()[-1]
        assert child.answers()[1] == greedy_at_the_parents_end
        assert child.steps[0].metrics["kl"] == pytest.approx(0.0, abs=1e-9)
        assert child.steps[0].metrics["num_tokens"] < parent.steps[1].metrics["num_tokens"]
        assert child.steps[0].groups[0].prompt == parent.steps[0].groups[0].prompt

    def test_an_adapter_is_put_beside_them_and_finds_them_again(self, tmp_path):
        """The weights begun with are themselves a model with an adapter, which is merged."""
        run(tmp_path / "parent", **LORA | {"grpo.steps": 2})
        path = newest(tmp_path / "parent")
        settings = LORA | {"model.init_from": str(path), "grpo.steps": 4}
        whole, _ = run(tmp_path / "whole", initial_weights=path, **settings)
        first, _ = run(tmp_path / "cut", stop=StopAt(2), initial_weights=path, **settings)
        cut = newest(tmp_path / "cut")
        rest, _ = run(tmp_path / "cut", start=StartPoint(cut, 2), initial_weights=path, **settings)
        assert first.numbers() + rest.numbers() == whole.numbers()
        # Merged once more, the second adapter stands on the first one's model.
        grandchild = {"model.init_from": str(newest(tmp_path / "whole")), "grpo.steps": 1}
        last, _ = run(tmp_path / "last", initial_weights=newest(tmp_path / "whole"), **grandchild)
        assert last.answers()[1] == whole.answers()[-1]

    def test_weights_that_were_not_found_are_never_replaced_by_the_models_own(self, tmp_path):
        with pytest.raises(CheckpointError, match=r"model\.init_from=run:abc@40 was not found before training"):
            run(tmp_path, **{"model.init_from": "run:abc@40"})

    def test_a_resume_needs_them_no_more(self, tmp_path):
        run(tmp_path / "parent", **{"grpo.steps": 2})
        path = newest(tmp_path / "parent")
        settings = {"model.init_from": str(path)}
        run(tmp_path / "child", initial_weights=path, stop=StopAt(2), **settings)
        _, outcome = run(tmp_path / "child", start=StartPoint(newest(tmp_path / "child"), 2), **settings)
        assert outcome == Outcome("succeeded", 6)


def test_expert_iteration_trains_on_correct_completions_and_lowers_their_loss(tmp_path):
    expert = {"grpo.learn_from": "correct", "grpo.loss_type": "no_baseline", "grpo.aggregation": "token"}
    settings = expert | {"grpo.epochs_per_rollout_batch": 4, "optimizer.learning_rate": 1e-4}
    notes, _ = run(tmp_path, **settings | {"rollout.rollout_batch_size": 32, "grpo.steps": 3})
    trained = [record for record in notes.steps if record.metrics["loss"] > 0]
    assert trained
    for record in trained:
        assert record.updates[-1]["loss"] < record.updates[0]["loss"]
    for record in notes.steps:
        for group in record.groups:
            for member in group.completions:
                assert member.advantage == float(member.reward.verdict == "correct")


def test_demonstrations_are_loaded_only_where_sft_has_steps_left():
    from engine.config import parse_config

    config = parse_config({"sft.steps": 1, "grpo.steps": 1})
    assert len(set_up(config, threads=1, start=None).demonstrations) == 1024
    assert set_up(parse_config({}), threads=1, start=None).demonstrations == []


def test_ten_steps_of_sft_raise_the_accuracy_on_held_out_problems(tmp_path):
    settings = {"sft.steps": 10, "grpo.steps": 0, "sft.learning_rate": 3e-4, "evaluation.every": 100}
    notes, _ = run(tmp_path, **settings, **{"evaluation.size": 128, "evaluation.greedy": False})
    before, after = (record.metrics["accuracy"] for record in notes.evaluations)
    assert before < 0.3
    assert after > before + 0.3
