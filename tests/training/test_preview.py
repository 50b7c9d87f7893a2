import json
from pathlib import Path
from typing import Any

import pytest

from engine.config import RunConfig, parse_config
from engine.policy.policy import load_policy
from engine.tasks.prompts import prompt_of
from engine.tasks.run_preview import RunPreview, from_json, gold_words, to_json
from engine.tasks.task import load_task
from engine.training.preview import FAULTS_SHOWN, preview_run

SMALL: dict[str, Any] = {"rollout_batch_size": 8, "group_size": 2, "evaluation.size": 4}


@pytest.fixture
def write(tmp_path: Path):
    """Writes problems in GSM8K's form, as many faulty ones among them, and returns the config that reads them."""

    def write(good: int, faulty: int, **more: Any) -> RunConfig:
        file = tmp_path / "mine.jsonl"
        rows = [{"question": f"What is {n} + 1?", "answer": f"So it is.\n#### {n + 1}"} for n in range(good)]
        rows += [{"question": f"Who knows {n}?", "answer": "#### "} for n in range(faulty)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return parse_config({**SMALL, "task.name": "gsm8k", "task.path": str(file), **more})

    return write


def last(config: RunConfig, n: int = 2) -> RunPreview:
    *_, known = preview_run(config, n)
    assert known.stage == "done"
    return known


def test_the_tokens_are_those_that_training_makes_of_the_first_problems() -> None:
    config = parse_config(SMALL)
    known = last(config)
    policy, prompt = load_policy("tiny-math"), prompt_of(config)
    problems = load_task(config.task).train_batch(1, 4, seed=0)[:2]
    assert [row.problem_id for row in known.rows] == [problem.problem_id for problem in problems]
    for row, problem in zip(known.rows, problems, strict=True):
        rendered = prompt.render(problem.question)
        assert row.tokens is not None
        assert tuple(token.id for token in row.tokens) == policy.encode(rendered)
        assert "".join(token.text for token in row.tokens) == row.prompt == rendered
        assert row.gold_length == len(policy.tokenizer(problem.gold).input_ids)
    assert (known.reward, known.stop_strings) == ("answer_tag", ("</answer>",))
    assert known.gold is not None
    assert gold_words(known.gold) == "8 gold answers of the first step and of the evaluation grade themselves correct."


def test_special_tokens_of_the_tokenizer_are_visible_and_marked(tmp_path: Path) -> None:
    policy = load_policy("tiny-math")
    policy.tokenizer.chat_template = "{{ eos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{{ eos_token }}"
    policy.tokenizer.save_pretrained(tmp_path)
    known = last(parse_config({**SMALL, "prompt.name": "chat", "model.name": str(tmp_path)}), 1)
    (row,) = known.rows
    end = policy.tokenizer.eos_token
    assert known.error is None
    assert row.prompt.startswith(end)
    assert row.prompt.endswith(end)
    assert row.tokens is not None
    assert [token.text for token in row.tokens if token.special] == [end, end]


def test_faulty_gold_answers_are_counted_and_listed_and_the_run_would_be_refused(write) -> None:
    known = last(write(20, FAULTS_SHOWN + 3))
    gold = known.gold
    assert gold is not None
    assert (gold.checked, gold.whole, gold.faulty) == (FAULTS_SHOWN + 23, True, FAULTS_SHOWN + 3)
    assert gold.refuses
    assert len(gold.first) == FAULTS_SHOWN
    assert gold.first[0].gold == "#### "
    assert "is not an answer" in gold.first[0].reason


def test_left_out_problems_are_no_more_among_the_prompts_and_the_sentences(write) -> None:
    config = write(20, 30, **{"task.gold_faults": "leave_out"})
    known = last(config, 4)
    assert known.gold is not None
    assert (known.gold.faulty, known.gold.left_out, known.gold.refuses) == (30, True, False)
    assert all(row.question.startswith("What is") for row in known.rows)
    assert known.sentences[0].endswith("problems.")
    counted = [int(word.rstrip(",")) for word in known.sentences[0].split() if word.rstrip(",").isdecimal()]
    assert sum(counted) == 20


def test_an_evaluation_larger_than_its_split_is_said(write) -> None:
    known = last(write(20, 0, **{"evaluation.size": 100}))
    assert "evaluation.size=100 is above the 2 validation problems there are: each evaluation asks them all." in (
        known.sentences
    )
    assert not any("evaluation.size" in sentence for sentence in last(write(20, 0, **{"evaluation.size": 2})).sentences)


def test_a_run_without_grpo_is_asked_its_held_out_problems(write) -> None:
    known = last(write(20, 0, **{"grpo.steps": 0, "sft.steps": 0}))
    assert {row.split for row in known.rows} == {"validation"}


def test_an_error_ends_the_preview_and_keeps_what_was_known(write) -> None:
    few = last(write(3, 0, rollout_batch_size=64))
    assert few.error is not None
    assert few.error.startswith("rollout.rollout_batch_size: a step takes 32 prompts")
    assert few.rows == ()
    no_model = last(write(20, 0, **{"model.name": "/no/such/folder"}))
    assert no_model.error is not None
    assert no_model.error.startswith("model.name=/no/such/folder cannot be loaded")
    assert no_model.rows[0].tokens is None
    assert no_model.rows[0].prompt.endswith("<think>")


def test_a_reward_that_is_no_verifier_is_not_asked() -> None:
    known = last(parse_config({**SMALL, "task.name": "reasoning_gym:chain_sum"}))
    assert known.gold is not None
    assert known.gold.checked is None
    assert gold_words(known.gold).startswith("Gold answers are not checked")


def test_a_preview_comes_back_from_json_as_it_was(write) -> None:
    for known in preview_run(write(20, 2), 2):
        assert from_json(to_json(known)) == known
    half = RunPreview(error="\ud800 \x00")
    assert from_json(to_json(half)) == half
