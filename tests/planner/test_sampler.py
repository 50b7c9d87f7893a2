import pytest

from engine.config import RunConfig, parse_config
from engine.planner import GIB, MIB, MemoryPlan, ModelShape, find_shape, fits, plan_memory, remedies, ways_to_fit
from engine.planner.sampler import max_model_len, smallest_share

# 1 layer: 172 parameters; a token's key and value are 2 × 1 layer × 1 head × 2 numbers.
SHAPE = ModelShape(
    layers=1, hidden=4, intermediate=6, heads=2, kv_heads=1, head_dim=2, vocabulary=10, positions=64, tied=True
)
# float32: 8,192 tokens × 4 bytes × (3 · 6 + 2 · 4) in the layer, 6 × 8 rows × 10 entries × 4 bytes to draw.
WEIGHTS, WORK = 172 * 4, 8192 * 4 * 26 + 6 * 8 * 10 * 4
SEQUENCE = 64 * 4 * 4  # of the model's 64 places


def config(**fields: object) -> RunConfig:
    base = {
        "rollout.engine": "vllm",
        "rollout.rollout_batch_size": 8,
        "rollout.group_size": 4,
        "rollout.max_tokens": 10,
        "vllm.gpu_memory_utilization": 0.5,
    }
    return parse_config({**base, **{path.replace("__", "."): value for path, value in fields.items()}})


def planned(device_bytes: int | None = None, **fields: object) -> MemoryPlan:
    return plan_memory(config(**fields), SHAPE, prompt_tokens=5, device_bytes=device_bytes)


def sizes(plan: MemoryPlan) -> dict[str, int]:
    return {part.name: part.bytes for part in plan.parts}


@pytest.fixture(scope="module")
def qwen() -> ModelShape:
    found = find_shape("Qwen/Qwen2.5-Math-1.5B")
    assert found is not None
    return found


REFERENCE_JOB = {
    "model.dtype": "bfloat16",
    "model.gradient_checkpointing": True,
    "optimizer.name": "adamw_8bit",
    "grpo.gradient_accumulation_steps": 256,
    "rollout.engine": "vllm",
    "rollout.rollout_batch_size": 256,
    "rollout.max_tokens": 1024,
}


def job(**fields: object) -> RunConfig:
    return parse_config(REFERENCE_JOB | {path.replace("__", "."): value for path, value in fields.items()})


class TestOnAGpu:
    def test_the_rollout_is_the_trainers_state_and_vllms_share_of_the_gpu(self) -> None:
        plan = planned(GIB)
        assert sizes(plan)["sampler_weights"] == WEIGHTS
        assert sizes(plan)["sampler_work"] == WORK
        assert sizes(plan)["sampler_cache"] == GIB // 2 - WEIGHTS - WORK
        # Weights and two moments of the trainer, in float32.
        assert plan.bytes_in("rollout") == 3 * 172 * 4 + GIB // 2

    def test_in_the_update_weights_and_cache_are_given_back(self) -> None:
        asleep, beside = planned(GIB), planned(GIB, rollout__engine="transformers")
        assert asleep.bytes_in("update") == beside.bytes_in("update") + GIB // 2
        assert {part.name for part in asleep.of("update")} >= {"asleep", "gradients"}
        assert not {"sampler_weights", "sampler_work", "sampler_cache"} & {part.name for part in asleep.of("update")}

    def test_captured_graphs_come_out_of_the_share_and_stay_in_the_update(self) -> None:
        eager, captured = planned(4 * GIB), planned(4 * GIB, vllm__enforce_eager=False)
        assert sizes(captured)["sampler_cache"] == sizes(eager)["sampler_cache"] - GIB
        assert captured.bytes_in("rollout") == eager.bytes_in("rollout")
        assert captured.bytes_in("update") == eager.bytes_in("update") + GIB

    def test_a_sampler_in_another_format_has_smaller_weights_and_more_room(self) -> None:
        half = sizes(planned(GIB, vllm__sampler_dtype="bfloat16"))
        assert half["sampler_weights"] == 172 * 2
        assert half["weights"] == 172 * 4

    def test_a_gpu_with_much_memory_computes_more_tokens_at_once(self) -> None:
        assert sizes(planned(80 * GIB))["sampler_work"] == 16384 * 4 * 26 + 6 * 8 * 10 * 4

    def test_one_sequence_of_the_longest_must_have_room(self) -> None:
        # Half of the device is what is taken, and one byte less than a sequence.
        device = 2 * (WEIGHTS + WORK + SEQUENCE - 1)
        short, enough = planned(device), planned(device + 2)
        assert short.sampler is not None
        assert enough.sampler is not None
        assert (short.sampler.cache, short.sampler.longest) == (SEQUENCE - 1, SEQUENCE)
        assert (short.sampler_starts, enough.sampler_starts) == (False, True)
        # A sequence of the run has 5 + 10 tokens of 16 bytes: four of them in 1,024 bytes, eight rows in two waves.
        assert (enough.sampler.at_once, enough.sampler.waves) == (4, 2)

    def test_a_share_that_its_weights_use_up_has_no_room_at_all(self) -> None:
        plan = planned(1000)
        assert plan.sampler is not None
        assert plan.sampler.cache < 0
        assert (plan.sampler.at_once, plan.sampler.waves) == (0, 0)
        assert "sampler_cache" not in sizes(plan)

    def test_the_smallest_share_is_that_of_one_sequence(self) -> None:
        needed = WEIGHTS + WORK + SEQUENCE
        share = smallest_share(config(), SHAPE, rows=8, device_bytes=10 * needed)
        assert share == pytest.approx(0.1)

    def test_without_the_size_of_the_gpu_there_is_no_plan(self) -> None:
        with pytest.raises(ValueError, match=r"rollout\.engine=vllm takes a share of the GPU's memory; give device_by"):
            planned()

    def test_a_run_without_steps_has_the_rollout_alone(self) -> None:
        plan = planned(GIB, grpo__steps=0)
        assert plan.bytes_in("update") == 0
        assert plan.bytes_in("rollout") == 172 * 4 + GIB // 2


