import pytest

from engine.config import parse_config
from engine.errors import TaskError
from engine.rewards.gold import find_gold_faults, with_good_gold
from engine.rewards.verifiers import answer_tag, boxed, gsm8k
from engine.tasks.task import load_task
from engine.types import Problem, Reward


def faulty(golds: dict[str, str], reward=answer_tag) -> list[str]:
    problems = [Problem(name, "?", gold) for name, gold in golds.items()]
    return [fault.problem.problem_id for fault in find_gold_faults(problems, reward)]


@pytest.fixture
def sheet(tmp_path):
    """Ten problems of a local file; the gold answers of two of them cannot be read as numbers."""
    rows = [f'{{"question": "What is {n}+{n}?", "answer": "It is.\\n#### {2 * n}"}}' for n in range(8)]
    rows += ['{"question": "Who?", "answer": "#### a b c d e f g"}', '{"question": "Why?", "answer": "No end."}']
    (tmp_path / "sheet.jsonl").write_text("\n".join(rows))
    return {"task.name": f"jsonl:{tmp_path / 'sheet.jsonl'}", "prompt.name": "hash_line", "held_out_share": 0.2}


def test_gold_answers_that_can_be_read_have_no_fault():
    assert faulty({"a": "16", "b": "-0.5", "c": "1,365"}) == []


def test_gold_answers_that_cannot_be_read_are_found_in_their_order():
    assert faulty({"a": "16", "b": "n/a", "c": ""}) == ["b", "c"]


def test_gold_is_read_as_the_reward_that_will_judge_reads_it():
    golds = {"a": r"\sqrt{3}", "b": "16"}
    assert faulty(golds, boxed) == []
    assert faulty(golds, gsm8k) == ["a"]


def test_a_reward_with_a_comparison_of_its_own_is_not_asked_for_gold():
    assert faulty({"a": ""}, lambda completion, gold: Reward(0.0, {}, None, "wrong")) == []


def test_a_run_is_refused_for_any_faulty_problem_of_a_finite_task(sheet):
    config = parse_config({**sheet, "rollout_batch_size": 4, "group_size": 2})
    with pytest.raises(TaskError, match=r"^gold: 2 of 10 problems .* task.gold_faults=leave_out\.$"):
        with_good_gold(load_task(config.task), config, gsm8k)


def test_faulty_problems_are_left_out_of_every_split_if_the_config_says_so(sheet):
    config = parse_config({**sheet, "rollout_batch_size": 4, "group_size": 2, "gold_faults": "leave_out"})
    whole = load_task(config.task)
    task, faults = with_good_gold(whole, config, gsm8k)
    assert {fault.problem.question for fault in faults} == {"Who?", "Why?"}
    assert not {fault.problem.problem_id for fault in faults} & {each.problem_id for each in task.everything()}
    assert len(task.everything()) == len(whole.everything()) - 2
    assert sum(task.report.problems.values()) == 8
