"""The published data sets themselves, where a machine has them."""

import json

import pytest

from engine.config.sections import TaskConfig
from engine.tasks.listed import ListedTask
from engine.tasks.task import load_task


def load(**settings) -> ListedTask:
    return load_task(TaskConfig(**settings))


def test_gsm8k_loads_whole_and_its_splits_share_no_question(shared_data):
    report = load(name="gsm8k", path=str(shared_data / "gsm8k")).report
    assert report.read == {"train": 7473, "validation": 0, "test": 1319}
    assert (report.overlaps, report.copies, report.incomplete) == ((), 0, 0)
    assert report.problems == {"train": 6726, "validation": 747, "test": 1319}


def test_math_loads_whole_and_two_questions_of_its_training_are_also_in_validation(shared_data):
    report = load(name="math", path=str(shared_data / "math_cs336")).report
    assert (report.read["train"], report.read["validation"]) == (7500, 5000)
    assert [(each.first, each.second, each.count) for each in report.overlaps] == [("train", "validation", 2)]
    assert report.problems["train"] == 7500 - 2 - report.incomplete


def test_math500_is_part_of_the_validation_problems(shared_data, tmp_path):
    (tmp_path / "validation.jsonl").symlink_to(shared_data / "math_cs336" / "validation.jsonl")
    (tmp_path / "test.jsonl").symlink_to(shared_data / "math500" / "test.jsonl")
    (tmp_path / "train.jsonl").symlink_to(shared_data / "math_cs336" / "train.jsonl")
    found = {(each.first, each.second): each.count for each in load(name="math", path=str(tmp_path)).report.overlaps}
    assert found[("validation", "test")] == 500


@pytest.mark.parametrize("context", ["gold", "page", "retrieved", "none"])
def test_finqa_dev_loads_whole_with_every_context(shared_data, context):
    task = load(name="finqa", path=str(shared_data / "finqa" / "dev_200.json"), context=context, validation_from="test")
    assert task.report.problems["train"] == 200
    problems = task.problems("train", 200, seed=0)
    assert all(problem.question.startswith("Context:\n") for problem in problems) == (context != "none")
    numbers = [problem.gold for problem in problems if problem.gold not in ("yes", "no")]
    assert all(abs(float(number)) < 1e12 for number in numbers)


def test_finqa_retrieval_mostly_finds_a_row_that_the_annotators_marked(shared_data):
    rows = {row["id"]: row for row in json.loads((shared_data / "finqa" / "dev_200.json").read_text())}
    path = str(shared_data / "finqa" / "dev_200.json")
    found = 0
    for problem in load(name="finqa", path=path, context="retrieved", validation_from="test").problems(
        "train", 200, seed=0
    ):
        row = rows[problem.problem_id.removeprefix("finqa-")]
        marked = [text for key, text in row["qa"]["gold_inds"].items() if key.startswith("text_")]
        found += any(text in problem.question for text in marked) or not marked
    assert found > 160


def test_finqa_test_loads_as_prompt_and_answer(shared_data):
    path = str(shared_data / "finqa" / "finqa_test_1147.jsonl")
    task = load(name="jsonl", path=path, question_column="prompt", id_column="id", validation_from="test")
    assert task.report.read["train"] == 1147
    assert task.report.problems["train"] + task.report.incomplete + task.report.copies == 1147
