import pytest

from benchmarks import rollout
from benchmarks.entry import LeftOut
from benchmarks.rollout import entries, make_job, measure
from benchmarks.rollout_side import measure as sample
from engine.errors import PolicyError


def rounds(*cpu_s: float, tokens: int = 256) -> list[dict[str, float]]:
    return [{"cpu_s": each, "wall_s": 2 * each, "tokens": tokens} for each in cpu_s]


def test_every_way_to_sample_gives_the_lengths_that_it_is_asked_for():
    job = make_job("tiny-math", tokens=3, rounds=2)
    measured = {name: [sample(job | {"sampler": name})] for name in ("generate", "transformers engine")}
    of_cpu, of_wall = entries("rollout/x", job, measured)
    assert (of_cpu.name, of_cpu.unit) == ("rollout/x: transformers engine", "tokens/CPU s")
    assert (of_wall.name, of_wall.unit) == ("rollout/x: transformers engine, by the wall", "tokens/s")
    assert of_cpu.ours > 0 < of_cpu.other
    with pytest.raises(RuntimeError, match=r"sampled \[384\] tokens, not 512"):
        entries("rollout/x", job | {"tokens": 4}, measured)


def test_the_first_batch_of_a_process_is_not_counted():
    job = {"prompts": [[1]] * 2, "group": 8, "tokens": 16}
    measured = {"generate": [rounds(9.0, 2.0, 2.0)], "vllm engine": [rounds(9.0, 1.0, 1.0)]}
    of_cpu, of_wall = entries("rollout/x", job, measured)
    assert (of_cpu.ours, of_cpu.other, of_cpu.ratio) == (256.0, 128.0, 2.0)
    assert (of_wall.ours, of_wall.other) == (128.0, 64.0)


def test_what_is_not_installed_is_left_out_with_its_reason(monkeypatch):
    def missing(model: str) -> dict:
        if model == "smollm2-135m":
            raise PolicyError("run make smollm2")
        return {"prompts": [[1]] * 2, "group": 8, "tokens": 16, "threads": 1}

    monkeypatch.setattr(rollout, "make_job", missing)
    monkeypatch.setattr(rollout, "find_spec", lambda name: None)
    monkeypatch.setattr(rollout, "alternate", lambda sides, n: {name: [rounds(1.0, 1.0)] * n for name in sides})
    found = measure(repetitions=1)
    gaps = {each.name: each.reason for each in found if isinstance(each, LeftOut)}
    assert gaps == {
        "rollout/tiny-math 2x8x16, 1 thread: vllm engine": "vLLM is not installed: make vllm",
        "rollout/smollm2-135m": "run make smollm2",
    }
    assert len(found) == 4