class TestOnACpu:
    def test_a_second_copy_of_the_weights_and_the_cache_stay_in_the_update(self) -> None:
        plan = planned(model__device="cpu", vllm__cpu_cache=64)
        beside = planned(model__device="cpu", rollout__engine="transformers")
        assert plan.bytes_in("update") == beside.bytes_in("update") + WEIGHTS + 64 * MIB
        # 4,096 tokens are computed at once there.
        work = 4096 * 4 * 26 + 6 * 8 * 10 * 4
        assert plan.bytes_in("rollout") == 3 * 172 * 4 + WEIGHTS + work + 64 * MIB

    def test_a_cache_without_room_for_a_sequence_is_to_be_raised_to_one(self, qwen: ModelShape) -> None:
        # 28 layers × 2 × 2 heads × 128 × 2 bytes × 2,048 tokens are 56 MiB.
        small = job(model__device="cpu", optimizer__name="adamw", vllm__cpu_cache=55)
        assert fits(plan_memory(small, qwen), 64 * GIB) == "no_room"
        found = remedies(small, qwen, 64 * GIB)
        assert [(each.path, each.value, each.fit) for each in found] == [("vllm.cpu_cache", 56, "fits")]


def test_vllm_is_started_for_prompts_of_1024_tokens_or_what_the_model_has() -> None:
    assert max_model_len(config(), 4096) == 1034
    assert max_model_len(config(), 64) == 64
    assert max_model_len(config(vllm__max_model_len=32), 4096) == 32


def test_a_share_too_large_is_lowered_no_further_than_needed(qwen: ModelShape) -> None:
    greedy = job(vllm__gpu_memory_utilization=0.9)
    assert fits(plan_memory(greedy, qwen, device_bytes=24 * GIB), 24 * GIB) == "too_large"
    (remedy,) = (each for each in remedies(greedy, qwen, 24 * GIB) if each.path == "vllm.gpu_memory_utilization")
    # The trainer's 5.75 GiB and 0.65 × 24 GiB leave a tenth of 24 GiB; 0.7 would not.
    assert (remedy.value, remedy.fit) == (0.65, "fits")
    milder = job(vllm__gpu_memory_utilization=0.7)
    assert fits(plan_memory(milder, qwen, device_bytes=24 * GIB), 24 * GIB) == "tight"


def test_a_share_too_small_is_raised_to_the_smallest_that_starts(qwen: ModelShape) -> None:
    meagre = job(vllm__gpu_memory_utilization=0.1)
    assert fits(plan_memory(meagre, qwen, device_bytes=24 * GIB), 24 * GIB) == "no_room"
    # 2.88 GiB of weights, 1.33 of work and 0.05 of a sequence are 0.18 of 24 GiB.
    found = ways_to_fit(meagre, qwen, 24 * GIB)
    assert [(each.path, each.value, each.saves, each.fit) for each in found] == [
        ("vllm.gpu_memory_utilization", 0.2, 0, "fits")
    ]


def test_a_share_that_breaks_nothing_is_left_alone(qwen: ModelShape) -> None:
    large_update = job(grpo__gradient_accumulation_steps=1)
    paths = [each.path for each in remedies(large_update, qwen, 24 * GIB)]
    assert "grpo.gradient_accumulation_steps" in paths
    assert "vllm.gpu_memory_utilization" not in paths
