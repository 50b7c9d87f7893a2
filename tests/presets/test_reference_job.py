"""The presets of the reference job, against the GPU that each is named after. On paper: no GPU was there."""

from pathlib import Path

import pytest

from engine.config import RunConfig, diff, parse_config
from engine.planner import GIB, MemoryPlan, find_shape, fits, plan_memory
from engine.presets import load_preset

MODELS = Path(__file__).parents[2] / "docs" / "models.md"
NAMES = {f"{task}-1.5b-{gigabytes}gb": gigabytes for task in ("gsm8k", "math") for gigabytes in (24, 80)}


def planned(config: RunConfig, gigabytes: int) -> MemoryPlan:
    shape = find_shape(config.model.name)
    assert shape is not None
    return plan_memory(config, shape, device_bytes=gigabytes * GIB)


@pytest.mark.parametrize("gigabytes", [24, 80])
def test_the_page_of_models_has_the_planners_figures(gigabytes: int) -> None:
    plan = planned(load_preset(f"gsm8k-1.5b-{gigabytes}gb").config, gigabytes)
    assert plan.sampler is not None
    trainer = sum(part.bytes for part in plan.of("rollout") if part.name in ("weights", "moments"))
    rollout, update, share = plan.bytes_in("rollout"), plan.bytes_in("update"), plan.bytes_in("rollout") - trainer
    row = (
        f"| `gsm8k-1.5b-{gigabytes}gb`, `math-1.5b-{gigabytes}gb` | {rollout / GIB:.1f} | {trainer / GIB:.1f} + "
        f"{share / GIB:.1f} | {update / GIB:.1f} | {plan.sampler.at_once} of {plan.sampler.rows} |"
    )
    assert row in MODELS.read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_each_fits_its_gpu_and_leaves_more_than_a_tenth_of_it(name: str) -> None:
    plan = planned(load_preset(name).config, NAMES[name])
    assert fits(plan, NAMES[name] * GIB) == "fits"
    assert plan.sampler is not None
    assert plan.sampler.waves == (2 if NAMES[name] == 24 else 1)


@pytest.mark.parametrize(
    ("gigabytes", "switch"),
    [
        (24, {"grpo.gradient_accumulation_steps": 1}),
        (24, {"model.dtype": "float32", "optimizer.name": "adamw"}),
        (24, {"vllm.gpu_memory_utilization": 0.9}),
        (80, {"grpo.gradient_accumulation_steps": 8}),
    ],
)
def test_without_what_saves_memory_it_does_not_fit(gigabytes: int, switch: dict[str, object]) -> None:
    config = load_preset(f"gsm8k-1.5b-{gigabytes}gb", switch).config
    assert fits(planned(config, gigabytes), gigabytes * GIB) == "too_large"


def test_what_needs_80_gb_does_not_fit_24() -> None:
    large = load_preset("gsm8k-1.5b-80gb").config
    assert fits(planned(large, 24), 24 * GIB) == "too_large"


@pytest.mark.parametrize("name", NAMES)
def test_each_is_the_reference_job(name: str) -> None:
    config = load_preset(name).config
    reference = {
        "model.name": "Qwen/Qwen2.5-Math-1.5B",
        "model.dtype": "bfloat16",
        "prompt.name": "r1_zero",
        "rollout.engine": "vllm",
        "rollout.rollout_batch_size": 256,
        "rollout.group_size": 8,
        "rollout.max_tokens": 1024,
        "rollout.min_tokens": 4,
        "rollout.temperature": 1.0,
        "grpo.steps": 200,
        "grpo.loss_type": "grpo_clip",
        "optimizer.learning_rate": 1e-5,
        "optimizer.beta1": 0.9,
        "optimizer.beta2": 0.95,
        "optimizer.weight_decay": 0.0,
    }
    assert not set(diff(parse_config(reference), config)) & set(reference)
    assert config.on_policy
    assert config.task.name == name.split("-")[0]


def test_on_a_gpu_of_one_size_the_tasks_differ_in_the_task_alone() -> None:
    for gigabytes in (24, 80):
        pair = [load_preset(f"{task}-1.5b-{gigabytes}gb").config for task in ("gsm8k", "math")]
        assert set(diff(*pair)) == {"task.name"}


def test_a_larger_gpu_changes_what_costs_memory_and_nothing_of_the_algorithm() -> None:
    assert set(diff(load_preset("math-1.5b-24gb").config, load_preset("math-1.5b-80gb").config)) == {
        "model.gradient_checkpointing",
        "grpo.gradient_accumulation_steps",
        "optimizer.name",
    }
