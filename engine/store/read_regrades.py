"""Reading regradings and their flips."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, func, null, select, tuple_

from engine.errors import StoreError
from engine.store import schema
from engine.store.database import Database
from engine.store.records import Covers, FlipRow, Regrade
from engine.store.rows import columns_of
from engine.types import Verdict

_regrade, _flip, _problem = schema.regrade, schema.regrade_flip, schema.problem
_completion, _group = schema.completion, schema.group
_answer, _evaluation = schema.evaluation_answer, schema.evaluation


def regrades(db: Database, run_id: str) -> list[Regrade]:
    """Return the regradings of a run, newest first."""
    query = select(*columns_of(Regrade, _regrade)).where(_regrade.c.run_id == run_id)
    with db.read() as connection:
        return [Regrade(*row) for row in connection.execute(query.order_by(_regrade.c.regrade_id.desc()))]


def get_regrade(db: Database, regrade_id: int) -> Regrade:
    """Return a regrading.

    Raises:
        StoreError: if there is none of this id.
    """
    query = select(*columns_of(Regrade, _regrade)).where(_regrade.c.regrade_id == regrade_id)
    with db.read() as connection:
        row = connection.execute(query).one_or_none()
    if row is None:
        raise StoreError(
            f"regrade={regrade_id} does not exist, or was removed since its run has gone on from an earlier step; "
            "grade it again"
        )
    return Regrade(*row)


def flips(
    db: Database,
    regrade: Regrade,
    *,
    verdicts: Collection[tuple[Verdict, Verdict]] | None = None,
    step: int | None = None,
    after: int = -1,
    limit: int | None = None,
) -> list[FlipRow]:
    """Return the answers that a regrading judges in another way, in their order, those with a place beyond `after`.

    `verdicts` are pairs of the old verdict and the new one (None: every pair).
    """
    query = _flips(regrade.covers).where(_flip.c.regrade_id == regrade.regrade_id, _flip.c.place > after)
    old, owner = (_completion, _group) if regrade.covers == "completions" else (_answer, _evaluation)
    if verdicts is not None:
        query = query.where(tuple_(old.c.verdict, _flip.c.verdict).in_(list(verdicts)))
    if step is not None:
        query = query.where(owner.c.step == step)
    with db.read() as connection:
        return [FlipRow(*row) for row in connection.execute(query.order_by(_flip.c.place).limit(limit))]


def flips_by_step(db: Database, regrade: Regrade) -> dict[int, int]:
    """Return the number of flips of each step that has any, by step."""
    if regrade.covers == "completions":
        joined = select(_group.c.step, func.count()).join_from(_flip, _completion).join(_group)
        step = _group.c.step
    else:
        joined = select(_evaluation.c.step, func.count()).join_from(
            _flip, _evaluation, _flip.c.evaluation_id == _evaluation.c.evaluation_id
        )
        step = _evaluation.c.step
    query = joined.where(_flip.c.regrade_id == regrade.regrade_id).group_by(step).order_by(step)
    with db.read() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def _flips(covers: Covers) -> Select[*tuple[Any, ...]]:
    place: tuple[Any, ...]
    if covers == "completions":
        place = (_group.c.step, _group.c.index, null(), null())
        old = _completion
    else:
        place = (_evaluation.c.step, null(), _evaluation.c.split, _evaluation.c.mode)
        old = _answer
    columns = (
        _flip.c.place,
        _flip.c.completion_id,
        _flip.c.evaluation_id,
        _flip.c.answer_index,
        *place,
        _problem.c.problem_id,
        _problem.c.question,
        _problem.c.gold,
        old.c.text,
        *(old.c[name].label(f"old_{name}") for name in ("reward", "verdict", "answer", "reason")),
        *(_flip.c[name] for name in ("value", "verdict", "answer", "reason", "seconds")),
    )
    query: Select[*tuple[Any, ...]] = select(*columns)
    if covers == "completions":
        return (
            query.join_from(_flip, _completion, _flip.c.completion_id == _completion.c.completion_id)
            .join(_group, _completion.c.group_id == _group.c.group_id)
            .join(_problem, _group.c.problem_key == _problem.c.problem_key)
        )
    same = (_flip.c.evaluation_id == _answer.c.evaluation_id) & (_flip.c.answer_index == _answer.c.index)
    return (
        query.join_from(_flip, _answer, same)
        .join(_evaluation, _answer.c.evaluation_id == _evaluation.c.evaluation_id)
        .join(_problem, _answer.c.problem_key == _problem.c.problem_key)
    )
