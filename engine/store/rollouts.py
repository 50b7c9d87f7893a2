"""The rows of a step's groups: each group, its completions, their token arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from engine.store import schema
from engine.store.numbers import finite_or_none
from engine.store.problems import store_problems
from engine.store.text import clean_text
from engine.store.token_arrays import pack_token_ids, pack_tokens
from engine.types import CompletionRecord, FloatArray, GroupRecord


def store_groups(
    connection: Connection, run_id: str, step: int, groups: Sequence[GroupRecord], *, token_data: bool
) -> None:
    """Replace the groups of one step."""
    group = schema.group
    connection.execute(delete(group).where(group.c.run_id == run_id, group.c.step == step))
    if not groups:
        return
    keys = store_problems(connection, (record.problem for record in groups))
    group_rows = [_group_row(run_id, step, index, keys[record.problem], record) for index, record in enumerate(groups)]
    returning = insert(group).returning(group.c.group_id, sort_by_parameter_order=True)
    group_ids = list(connection.execute(returning, group_rows).scalars())
    members = [
        (group_id, index, record)
        for group_id, owner in zip(group_ids, groups, strict=True)
        for index, record in enumerate(owner.completions)
    ]
    if not members:
        return
    completion = schema.completion
    connection.execute(insert(completion), [_completion_row(*member) for member in members])
    if token_data:
        # Asked for afterwards: an insert that returns its ids is slower for this many rows.
        placed = (
            select(completion.c.completion_id, completion.c.group_id, completion.c.index)
            .join(group, group.c.group_id == completion.c.group_id)
            .where(group.c.run_id == run_id, group.c.step == step)
        )
        found = connection.execute(placed)
        completion_ids = {(group_id, index): completion_id for completion_id, group_id, index in found}
        rows = [_token_row(completion_ids[group_id, index], record) for group_id, index, record in members]
        connection.execute(insert(schema.completion_tokens), rows)


def _group_row(run_id: str, step: int, index: int, problem_key: int, record: GroupRecord) -> dict[str, Any]:
    lengths = [len(member.completion.token_ids) for member in record.completions]
    return {
        "run_id": run_id,
        "step": step,
        "index": index,
        "problem_key": problem_key,
        "prompt": clean_text(record.prompt),
        "prompt_token_ids": pack_token_ids(record.prompt_token_ids),
        "kind": record.kind,
        "reward_mean": finite_or_none(record.reward_mean),
        "reward_std": finite_or_none(record.reward_std),
        "size": len(lengths),
        "n_correct": sum(member.reward.verdict == "correct" for member in record.completions),
        "mean_length": sum(lengths) / len(lengths) if lengths else 0.0,
        "trained": record.trained,
    }


def _completion_row(group_id: int, index: int, record: CompletionRecord) -> dict[str, Any]:
    completion, reward = record.completion, record.reward
    return {
        "group_id": group_id,
        "index": index,
        "text": clean_text(completion.text),
        "reward": finite_or_none(reward.value),
        "reward_parts": dict(reward.parts),
        "answer": clean_text(reward.answer),
        "verdict": reward.verdict,
        "reason": clean_text(reward.reason),
        "advantage": finite_or_none(record.advantage),
        "length": len(completion.token_ids),
        "entropy": _mean(record.entropy),
        "mean_log_prob": _mean(completion.sampler_log_probs),
        "kl": finite_or_none(record.kl),
        "finish_reason": completion.finish_reason,
        "stop": clean_text(completion.stop),
    }


def _token_row(completion_id: int, record: CompletionRecord) -> dict[str, Any]:
    return {
        "completion_id": completion_id,
        "length": len(record.completion.token_ids),
        "has_policy_log_probs": record.policy_log_probs is not None,
        "has_entropy": record.entropy is not None,
        "data": pack_tokens(record),
    }


def _mean(values: FloatArray | None) -> float | None:
    if values is None or len(values) == 0:
        return None
    return finite_or_none(float(np.add.reduce(values, dtype=np.float64)) / len(values))
