from dataclasses import replace

import pytest

from engine.config import RunConfig, parse_config
from engine.planner import ModelShape, Part, cache_places, find_shape, plan_memory
from engine.planner.activations import layer_bytes

# 1 layer: matrices 4·4 + 4·2 + 4·2 + 4·4 + 3 · 4·6 = 120, norms 12, words 10·4: 172 parameters.
SHAPE = ModelShape(
    layers=1, hidden=4, intermediate=6, heads=2, kv_heads=1, head_dim=2, vocabulary=10, positions=64, tied=True
)


def config(**fields: object) -> RunConfig:
    base = {"rollout.rollout_batch_size": 8, "rollout.group_size": 4, "rollout.max_tokens": 10, "evaluation.size": 2}
    return parse_config({**base, **{path.replace("__", "."): value for path, value in fields.items()}})


def parts(prompt_tokens: int = 5, **fields: object) -> dict[str, Part]:
    return {part.name: part for part in plan_memory(config(**fields), SHAPE, prompt_tokens=prompt_tokens).parts}


def test_weights_gradients_and_moments_are_their_number_times_their_width() -> None:
    found = parts()
    assert {name: found[name].bytes for name in ("weights", "gradients", "moments")} == {
        "weights": 172 * 4,
        "gradients": 172 * 4,
        "moments": 2 * 172 * 4,
    }
    half = parts(model__dtype="bfloat16", optimizer__name="adamw_8bit")
    assert {name: half[name].bytes for name in ("weights", "gradients", "moments")} == {
        "weights": 172 * 2,
        "gradients": 172 * 2,
        "moments": 2 * 172,
    }


def test_a_sentence_has_the_numbers_of_its_formula() -> None:
    assert parts()["weights"].sentence == "172 parameters × 4 bytes (float32)."
    assert "8 completions in a micro-batch × 15 tokens" in parts()["activations"].sentence
    assert "1 completion in a micro-batch" in parts(grpo__gradient_accumulation_steps=8)["activations"].sentence
    assert "4 layers × 2 heads × 32 × 4 bytes" in plan_memory(RunConfig(), _tiny_math()).parts[-1].sentence


def test_under_adapters_only_they_have_gradients_moments_and_a_reference() -> None:
    # Rank 2 × (8 + 6 + 6 + 8 + 10 + 10 + 10) = 116, in float32 beside bfloat16 weights.
    found = parts(lora__rank=2, model__dtype="bfloat16", kl__beta=0.1)
    assert found["weights"].bytes == 172 * 2
    assert found["adapters"].bytes == 116 * 4
    assert found["gradients"].bytes == 116 * 4
    assert found["moments"].bytes == 2 * 116 * 4
    assert found["reference"].bytes == 116 * 4


def test_a_reference_is_kept_only_where_it_is_used_and_an_average_in_float32() -> None:
    assert "reference" not in parts()
    assert parts(kl__measure=True, model__dtype="bfloat16")["reference"].bytes == 172 * 2
    assert parts(kl__beta=0.1, kl__reference="ema", model__dtype="bfloat16")["reference"].bytes == 172 * 4


def test_the_activations_of_a_layer_can_be_added_up_by_hand() -> None:
    # float32. Norms 2 · (4·4 + 4 + 4·4); query and output 2·4·4, key and value 2·2·4, sums 2·4; gate, SiLU, up 3·6·4;
    # inputs of the linear layers 2·4·4 + 6·4.
    assert layer_bytes(SHAPE, 4) == 72 + 32 + 16 + 8 + 72 + 56
    # bfloat16 keeps a float32 copy of what goes into a norm.
    assert layer_bytes(SHAPE, 2) == 2 * (16 + 4 + 8) + (16 + 8) + 8 + 36 + 28
    # Frozen norms keep no normed values; adapters of rank 3 keep 7 · 3 numbers.
    assert layer_bytes(SHAPE, 4, 3) == layer_bytes(SHAPE, 4) - 2 * 16 + 7 * 3 * 4


def test_activations_grow_with_the_micro_batch_and_the_tokens_alone() -> None:
    whole = parts()["activations"].bytes
    assert parts(grpo__gradient_accumulation_steps=4)["activations"].bytes == whole // 4
    assert parts(prompt_tokens=20)["activations"].bytes == 2 * whole
    assert parts(rollout__rollout_batch_size=16, grpo__train_batch_size=8)["activations"].bytes == whole


def test_in_a_run_of_sft_alone_a_micro_batch_is_no_larger_than_its_batch() -> None:
    pure = {"sft__steps": 5, "grpo__steps": 0}
    whole = parts()["activations"].bytes
    assert parts(**pure, sft__batch_size=2)["activations"].bytes == whole / 4
    assert parts(**pure, sft__batch_size=32)["activations"].bytes == whole
    assert parts(sft__steps=5, sft__batch_size=2)["activations"].bytes == whole


