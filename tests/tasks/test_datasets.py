import json

import pytest

from engine.config.sections import TaskConfig
from engine.errors import TaskError
from engine.tasks.datasets import as_text
from engine.tasks.task import load_task
from tests.tasks.test_finqa import ROW

GSM8K = {"question": "Two bags hold 3 nuts each. How many nuts?", "answer": "2*3=<<2*3=6>>6 nuts.\n#### 6"}
MATH = {"problem": "What is $\\frac12+\\frac12$?", "solution": "It is $\\boxed{1}$.", "level": "Level 1"}


def only_problem(config: TaskConfig):
    (problem,) = load_task(config).train_batch(1, 1, seed=0)
    return problem


def test_gsm8k_keeps_the_worked_solution_as_gold(write_jsonl):
    path = write_jsonl("train.jsonl", [GSM8K])
    problem = only_problem(TaskConfig(name="gsm8k", path=str(path)))
    assert (problem.question, problem.gold) == (GSM8K["question"], GSM8K["answer"])
    assert problem.problem_id.startswith("gsm8k-")


def test_math_takes_the_short_answer_where_the_data_has_one_and_else_the_solution(write_jsonl):
    boxed = only_problem(TaskConfig(name="math", path=str(write_jsonl("a.jsonl", [MATH]))))
    row = {**MATH, "answer": "1", "unique_id": "train/algebra/1.json"}
    short = only_problem(TaskConfig(name="math", path=str(write_jsonl("b.jsonl", [row]))))
    assert (boxed.gold, short.gold) == ("It is $\\boxed{1}$.", "1")
    assert short.problem_id == "math-train/algebra/1.json"


def test_finqa_reads_the_original_schema_with_the_value_of_its_program_as_gold(tmp_path):
    row = {**ROW, "qa": {**ROW["qa"], "answer": "25%", "exe_ans": 0.25}}
    (tmp_path / "train.json").write_text(json.dumps([row, {**row, "id": "b", "qa": {**row["qa"], "exe_ans": "yes"}}]))
    task = load_task(TaskConfig(name="finqa", path=str(tmp_path / "train.json"), overlap="keep", held_out_share=0.01))
    assert task.report.problems["train"] + task.report.problems["validation"] == 2
    gold = {
        p.problem_id: p.gold
        for split in ("train", "validation")
        for p in task.problems(split, task.report.problems[split], seed=0)
    }
    assert gold == {"finqa-ACME/2014/page_7.pdf-1": "0.25", "finqa-b": "yes"}


def test_the_same_finqa_question_about_two_filings_is_no_overlap(tmp_path):
    row = {**ROW, "qa": {**ROW["qa"], "exe_ans": 0.25}}
    other = {**row, "id": "b", "filename": "OTHER/2014/page_1.pdf"}
    (tmp_path / "train.json").write_text(json.dumps([row]))
    (tmp_path / "dev.json").write_text(json.dumps([other]))
    (tmp_path / "test.json").write_text(json.dumps([{**row, "id": "c"}, {**other, "id": "d", "filename": "X"}]))
    config = TaskConfig(name="finqa", path=str(tmp_path), context="none", overlap="keep")
    (overlap,) = load_task(config).report.overlaps
    assert (overlap.first, overlap.second, overlap.count) == ("train", "test", 1)


def test_own_data_names_its_columns(write_jsonl):
    path = write_jsonl("mine.jsonl", [{"q": {"text": "Why?"}, "a": 7, "n": 12}])
    config = TaskConfig(
        name=f"jsonl:{path}", question_column="q.text", answer_column="a", id_column="n", validation_from="auto"
    )
    problem = only_problem(config)
    assert (problem.question, problem.gold, problem.problem_id) == ("Why?", "7", "jsonl-12")


def test_own_data_says_its_splits_in_a_column(write_jsonl):
    rows = [
        {"question": f"{n}?", "answer": n, "part": part} for n, part in enumerate(["train", "dev", "test", "train"])
    ]
    path = write_jsonl("mine.jsonl", rows)
    task = load_task(TaskConfig(name="jsonl", path=str(path), split_column="part"))
    assert task.report.problems == {"train": 2, "validation": 1, "test": 1}


def test_a_column_that_the_data_lacks_is_refused_before_anything_is_trained(write_jsonl):
    path = write_jsonl("mine.jsonl", [{"prompt": "Why?", "answer": "7"}])
    with pytest.raises(TaskError, match=r"^task\.question_column: question is not a column .* has prompt, answer"):
        load_task(TaskConfig(name="jsonl", path=str(path)))


def test_the_report_names_the_data(write_jsonl):
    path = write_jsonl("mine.jsonl", [{"question": "Why?", "answer": "7"}])
    (sentence,) = load_task(TaskConfig(name="jsonl", path=str(path))).report.sentences
    assert sentence == f"jsonl ({path}): train 1 problems."


@pytest.mark.parametrize(
    ("value", "text"),
    [("1,365", "1,365"), (7, "7"), (7.0, "7"), (0.56197, "0.56197"), (1e-07, "0.0000001"), (-3.5, "-3.5"), (None, "")],
)
def test_a_cell_is_written_as_text(value, text):
    assert as_text(value, field="answer_column") == text


@pytest.mark.parametrize("value", [["1", "2"], {"a": 1}, True, float("nan"), float("inf")])
def test_a_cell_that_is_neither_text_nor_number_is_refused(value):
    with pytest.raises(TaskError, match=r"^task\.answer_column: the column holds .* neither text nor number"):
        as_text(value, field="answer_column")
