from pathlib import Path

import pytest

from benchmarks import whole_run
from benchmarks.entry import Entry, LeftOut
from benchmarks.sides import Side
from benchmarks.whole_run import PLANS, Plan, check_same, entries, make_job, measure, stop_token_ids
from engine.errors import PolicyError
from engine.policy.policy import load_tokenizer_of
from engine.presets import load_preset


def step(cpu_s: float, reward: float, *, prompt_tokens: int = 70, value: float = 1.0) -> dict:
    answers = [("</think> <answer> 3 </answer>", "3", value)]
    return {
        "cpu_s": cpu_s,
        "wall_s": 2 * cpu_s,
        "rollout_cpu_s": cpu_s / 2,
        "tokens": 40,
        "prompt_tokens": prompt_tokens,
        "reward": reward,
        "mixed": 0.5,
        "answers": answers,
    }


def test_the_quick_start_is_measured_as_its_preset_has_it():
    job, config = make_job(PLANS["quick-start"], "transformers"), load_preset("quick-start").config
    assert (job["steps"], job["batch"], job["group"], job["tokens"]) == (100, 128, 8, 48)
    assert job["learning_rate"] == config.optimizer.learning_rate
    assert len(job["prompts"]) == len(job["golds"]) == 100 * 16
    assert (job["min_tokens"], job["reward"]) == (0, "answer_tag")
    assert job["prompts"][0].endswith("Assistant: <think>")


def test_a_token_that_holds_the_stop_string_ends_completions_on_the_other_side():
    tokenizer = load_tokenizer_of("tiny-math")
    found = stop_token_ids(tokenizer, ["</answer>"])
    assert tokenizer.convert_tokens_to_ids("</answer>") in found
    assert all("</answer>" in tokenizer.decode([token_id]) for token_id in found)
    assert stop_token_ids(tokenizer, []) == []
    with pytest.raises(RuntimeError, match="no token holds one of them"):
        stop_token_ids(tokenizer, ["</answer>", "no such thing"])


def test_a_preset_that_the_other_side_would_run_in_another_way_is_refused():
    with pytest.raises(RuntimeError, match=r"grpo.scale=none, not group_std.*choose another preset"):
        check_same(load_preset("quick-start", {"grpo.scale": "none"}).config)


def test_totals_are_of_the_counted_steps_and_the_median_of_rounds():
    plan = Plan("quick-start", 2, ("transformers",), uncounted=1)
    ours = [[step(9.0, 0.0), step(1.0, 0.5), step(2.0, 1.0)], [step(9.0, 0.0), step(3.0, 0.5), step(4.0, 1.0)]]
    theirs = [[step(9.0, 0.0), step(5.0, 0.0), step(5.0, 1.0)]] * 2
    cpu, wall, rollout, tokens, mixed, reward = entries("run/x", plan, "answer_tag", ours, theirs)
    assert (cpu.name, cpu.ours, cpu.other, cpu.ratio, cpu.n) == ("run/x, 2 steps: all", 5.0, 10.0, 0.5, 2)
    assert (wall.ours, rollout.ours, tokens.ours, mixed.ours) == (10.0, 2.5, 40.0, 0.5)
    assert (reward.ours, reward.other) == (0.75, 0.5)


def test_other_prompts_and_other_rules_are_refused():
    plan = Plan("quick-start", 1, ("transformers",))
    with pytest.raises(RuntimeError, match="prompt tokens per step differ"):
        entries("run/x", plan, "answer_tag", [[step(1.0, 1.0)]], [[step(1.0, 1.0, prompt_tokens=71)]])
    with pytest.raises(RuntimeError, match=r"pay 0\.00% of our completions alike"):
        entries("run/x", plan, "answer_tag", [[step(1.0, 1.0, value=0.0)]], [[step(1.0, 1.0)]])


def test_our_side_runs_and_both_rules_agree_on_what_it_samples(monkeypatch):
    jobs = []

    def alternate(sides: dict[str, Side], repetitions: int) -> dict:
        from benchmarks.step_ours import measure as ours

        jobs.extend(side.job for side in sides.values())
        measured = ours(next(iter(sides.values())).job)
        return {name: [measured] * repetitions for name in sides}

    monkeypatch.setattr(whole_run, "python_of", lambda folder: Path("python"))
    monkeypatch.setattr(whole_run, "alternate", alternate)
    monkeypatch.setitem(whole_run.PLANS, "quick-start", Plan("quick-start", 1, ("transformers",)))
    found = measure(["quick-start"])
    assert len(found) == 6
    assert all(isinstance(entry, Entry) and entry.ours == entry.other > 0 for entry in found)
    assert jobs[0] == jobs[1]


def test_a_model_or_an_engine_that_is_missing_is_said(monkeypatch):
    def missing(plan: Plan, engine: str) -> dict:
        raise PolicyError("run make smollm2")

    monkeypatch.setattr(whole_run, "python_of", lambda folder: Path("python"))
    monkeypatch.setattr(whole_run, "find_spec", lambda name: None)
    monkeypatch.setattr(whole_run, "make_job", missing)
    found = measure(["smollm2"])
    assert all(isinstance(each, LeftOut) and not each.failed for each in found)
    assert [(each.name, each.reason) for each in found] == [
        ("run/smollm2, vllm engine", "vLLM is not installed: make vllm"),
        ("run/smollm2", "run make smollm2"),
    ]
