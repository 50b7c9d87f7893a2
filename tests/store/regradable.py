"""A run in which it is known by construction what grading again changes."""

import numpy as np

from engine.store import queue, writes
from engine.store.database import Database
from engine.types import (
    Completion,
    CompletionRecord,
    EvaluationAnswer,
    EvaluationRecord,
    GroupRecord,
    Problem,
    Reward,
    StepRecord,
    Verdict,
)
from tests.store.filled import small_config

GOLD = "7"
# What is stored of the four completions of each group, and what the grader of `answer_tag` says of them:
# (text, stored verdict, new verdict).
MEMBERS: list[tuple[str, Verdict, Verdict]] = [
    ("so </think> <answer> 7 </answer>", "wrong", "correct"),
    ("so </think> <answer> 8 </answer>", "correct", "wrong"),
    ("so </think> <answer> 7 </answer>", "correct", "correct"),
    ("no tags", "wrong", "unreadable"),
]
STEPS, GROUPS = 3, 2
COMPLETIONS = STEPS * GROUPS * len(MEMBERS)
"""Of these a quarter each: false negative, false positive, unchanged, no longer readable."""


def fill_regradable(db: Database, name: str = "regradable", **settings: object) -> str:
    """Write the run and return its id. Every step has two groups of `MEMBERS`, every evaluation one of each of them."""
    config = small_config().model_copy(update=settings)
    run_id = queue.enqueue(db, config, name=name)
    writes.write_evaluation(db, run_id, _evaluation(0))
    for step in range(1, STEPS + 1):
        groups = [_group(step, index) for index in range(GROUPS)]
        writes.write_step(db, run_id, StepRecord(step, {"reward": 0.5}, groups))
    writes.write_evaluation(db, run_id, _evaluation(STEPS))
    return run_id


def completion_record(text: str, verdict: Verdict) -> CompletionRecord:
    """Return a completion that is stored with this verdict, whatever its text says."""
    return CompletionRecord(_completion(text), _reward(verdict), 0.0)


def _reward(verdict: Verdict) -> Reward:
    value = None if verdict == "not_graded" else float(verdict == "correct")
    return Reward(value, {"format": 1.0, "answer": value or 0.0}, "7", verdict, f"stored as {verdict}")


def _completion(text: str) -> Completion:
    return Completion((1, 2), text, np.full(2, -0.5, np.float32), "eos")


def _group(step: int, index: int) -> GroupRecord:
    members = tuple(completion_record(text, verdict) for text, verdict, _ in MEMBERS)
    problem = Problem(f"train-{step}-{index}", f"3 + 4 = ? ({step}.{index})", GOLD)
    return GroupRecord(problem, "3 + 4 =", (1,), "mixed", 0.5, 0.5, members)


def _evaluation(step: int) -> EvaluationRecord:
    answers = [
        EvaluationAnswer(Problem(f"v-{place}", f"3 + 4 = ? {place}", GOLD, "validation"), 0, _completion(text), reward)
        for place, (text, reward) in enumerate((text, _reward(verdict)) for text, verdict, _ in MEMBERS)
    ]
    return EvaluationRecord(step, "validation", "sampled", 1.0, {"accuracy": 0.5}, answers)