def test_with_checkpointing_either_the_logits_or_one_layer_is_there_at_the_peak() -> None:
    found = parts(model__gradient_checkpointing=True)
    # 8 · 15 tokens × 256 bytes of the layer exceed 5 · 8 · 10 · 10 · 4 bytes of logits.
    assert found["recomputed"].bytes == 8 * 15 * 256
    assert "logits" not in found
    assert found["activations"].bytes == 8 * 15 * (16 + 36 + 16)
    wordy = plan_memory(config(model__gradient_checkpointing=True), replace(SHAPE, vocabulary=1000), prompt_tokens=5)
    # 5 · 8 · 10 · 1000 · 4 bytes of logits.
    assert [(part.name, part.bytes) for part in wordy.of("update")][-1] == ("logits", 1_600_000)


def test_logits_take_at_most_what_they_are_given() -> None:
    assert parts()["logits"].bytes == 5 * 8 * 10 * 10 * 4
    assert parts(entropy__bonus=0.01)["logits"].bytes == 6 * 8 * 10 * 10 * 4
    wide = plan_memory(config(model__logits_memory=3), _tiny_math()).parts
    assert "at most" not in next(part.sentence for part in wide if part.name == "logits")
    capped = plan_memory(config(rollout__max_tokens=2000, model__logits_memory=3), _tiny_math()).parts
    logits = next(part for part in capped if part.name == "logits")
    assert logits.bytes == 5 * 3 * 2**20
    assert "at most 3 MiB" in logits.sentence


def test_the_cache_has_room_ahead_of_the_tokens() -> None:
    # 5 and 16 more; then 22 and 16 more where the room is used up.
    assert cache_places(5, 10) == 21
    assert cache_places(5, 17) == 21
    assert cache_places(5, 18) == 38
    # From 64 on a quarter: 100 + 25, 126 + 31.
    assert cache_places(100, 26) == 125
    assert cache_places(100, 27) == 157
    # Key and value, 1 layer, 1 head of 2, 4 bytes, 8 rows, 21 places.
    assert parts()["cache"].bytes == 2 * 1 * 1 * 2 * 4 * 8 * 21


def test_at_most_1024_rows_are_sampled_at_once_and_an_evaluation_takes_no_more_than_a_step() -> None:
    many = parts(rollout__rollout_batch_size=4096, grpo__train_batch_size=8)["cache"]
    assert many.bytes == 2 * 2 * 4 * 1024 * 21
    assert parts(evaluation__size=100)["cache"].bytes == parts(evaluation__size=1)["cache"].bytes


def test_many_long_prompts_at_once_can_be_the_peak_of_the_rollout() -> None:
    found = parts(prompt_tokens=100, rollout__group_size=2, rollout__max_tokens=2)
    # 4 prompts × 100 tokens × 4 bytes × (3 · 6 + 2 · 4); their cache has room for 125.
    assert found["prompts"].bytes == 4 * 100 * 4 * 26
    assert found["cache"].bytes == 2 * 2 * 4 * 4 * 125
    assert "draw" not in found


def test_a_phase_has_its_parts_and_the_peak_is_that_of_the_larger_one() -> None:
    plan = plan_memory(config(), SHAPE, prompt_tokens=5)
    assert [part.name for part in plan.of("rollout")] == ["weights", "moments", "draw", "cache"]
    assert [part.name for part in plan.of("update")] == ["weights", "gradients", "moments", "activations", "logits"]
    assert plan.bytes_in("rollout") == sum(part.bytes for part in plan.of("rollout"))
    assert plan.peak == plan.bytes_in(plan.largest_phase) == max(plan.bytes_in("rollout"), plan.bytes_in("update"))
    assert plan.prompt_tokens == 5


def test_a_reference_job_fits_a_24_gib_card_only_with_what_saves_memory() -> None:
    shape = find_shape("Qwen/Qwen2.5-Math-1.5B")
    assert shape is not None
    careful = parse_config(
        {
            "model.name": "Qwen/Qwen2.5-Math-1.5B",
            "model.dtype": "bfloat16",
            "model.gradient_checkpointing": True,
            "optimizer.name": "adamw_8bit",
            "grpo.gradient_accumulation_steps": 256,
            "rollout.rollout_batch_size": 256,
            "rollout.max_tokens": 1024,
        }
    )
    gib = 2**30
    assert 10 * gib < plan_memory(careful, shape).bytes_in("update") < 13 * gib
    assert 15 * gib < plan_memory(careful, shape).bytes_in("rollout") < 18 * gib


def _tiny_math() -> ModelShape:
    shape = find_shape("tiny-math")
    assert shape is not None
    return shape


@pytest.mark.parametrize("prompt_tokens", [1, 64, 4096])
def test_every_part_of_every_plan_has_bytes_and_a_sentence(prompt_tokens: int) -> None:
    for part in plan_memory(RunConfig(), _tiny_math(), prompt_tokens=prompt_tokens).parts:
        assert part.bytes > 0
        assert part.sentence.endswith(".")
        assert part.phases


def test_a_run_without_steps_needs_no_memory_for_an_update() -> None:
    plan = plan_memory(config(grpo__steps=0), SHAPE, prompt_tokens=5)
    assert {part.name for part in plan.parts} <= {"weights", "prompts", "draw", "cache"}
    assert (plan.bytes_in("update"), plan.largest_phase) == (0, "rollout")
    assert parts(grpo__steps=0)["weights"].bytes == 172 * 4
