import pytest

from benchmarks.step_ours import job_config, measure
from benchmarks.step_time import check_tokens, make_job, per_step


def steps(*prompt_tokens: int, tokens: int = 6144) -> list[dict[str, float]]:
    return [{"tokens": tokens, "prompt_tokens": each} for each in prompt_tokens]


def test_our_side_trains_on_the_prompts_and_lengths_that_the_other_side_is_given():
    job = make_job(batch=16, micro_batch=8, tokens=4, steps=2)
    config = job_config(job)
    first, second = measure(job)
    assert len(job["prompts"]) == len(job["golds"]) == 2 * config.prompts_per_step == 4
    assert first["tokens"] == second["tokens"] == 16 * 4
    # tiny-math's tokenizer has one token per tag and digit: fewer tokens than characters.
    assert 0 < second["prompt_tokens"] < 8 * sum(map(len, job["prompts"][2:]))
    assert second["cpu_s"] >= second["rollout_cpu_s"] + second["update_cpu_s"] > 0
    assert [gold for _, gold, _ in second["answers"][::8]] == job["golds"][2:]


def test_times_of_unequal_work_are_refused():
    job = make_job(steps=1)
    check_tokens(job, steps(100, 120), steps(100, 120))
    with pytest.raises(RuntimeError, match=r"tokens=\[6000, 6144\] were sampled in a step, not 6144"):
        check_tokens(job, steps(100), steps(100, tokens=6000))
    with pytest.raises(RuntimeError, match="prompt tokens per step differ"):
        check_tokens(job, steps(100, 120), steps(100, 121))


def test_a_figure_is_the_median_of_medians():
    measured = [[{"cpu_s": 1.0, "rollout_cpu_s": 0.5}] * 2, [{"cpu_s": 3.0, "rollout_cpu_s": 1.0}], [{"cpu_s": 9.0}]]
    assert per_step(measured, "cpu_s") == 3.0
    assert per_step(measured[:2], "rest_cpu_s") == 1.25
