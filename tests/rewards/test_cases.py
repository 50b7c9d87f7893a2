"""The policy of docs/grading.md, kind by kind."""

from collections.abc import Iterator

import pytest

from engine.rewards.grading import grade, grade_answers
from engine.rewards.pool import GraderPool
from tests.rewards.cases import ANSWERS, COMPLETIONS, VERDICTS

WRITTEN = {
    "gsm8k": "So it is.\n#### {}",
    "boxed": r"So it is \boxed{{{}}}",
    "answer_tag": "</think> <answer>{}</answer>",
    "finqa": "Answer: {}",
}


@pytest.fixture(scope="module")
def pool() -> Iterator[GraderPool]:
    with GraderPool(1) as pool:
        yield pool


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_gets_the_verdict_of_its_kind(kind: str, pool: GraderPool):
    wrong = []
    for format_name, answer, gold, verdict in ANSWERS[kind]:
        (found,) = grade_answers([(answer, gold)], format_name, pool=pool)
        if found.verdict != VERDICTS[verdict]:
            wrong.append((format_name, answer, gold, VERDICTS[verdict], found))
    assert wrong == []


@pytest.mark.parametrize("kind", COMPLETIONS)
def test_a_completion_gets_the_verdict_of_its_kind(kind: str, pool: GraderPool):
    wrong = []
    for format_name, completion, gold, verdict in COMPLETIONS[kind]:
        (found,) = grade([(completion, gold)], format_name, pool=pool)
        if found.verdict != VERDICTS[verdict]:
            wrong.append((format_name, completion, gold, VERDICTS[verdict], found))
    assert wrong == []
