"""Reading groups and completions."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, select

from engine.store import schema
from engine.store.database import Database
from engine.store.records import CompletionRow, GroupRow, TokenData
from engine.store.rows import columns_of
from engine.store.token_arrays import unpack_token_ids, unpack_tokens
from engine.types import GroupKind

_group, _problem, _completion, _tokens = (
    schema.group,
    schema.problem,
    schema.completion,
    schema.completion_tokens,
)


def steps_with_groups(db: Database, run_id: str) -> list[int]:
    """Return the steps of a run whose groups are stored, in order."""
    query = select(_group.c.step).where(_group.c.run_id == run_id).distinct().order_by(_group.c.step)
    with db.read() as connection:
        return list(connection.execute(query).scalars())


def groups(db: Database, run_id: str, step: int, kinds: Collection[GroupKind] | None = None) -> list[GroupRow]:
    """Return the groups of one step (None: of every kind) in the order they were sampled."""
    query = _groups().where(_group.c.run_id == run_id, _group.c.step == step).order_by(_group.c.index)
    if kinds is not None:
        query = query.where(_group.c.kind.in_(list(kinds)))
    with db.read() as connection:
        return [GroupRow(*row) for row in connection.execute(query)]


def group(db: Database, group_id: int) -> GroupRow | None:
    """Return one group, or None."""
    with db.read() as connection:
        row = connection.execute(_groups().where(_group.c.group_id == group_id)).one_or_none()
    return None if row is None else GroupRow(*row)


def prompt_token_ids(db: Database, group_id: int) -> tuple[int, ...]:
    """Return the token ids of a group's prompt; empty when there is no such group."""
    with db.read() as connection:
        data = connection.execute(select(_group.c.prompt_token_ids).where(_group.c.group_id == group_id)).scalar()
    return () if data is None else unpack_token_ids(data)


def completions(db: Database, group_id: int) -> list[CompletionRow]:
    """Return the completions of a group in the order they were sampled."""
    query = (
        select(*columns_of(CompletionRow, _completion))
        .where(_completion.c.group_id == group_id)
        .order_by(_completion.c.index)
    )
    with db.read() as connection:
        return [CompletionRow(*row) for row in connection.execute(query)]


def token_data(db: Database, completion_id: int) -> TokenData | None:
    """Return the per-token arrays of a completion, or None where they were not stored."""
    query = select(_tokens.c.data, _tokens.c.length, _tokens.c.has_policy_log_probs, _tokens.c.has_entropy).where(
        _tokens.c.completion_id == completion_id
    )
    with db.read() as connection:
        row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return unpack_tokens(
        row.data, row.length, has_policy_log_probs=row.has_policy_log_probs, has_entropy=row.has_entropy
    )


def _groups() -> Select[*tuple[Any, ...]]:
    columns = columns_of(GroupRow, _group, _problem)
    return select(*columns).join_from(_group, _problem, _group.c.problem_key == _problem.c.problem_key)
