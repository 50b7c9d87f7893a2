from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.cli import evaluate as command
from engine.config import evaluation_config, parse_config, remarks
from engine.store import queue, reads, writes
from engine.store.database import Database
from engine.types import EvaluationRecord

Ask = Callable[..., Any]
TUNED = {
    "grpo.steps": 40,
    "grpo.learn_from": "correct",
    "grpo.loss_type": "no_baseline",
    "grpo.baseline": "none",
    "grpo.scale": "none",
    "lora.rank": 4,
    "kl.beta": 0.1,
    "entropy.bonus": 0.01,
    "rollout.top_p": 0.9,
    "rollout.max_tokens": 40,
    "truncation.overlong_buffer": 8,
    "optimizer.warmup_steps": 10,
    "stopping.min_gain": 0.1,
    "checkpoints.every": 7,
    "sft.steps": 10,
    "sft.batch_size": 8,
    "reward.format": 0.5,
    "evaluation.size": 64,
    "evaluation.every": 4,
    "task.largest_operand": 9,
    "seed": 3,
}


@pytest.fixture
def run_id(db: Database) -> str:
    """A run with checkpoints at 10, 20 and 30, the second being the most accurate."""
    run_id = queue.enqueue(db, parse_config(TUNED), name="tuned")
    for step, accuracy in ((10, 0.25), (20, 0.75), (30, 0.5)):
        writes.write_checkpoint(db, run_id, step, f"/checkpoints/{step}", accuracy)
    return run_id


def config_of(db: Database, run_id: str) -> Any:
    run = reads.get_run(db, run_id)
    assert run is not None
    return run.run_config()


def test_a_checkpoint_is_evaluated_by_a_run_that_begins_with_it_and_has_no_step(db: Database, ask: Ask, run_id: str):
    (document,) = ask("evaluate", f"{run_id}@30", "--samples", "4", "--split", "test", "--set", "task.operands_max=3")
    config = config_of(db, document["run_id"])
    assert (document["name"], document["total_steps"], document["parent"]) == ("tuned@30-eval", 0, None)
    assert config.model.init_from == f"run:{run_id}@30"
    assert (config.evaluation.samples, config.evaluation.split, config.evaluation.size) == (4, "test", 64)
    assert (config.task.largest_operand, config.task.operands_max, config.rollout.max_tokens) == (9, 3, 40)
    assert (config.seed, config.lora.rank, config.rollout.top_p) == (3, None, 1.0)


def test_whatever_the_run_trained_with_no_remark_is_left_of_it():
    assert remarks(parse_config(TUNED))
    assert remarks(evaluation_config(parse_config(TUNED), "abc", 30)) == ()


def test_a_run_alone_stands_for_its_most_accurate_checkpoint_and_that_is_said(db: Database, invoke: Ask, run_id: str):
    said = " ".join(invoke("evaluate", "tuned").stderr.split())
    assert f"Evaluating tuned ({run_id}) at its checkpoint of step 20, the most accurate one (75.0%)." in said
    assert config_of(db, reads.list_runs(db)[0].run_id).model.init_from == f"run:{run_id}@20"


def test_where_no_checkpoint_was_measured_it_is_the_last_one(db: Database, invoke: Ask):
    run_id = queue.enqueue(db, parse_config({}), name="blind")
    for step in (10, 20):
        writes.write_checkpoint(db, run_id, step, f"/checkpoints/{step}", None)
    assert "step 20, the last one." in invoke("evaluate", "blind").stderr


def test_a_model_is_evaluated_as_the_preset_of_the_base_model_has_it(db: Database, ask: Ask, tmp_path: Path):
    (document,) = ask("evaluate", "tiny-math", "--name", "as it is")
    config = config_of(db, document["run_id"])
    assert (document["preset"], document["name"], config.evaluation.samples) == ("base-model", "as it is", 8)
    (other,) = ask("evaluate", str(tmp_path))
    assert config_of(db, other["run_id"]).model.name == str(tmp_path)
    (hub,) = ask("evaluate", "Qwen/Qwen2.5-Math-1.5B")
    assert (hub["name"], config_of(db, hub["run_id"]).model.name) == (
        "Qwen2.5-Math-1.5B-eval",
        "Qwen/Qwen2.5-Math-1.5B",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "evaluate=nothing is neither a run nor a model; give RUN@STEP"),
        (["tuned@7"], "evaluate=tuned@7 names no checkpoint; use one of"),
        (["tuned", "--set", "grpo.steps=5"], "grpo.steps=5, but an evaluation trains nothing; set grpo.steps=0"),
        (["tuned", "--samples", "2", "--set", "num_samples=4"], "evaluation.samples is given twice"),
        (
            ["tuned", "--samples", "2", "--set", "evaluation.samples=4"],
            "evaluation.samples is given twice: 2 and --set",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_words(db: Database, invoke: Ask, run_id: str, arguments, message):
    assert message in invoke("evaluate", *arguments, exit_code=2).stderr
    assert len(reads.list_runs(db)) == 1


def test_a_run_without_a_checkpoint_says_so(db: Database, invoke: Ask):
    queue.enqueue(db, parse_config({}), name="fresh")
    assert "none yet: it has no checkpoint" in invoke("evaluate", "fresh", exit_code=2).stderr


def test_what_was_measured_is_shown_with_its_n_and_its_interval(db: Database, invoke: Ask, monkeypatch, run_id: str):
    from tests.store.filled import sampled_evaluation

    def be_its_worker(db: Database, run_ids: list[str], out: object) -> bool:
        writes.write_evaluation(db, run_ids[0], sampled_evaluation(0, [4, 2, 0, 1], samples=4))
        writes.write_evaluation(
            db, run_ids[0], EvaluationRecord(0, "validation", "greedy", 0.0, {"accuracy": 0.5}, ()), n=4
        )
        queue.transition(db, run_ids[0], "starting")
        queue.transition(db, run_ids[0], "running")
        queue.transition(db, run_ids[0], "succeeded")
        return True

    monkeypatch.setattr("engine.cli.manage.wait_for", be_its_worker)
    shown = invoke("evaluate", f"{run_id}@20", "--wait").stdout
    assert "4 × 4" in " ".join(shown.split())
    assert "43.8%" in shown
    # Shares 1, .5, 0, .25: mean .4375, s = .4270, ± 1.96 · .2135.
    document = command.summarize_evaluation(db, reads.evaluations(db, [reads.list_runs(db)[0].run_id])[1])
    assert document["accuracy_interval"] == pytest.approx([0.4375 - 0.41843, 0.4375 + 0.41843], abs=1e-4)
    assert (document["problems"], document["samples"]) == (4, 4)
    assert document["metrics"]["pass@2"] == pytest.approx((1 + 5 / 6 + 0 + 1 / 2) / 4)
