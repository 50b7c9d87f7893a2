import pytest

from engine.config import RunConfig, parse_config
from engine.planner import (
    MemoryPlan,
    ModelShape,
    Part,
    find_shape,
    fits,
    plan_memory,
    remedies,
    ways_to_fit,
    with_field,
)

GIB = 2**30


@pytest.fixture(scope="module")
def shape() -> ModelShape:
    found = find_shape("Qwen/Qwen2.5-Math-1.5B")
    assert found is not None
    return found


def config(**fields: object) -> RunConfig:
    base = {"rollout.rollout_batch_size": 256, "rollout.max_tokens": 1024}
    return parse_config({**base, **{path.replace("__", "."): value for path, value in fields.items()}})


def test_a_plan_fits_up_to_nine_tenths_of_the_device() -> None:
    plan = MemoryPlan((Part("weights", 90, ("rollout", "update"), "."),), 1)
    assert fits(plan, 100) == "fits"
    assert fits(plan, 99) == "tight"
    assert fits(plan, 90) == "tight"
    assert fits(plan, 89) == "too_large"


def test_a_run_that_fits_needs_no_remedy() -> None:
    tiny = find_shape("tiny-math")
    assert tiny is not None
    assert remedies(RunConfig(), tiny, 16 * GIB) == ()
    assert ways_to_fit(RunConfig(), tiny, 16 * GIB) == ()


def test_remedies_come_in_the_order_of_their_harm(shape: ModelShape) -> None:
    assert [remedy.path for remedy in remedies(config(), shape, 24 * GIB)] == [
        "grpo.gradient_accumulation_steps",
        "model.gradient_checkpointing",
        "model.logits_memory",
        "optimizer.name",
        "model.dtype",
        "lora.rank",
        "rollout.rollout_batch_size",
    ]


def test_what_a_remedy_saves_is_found_by_planning_again(shape: ModelShape) -> None:
    before = config()
    plan = plan_memory(before, shape)
    for remedy in remedies(before, shape, 24 * GIB):
        changed = with_field(before, remedy.path, remedy.value)
        assert changed is not None
        after = plan_memory(changed, shape)
        assert remedy.peak == after.peak
        assert remedy.fit == fits(after, 24 * GIB)
        assert remedy.saves == max(
            plan.bytes_in("rollout") - after.bytes_in("rollout"), plan.bytes_in("update") - after.bytes_in("update")
        )
        assert remedy.saves > 0


def test_the_mildest_value_that_suffices_is_taken(shape: ModelShape) -> None:
    small = config(model__dtype="bfloat16", optimizer__name="adamw_8bit", model__gradient_checkpointing=True)
    device = 28 * GIB
    first = remedies(small, shape, device)[0]
    assert first.path == "grpo.gradient_accumulation_steps"
    assert first.fit == "fits"
    milder = with_field(small, first.path, first.value // 2)
    assert milder is not None
    assert fits(plan_memory(milder, shape), device) != "fits"


def test_changes_are_made_one_upon_another_until_the_run_fits(shape: ModelShape) -> None:
    before = config()
    made = ways_to_fit(before, shape, 24 * GIB)
    for remedy in made:
        assert fits(plan_memory(before, shape), 24 * GIB) != "fits"
        changed = with_field(before, remedy.path, remedy.value)
        assert changed is not None
        before = changed
    assert fits(plan_memory(before, shape), 24 * GIB) == "fits"
    assert made[-1].fit == "fits"
    assert made[-1].peak == plan_memory(before, shape).peak


def test_where_nothing_suffices_the_last_change_says_so(shape: ModelShape) -> None:
    made = ways_to_fit(config(), shape, GIB)
    assert made
    assert made[-1].fit == "too_large"


def test_eight_bit_moments_are_not_proposed_on_a_cpu(shape: ModelShape) -> None:
    paths = [remedy.path for remedy in remedies(config(model__device="cpu"), shape, 24 * GIB)]
    assert "optimizer.name" not in paths


def test_fewer_completions_are_proposed_only_where_the_rollout_is_too_large(shape: ModelShape) -> None:
    small_cache = config(rollout__rollout_batch_size=64, rollout__max_tokens=128, evaluation__size=16)
    assert plan_memory(small_cache, shape).largest_phase == "update"
    paths = [remedy.path for remedy in remedies(small_cache, shape, 30 * GIB)]
    assert paths
    assert "rollout.rollout_batch_size" not in paths


def test_a_field_that_breaks_a_rule_gives_no_config() -> None:
    assert with_field(RunConfig(), "grpo.gradient_accumulation_steps", 7) is None
    assert with_field(RunConfig(), "grpo.gradient_accumulation_steps", 0) is None
    changed = with_field(RunConfig(), "grpo.gradient_accumulation_steps", 4)
    assert changed == parse_config({"grpo.gradient_accumulation_steps": 4})
