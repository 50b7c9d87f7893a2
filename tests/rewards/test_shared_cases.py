"""Cases and data sets that do not come with the project, where a machine has them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.rewards.grading import gold_faults, grade, grade_answers
from engine.rewards.pool import GraderPool

CASES, DATA = "GRPO_LAB_SHARED_CASES", "GRPO_LAB_SHARED_DATA"


def folder(variable: str) -> Path:
    found = os.environ.get(variable)
    if not found:
        pytest.skip(f"{variable} names no folder")
    return Path(found)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def pool() -> Iterator[GraderPool]:
    with GraderPool(1) as pool:
        yield pool


def test_every_shared_case_gets_its_verdict_from_the_completion_and_from_the_bare_answer(pool: GraderPool):
    cases = lines(folder(CASES) / "grading.jsonl")
    wrong = []
    for case in cases:
        found = grade([(case["response"], case["gold"])], case["format"], pool=pool)
        if "final" in case:
            found += grade_answers([(case["final"], case["gold"])], case["format"], pool=pool)
        if any((answer.verdict == "correct") != case["expected"] for answer in found):
            wrong.append((case["id"], found))
    assert len(cases) == 85
    assert wrong == []


@pytest.mark.parametrize(("name", "count"), [("train", 7473), ("test", 1319)])
def test_every_gold_solution_of_gsm8k_grades_itself_correct(name: str, count: int, pool: GraderPool):
    golds = [row["answer"] for row in lines(folder(DATA) / "gsm8k" / f"{name}.jsonl")]
    assert len(golds) == count
    assert gold_faults(golds, "gsm8k", pool=pool) == {}
    assert {answer.verdict for answer in grade([(gold, gold) for gold in golds], "gsm8k", pool=pool)} == {"correct"}


def test_the_box_of_every_solution_of_math500_is_its_answer(pool: GraderPool):
    rows = lines(folder(DATA) / "math500" / "test.jsonl")
    found = grade([(row["solution"], row["answer"]) for row in rows], "boxed", pool=pool)
    assert [answer for answer in found if answer.verdict != "correct"] == []


def test_the_gold_answers_of_math_that_cannot_be_read_are_listed(pool: GraderPool):
    rows = lines(folder(DATA) / "math_cs336" / "validation.jsonl")
    faults = gold_faults([row["answer"] for row in rows], "boxed", pool=pool)
    assert [gold[:30] for gold in faults] == ["the correct answer as we norma"]


def test_published_rewards_and_ours_agree(pool: GraderPool):
    files = sorted((folder(DATA) / "published_runs" / "math_runs").glob("*.jsonl"))
    rows = [row for file in files for row in lines(file)]
    found = grade([(row["response"], row["ground_truth"]) for row in rows], "answer_tag", pool=pool)
    apart = [
        (answer, row["ground_truth"])
        for answer, row in zip(found, rows, strict=True)
        if (answer.verdict == "correct") != (row["answer_reward"] > 0)
    ]
    assert len(rows) == 48
    assert apart == []
