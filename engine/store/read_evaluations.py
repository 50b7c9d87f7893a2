"""Reading evaluations."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
from sqlalchemy import func, select

from engine.store import schema
from engine.store.database import Database
from engine.store.records import AnswerCounts, EvaluationAnswerRow, EvaluationProblemRow, EvaluationRow
from engine.store.rows import columns_of
from engine.types import Verdict

_answer, _problem = schema.evaluation_answer, schema.problem

# The answers to one problem follow one another, numbered from 0: so this is the same for all of them.
_FIRST = (_answer.c.index - _answer.c.sample).label("first")


def evaluations(db: Database, run_ids: Sequence[str]) -> list[EvaluationRow]:
    """Return the evaluations of these runs, by run (as asked for), step, split and mode."""
    evaluation = schema.evaluation
    query = (
        select(*columns_of(EvaluationRow, evaluation))
        .where(evaluation.c.run_id.in_(list(run_ids)))
        .order_by(evaluation.c.step, evaluation.c.split, evaluation.c.mode)
    )
    with db.read() as connection:
        rows = [EvaluationRow(*row) for row in connection.execute(query)]
    place = {run_id: position for position, run_id in enumerate(run_ids)}
    return sorted(rows, key=lambda row: place[row.run_id])


def answer_counts(db: Database, evaluation_id: int) -> AnswerCounts:
    """Return how many answers each problem of an evaluation has, and how many are right, in the order of the problems.

    Without problems where the answers are not stored.
    """
    query = (
        select(func.count(), func.count().filter(_answer.c.verdict == "correct"))
        .where(_answer.c.evaluation_id == evaluation_id)
        .group_by(_FIRST)
        .order_by(_FIRST)
    )
    with db.read() as connection:
        rows = [tuple(row) for row in connection.execute(query)]
    counts = np.array(rows, np.int64).reshape(-1, 2)
    return AnswerCounts(counts[:, 0], counts[:, 1])


def evaluation_problems(db: Database, evaluation_id: int) -> list[EvaluationProblemRow]:
    """Return the problems of an evaluation with the number of their answers, in the order they were asked."""
    verdicts: tuple[Verdict, ...] = get_args(Verdict)
    columns = (_FIRST, _problem.c.problem_id, _problem.c.question, _problem.c.gold)
    query = (
        select(*columns, func.count(), *(func.count().filter(_answer.c.verdict == verdict) for verdict in verdicts))
        .join_from(_answer, _problem, _answer.c.problem_key == _problem.c.problem_key)
        .where(_answer.c.evaluation_id == evaluation_id)
        .group_by(*columns)
        .order_by(_FIRST)
    )
    with db.read() as connection:
        return [EvaluationProblemRow(*row) for row in connection.execute(query)]


def evaluation_answers(db: Database, evaluation_id: int, within: range | None = None) -> list[EvaluationAnswerRow]:
    """Return the answers of one evaluation in the order they were judged; with `within`, those of these indices."""
    query = (
        select(*columns_of(EvaluationAnswerRow, _answer, _problem))
        .join_from(_answer, _problem, _answer.c.problem_key == _problem.c.problem_key)
        .where(_answer.c.evaluation_id == evaluation_id)
        .order_by(_answer.c.index)
    )
    if within is not None:
        query = query.where(_answer.c.index >= within.start, _answer.c.index < within.stop)
    with db.read() as connection:
        return [EvaluationAnswerRow(*row) for row in connection.execute(query)]
