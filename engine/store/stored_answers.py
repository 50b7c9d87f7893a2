"""The stored answers of a run as a stream: never more than a chunk of them is in memory."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Select, func, select, tuple_

from engine.store import schema
from engine.store.database import Database
from engine.store.records import Covers, StoredAnswer
from engine.types import Problem

AT_ONCE = 128
"""Answers of one chunk, and of one transaction of a regrading."""

_PAGE = 512  # groups whose sizes are read at once

_group, _completion, _problem = schema.group, schema.completion, schema.problem
_evaluation, _answer = schema.evaluation, schema.evaluation_answer


@dataclass(frozen=True, slots=True)
class Extent:
    """How many answers are stored, and the first and the last step that has any; the steps are None where none has."""

    count: int
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class _Part:
    """Some answers of one group or evaluation, by their places in it."""

    owner: int
    indices: range | list[int]


def extent(
    db: Database, run_id: str, covers: Covers, *, step_from: int | None = None, step_to: int | None = None
) -> Extent:
    """Return how many answers of a run are stored for these steps (None: from the first, to the last)."""
    if covers == "completions":
        query = select(func.coalesce(func.sum(_group.c.size), 0), func.min(_group.c.step), func.max(_group.c.step))
        table = _group
        query = query.where(_group.c.size > 0)
    else:
        query = select(func.count(), func.min(_evaluation.c.step), func.max(_evaluation.c.step))
        query = query.join_from(_answer, _evaluation, _answer.c.evaluation_id == _evaluation.c.evaluation_id)
        table = _evaluation
    query = query.where(table.c.run_id == run_id)
    if step_from is not None:
        query = query.where(table.c.step >= step_from)
    if step_to is not None:
        query = query.where(table.c.step <= step_to)
    with db.read() as connection:
        count, first, last = connection.execute(query).one()
    return Extent(int(count), first, last)


def stored_answers(
    db: Database,
    run_id: str,
    covers: Covers,
    *,
    step_from: int,
    step_to: int,
    sample: int | None = None,
    at_once: int = AT_ONCE,
) -> Iterator[list[StoredAnswer]]:
    """Yield the answers of these steps in their order, in chunks; with a `sample` so many, evenly spread over them."""
    total = extent(db, run_id, covers, step_from=step_from, step_to=step_to).count
    chosen = total if sample is None else min(sample, total)
    owners = (_groups if covers == "completions" else _evaluations)(db, run_id, step_from, step_to)
    waiting: list[_Part] = []
    count = 0
    for part in _parts(owners, chosen, total, at_once):
        if waiting and count + len(part.indices) > at_once:
            yield _read(db, covers, waiting)
            waiting, count = [], 0
        waiting.append(part)
        count += len(part.indices)
    if waiting:
        yield _read(db, covers, waiting)


def _parts(owners: Iterator[tuple[int, int]], chosen: int, total: int, at_once: int) -> Iterator[_Part]:
    """Yield what is wanted of each owner, at most `at_once` answers in one part."""
    position = 0
    for owner, size in owners:
        for first in range(0, size, at_once):
            indices: range | list[int] = range(first, min(first + at_once, size))
            if chosen < total:
                # One in each stretch of total / chosen positions, the last of it.
                indices = [
                    index
                    for index in indices
                    if (position + index + 1) * chosen // total > (position + index) * chosen // total
                ]
            if indices:
                yield _Part(owner, indices)
        position += size


def _groups(db: Database, run_id: str, step_from: int, step_to: int) -> Iterator[tuple[int, int]]:
    """Yield id and size of each group; every page of them is one short read."""
    after = (step_from, -1)
    while True:
        query = (
            select(_group.c.step, _group.c.index, _group.c.group_id, _group.c.size)
            .where(
                _group.c.run_id == run_id,
                _group.c.step <= step_to,
                tuple_(_group.c.step, _group.c.index) > after,
            )
            .order_by(_group.c.step, _group.c.index)
            .limit(_PAGE)
        )
        with db.read() as connection:
            page = connection.execute(query).all()
        if not page:
            return
        for step, index, group_id, size in page:
            yield group_id, size
            after = (step, index)


def _evaluations(db: Database, run_id: str, step_from: int, step_to: int) -> Iterator[tuple[int, int]]:
    """Yield id and number of stored answers of each evaluation."""
    query = (
        select(_evaluation.c.evaluation_id, func.count())
        .join_from(_evaluation, _answer, _answer.c.evaluation_id == _evaluation.c.evaluation_id)
        .where(_evaluation.c.run_id == run_id, _evaluation.c.step.between(step_from, step_to))
        .group_by(_evaluation.c.evaluation_id, _evaluation.c.step, _evaluation.c.split, _evaluation.c.mode)
        .order_by(_evaluation.c.step, _evaluation.c.split, _evaluation.c.mode)
    )
    with db.read() as connection:
        rows = connection.execute(query).all()
    yield from ((evaluation_id, count) for evaluation_id, count in rows)


def _read(db: Database, covers: Covers, parts: list[_Part]) -> list[StoredAnswer]:
    if covers == "completions":
        wanted: dict[int, set[int]] = {}
        for part in parts:
            wanted.setdefault(part.owner, set()).update(part.indices)
        query = _completions().where(_completion.c.group_id.in_(list(wanted)))
        # The few answers of a group that a sample leaves out are read and dropped.
        found = _rows(db, query.order_by(_group.c.step, _group.c.index, _completion.c.index))
        return [answer for answer in found if answer.index in wanted[answer.owner]]
    return [answer for part in parts for answer in _rows(db, _answers_of(part))]


def _completions() -> Select[*tuple[object, ...]]:
    return (
        select(
            _completion.c.completion_id,
            _completion.c.group_id.label("owner"),
            _completion.c.index,
            _group.c.step,
            *_OF_PROBLEM,
            *(_completion.c[name] for name in _OF_TEXT),
        )
        .join_from(_completion, _group, _completion.c.group_id == _group.c.group_id)
        .join(_problem, _group.c.problem_key == _problem.c.problem_key)
    )


def _answers_of(part: _Part) -> Select[*tuple[object, ...]]:
    place = _answer.c.index
    among = place.between(part.indices[0], part.indices[-1]) if isinstance(part.indices, range) else None
    return (
        select(
            _answer.c.evaluation_id.label("owner"),
            place,
            _evaluation.c.step,
            *_OF_PROBLEM,
            *(_answer.c[name] for name in _OF_TEXT),
        )
        .join_from(_answer, _evaluation, _answer.c.evaluation_id == _evaluation.c.evaluation_id)
        .join(_problem, _answer.c.problem_key == _problem.c.problem_key)
        .where(_answer.c.evaluation_id == part.owner, place.in_(part.indices) if among is None else among)
        .order_by(place)
    )


_OF_PROBLEM = (_problem.c.problem_id, _problem.c.question, _problem.c.gold, _problem.c.split)
_OF_TEXT = ("text", "length", "finish_reason", "reward", "verdict")


def _rows(db: Database, query: Select[*tuple[object, ...]]) -> list[StoredAnswer]:
    with db.read() as connection:
        found = connection.execute(query).mappings().all()
    return [
        StoredAnswer(
            completion_id=row.get("completion_id"),
            owner=row["owner"],
            index=row["index"],
            step=row["step"],
            problem=Problem(row["problem_id"], row["question"], row["gold"], row["split"]),
            text=row["text"],
            length=row["length"],
            finish_reason=row["finish_reason"],
            value=row["reward"],
            verdict=row["verdict"],
        )
        for row in found
    ]
