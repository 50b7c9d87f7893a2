"""Grades completions: the answer is found, compared at once where that can be done, and by the pool where not."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.errors import RewardError
from engine.rewards.judging import FORMATS, final_gold, judge, needs_algebra, read_gold
from engine.rewards.pool import GraderPool, Question, shared_pool
from engine.types import Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a completion and what is said of it; `text` is None where none was found.

    `seconds` is what the comparison took. `gold_fault` is set where gold cannot be compared.
    """

    text: str | None
    verdict: Verdict
    reason: str
    seconds: float = 0.0
    gold_fault: RewardError | None = None


def grade(pairs: Sequence[tuple[str, str]], format_name: str, *, pool: GraderPool | None = None) -> list[Answer]:
    """Return an answer for each pair of completion and gold, in their order. The text alone is judged, not its form.

    Raises:
        RewardError: if a grader process is needed and none can be started.
    """
    extract = FORMATS[format_name].extract
    return grade_answers([(extract(completion), gold) for completion, gold in pairs], format_name, pool=pool)


def grade_answers(
    pairs: Sequence[tuple[str | None, str]], format_name: str, *, pool: GraderPool | None = None
) -> list[Answer]:
    """Do the same for answers that have been found already, None where there was none."""
    answers = [_grade_at_once(*pair, format_name) for pair in pairs]
    left = [place for place, answer in enumerate(answers) if answer is None]
    if left:
        questions = {place: Question(*pairs[place], format_name) for place in left}
        unique = list(dict.fromkeys(questions.values()))
        graded = dict(zip(unique, (pool or shared_pool()).judge(unique), strict=True))
        for place, question in questions.items():
            found = graded[question]
            answers[place] = Answer(question.answer, found.verdict, found.reason, found.seconds)
    return [answer for answer in answers if answer is not None]


def gold_faults(golds: Sequence[str], format_name: str, *, pool: GraderPool | None = None) -> dict[str, str]:
    """Return each gold answer that does not grade itself correct, with the reason.

    An expression must also be one that math-verify can parse: it could only be matched by the same text otherwise.
    """
    faults: dict[str, str] = {}
    questions: list[Question] = []
    for gold in dict.fromkeys(golds):
        try:
            judgement = judge(final_gold(gold), gold, format_name)
            algebra = needs_algebra(read_gold(gold, format_name))
        except RewardError as fault:
            faults[gold] = str(fault)
            continue
        if judgement is None or judgement.verdict != "correct":
            faults[gold] = "it is not equal to itself" if judgement is None else judgement.reason
        elif algebra:
            questions.append(Question(None, gold, format_name))
    for question, found in zip(questions, (pool or shared_pool()).judge(questions), strict=True):
        if found.verdict != "correct":
            faults[question.gold] = found.reason
    return faults


def _grade_at_once(text: str | None, gold: str, format_name: str) -> Answer | None:
    started = time.perf_counter()
    try:
        if text is None:
            read_gold(gold, format_name)
            answer = Answer(None, "unreadable", FORMATS[format_name].missing)
        else:
            judgement = judge(text, gold, format_name)
            if judgement is None:
                return None
            answer = Answer(text, judgement.verdict, judgement.reason)
    except RewardError as fault:
        answer = Answer(text, "not_graded", f"RewardError: {fault}", gold_fault=fault)
    return replace(answer, seconds=time.perf_counter() - started)
