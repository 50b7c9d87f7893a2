import json
import sys

import pytest

from benchmarks import step_time
from benchmarks.step_ours import job_config, measure
from benchmarks.step_time import check_tokens, make_job, per_step, run_side


def steps(*prompt_tokens: int, tokens: int = 6144) -> list[dict[str, float]]:
    return [{"tokens": tokens, "prompt_tokens": each} for each in prompt_tokens]


def test_our_side_trains_on_the_prompts_and_lengths_that_the_other_side_is_given():
    job = make_job(batch=16, micro_batch=8, tokens=4, steps=2)
    config = job_config(job)
    (second,) = measure(job)
    assert len(job["prompts"]) == 2 * config.prompts_per_step == 4
    assert second["tokens"] == 16 * 4
    # tiny-math's tokenizer has one token per tag and digit: fewer tokens than characters.
    assert 0 < second["prompt_tokens"] < 8 * sum(map(len, job["prompts"][2:]))
    assert second["cpu_s"] >= second["rollout_cpu_s"] + second["update_cpu_s"] > 0


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


def test_a_side_that_fails_says_why(monkeypatch, tmp_path):
    (tmp_path / "broken.py").write_text("raise SystemExit('no such model')")
    monkeypatch.setattr(step_time, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="broken ended with status 1: no such model"):
        run_side(sys.executable, "broken", {"threads": 1})


def test_what_a_side_prints_besides_is_passed_over(monkeypatch, tmp_path):
    (tmp_path / "noisy.py").write_text(
        "import json, sys\n"
        "job = json.load(sys.stdin)\n"
        "print('a warning')\n"
        "print('measured: ' + json.dumps([{'cpu_s': job['threads']}]))\n"
        "print('bye')\n"
    )
    monkeypatch.setattr(step_time, "ROOT", tmp_path)
    assert run_side(sys.executable, "noisy", json.loads('{"threads": 1}')) == [{"cpu_s": 1}]
