"""Reading evaluations."""

from collections.abc import Sequence

from sqlalchemy import select

from engine.store import schema
from engine.store.database import Database
from engine.store.records import EvaluationAnswerRow, EvaluationRow
from engine.store.rows import columns_of


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


def evaluation_answers(db: Database, evaluation_id: int) -> list[EvaluationAnswerRow]:
    """Return the answers of one evaluation in the order they were judged."""
    answer, problem = schema.evaluation_answer, schema.problem
    query = (
        select(*columns_of(EvaluationAnswerRow, answer, problem))
        .join_from(answer, problem, answer.c.problem_key == problem.c.problem_key)
        .where(answer.c.evaluation_id == evaluation_id)
        .order_by(answer.c.index)
    )
    with db.read() as connection:
        return [EvaluationAnswerRow(*row) for row in connection.execute(query)]
