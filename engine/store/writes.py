"""What a run writes. Each function is one transaction: all of it is stored, or none."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from engine.errors import StoreError
from engine.store import schema
from engine.store.database import Database
from engine.store.metric_rows import store_metrics, store_updates
from engine.store.numbers import finite_or_none
from engine.store.problems import store_problems
from engine.store.records import Level
from engine.store.regrades import discard_regrades_after
from engine.store.rollouts import store_groups
from engine.store.rows import upsert
from engine.store.text import clean_text
from engine.store.token_arrays import pack_token_ids
from engine.types import EvaluationAnswer, EvaluationRecord, StepRecord


def write_step(
    db: Database, run_id: str, record: StepRecord, *, token_data: bool = True, attempt_id: int | None = None
) -> None:
    """Store a step: metrics, also of its optimizer steps, groups, completions and (with `token_data`) token arrays.

    A repeated step replaces.

    Raises:
        StoreError: if there is no such run, or `attempt_id` is given and that attempt is over.
    """
    with db.write() as connection:
        _touch_run(connection, run_id, attempt_id, step=record.step)
        store_metrics(connection, run_id, record.step, record.metrics)
        store_updates(connection, run_id, record.step, record.updates)
        store_groups(connection, run_id, record.step, record.groups, token_data=token_data)


def write_evaluation(
    db: Database,
    run_id: str,
    record: EvaluationRecord,
    *,
    attempt_id: int | None = None,
    n: int | None = None,
) -> None:
    """Store an evaluation, its answers and its metrics (`eval/<split>/<key>`, `eval/<split>/greedy_<key>`).

    `n` is given where the answers are left out on purpose. A repeated evaluation replaces.

    Raises:
        StoreError: as for `write_step`.
    """
    prefix = f"eval/{record.split}/{'greedy_' if record.mode == 'greedy' else ''}"
    evaluation = schema.evaluation
    with db.write() as connection:
        _touch_run(connection, run_id, attempt_id)
        store_metrics(
            connection, run_id, record.step, {f"{prefix}{key}": value for key, value in record.metrics.items()}
        )
        connection.execute(
            delete(evaluation).where(
                evaluation.c.run_id == run_id,
                evaluation.c.step == record.step,
                evaluation.c.split == record.split,
                evaluation.c.mode == record.mode,
            )
        )
        evaluation_id = connection.execute(
            insert(evaluation)
            .values(
                run_id=run_id,
                step=record.step,
                split=record.split,
                mode=record.mode,
                temperature=record.temperature,
                n=len(record.answers) if n is None else n,
                accuracy=finite_or_none(record.metrics.get("accuracy")),
                metrics=dict(record.metrics),
                created_at=datetime.now(UTC),
            )
            .returning(evaluation.c.evaluation_id)
        ).scalar_one()
        if record.answers:
            keys = store_problems(connection, (answer.problem for answer in record.answers))
            rows = [
                _answer_row(evaluation_id, index, keys[answer.problem], answer)
                for index, answer in enumerate(record.answers)
            ]
            connection.execute(insert(schema.evaluation_answer), rows)
        _sum_up_accuracy(connection, run_id)


def write_event(
    db: Database,
    run_id: str,
    kind: str,
    message: str,
    *,
    step: int | None = None,
    level: Level = "info",
    at: datetime | None = None,
) -> None:
    """Store an event, with the time `at` (default: now).

    Raises:
        StoreError: if there is no such run.
    """
    with db.write() as connection:
        _touch_run(connection, run_id, None)
        connection.execute(
            insert(schema.event).values(
                run_id=run_id,
                step=step,
                at=at or datetime.now(UTC),
                kind=clean_text(kind),
                level=level,
                message=clean_text(message),
            )
        )


def write_checkpoint(
    db: Database, run_id: str, step: int, path: str, accuracy: float | None, *, attempt_id: int | None = None
) -> None:
    """Store that a checkpoint is whole on disk; a repeated step replaces and is no longer marked best.

    Raises:
        StoreError: as for `write_step`.
    """
    values = {
        "run_id": run_id,
        "step": step,
        "path": str(path),
        "accuracy": finite_or_none(accuracy),
        "is_best": False,
        "created_at": datetime.now(UTC),
    }
    with db.write() as connection:
        _touch_run(connection, run_id, attempt_id)
        connection.execute(upsert(connection, schema.checkpoint), values)


def delete_checkpoints(db: Database, run_id: str, steps: Collection[int]) -> None:
    """Forget the checkpoints of these steps (their files are the caller's)."""
    checkpoint = schema.checkpoint
    with db.write() as connection:
        connection.execute(delete(checkpoint).where(checkpoint.c.run_id == run_id, checkpoint.c.step.in_(list(steps))))


def mark_best(db: Database, run_id: str, step: int) -> None:
    """Mark the checkpoint of this step as the best, and no other."""
    checkpoint = schema.checkpoint
    with db.write() as connection:
        connection.execute(
            update(checkpoint).where(checkpoint.c.run_id == run_id).values(is_best=checkpoint.c.step == step)
        )


def discard_after(db: Database, run_id: str, step: int) -> None:
    """Remove what a run stored beyond `step`, before it resumes from there: one line, nothing shifted.

    Metrics, groups, evaluations, checkpoints and the regradings that cover any of it go; events stay, they are
    history. The run's step and the `from_step` of its live attempt become `step`.

    Raises:
        StoreError: if there is no such run.
    """
    attempt = schema.attempt
    with db.write() as connection:
        _touch_run(connection, run_id, None, step=step)
        for table in (schema.metric, schema.update_metric, schema.group, schema.evaluation, schema.checkpoint):
            connection.execute(delete(table).where(table.c.run_id == run_id, table.c.step > step))
        discard_regrades_after(connection, run_id, step)
        connection.execute(
            update(attempt).where(attempt.c.run_id == run_id, attempt.c.ended_at.is_(None)).values(from_step=step)
        )
        _sum_up_accuracy(connection, run_id)


def _touch_run(connection: Connection, run_id: str, attempt_id: int | None, step: int | None = None) -> None:
    """Set the run's step, and refuse a process whose attempt has been declared over."""
    run, attempt = schema.run, schema.attempt
    if attempt_id is not None:
        live = select(attempt.c.attempt_id).where(
            attempt.c.attempt_id == attempt_id, attempt.c.run_id == run_id, attempt.c.ended_at.is_(None)
        )
        # Locked on PostgreSQL, so that the attempt cannot be ended between this look and the commit.
        if connection.execute(live.with_for_update(read=True)).scalar() is None:
            raise StoreError(f"attempt={attempt_id} of run={run_id} is over; nothing more may be written by it")
    if step is None:
        # Locked on PostgreSQL: one writer of a run at a time, so that event ids grow in the order of commits,
        # which a page's cursor relies on.
        look = select(run.c.run_id).where(run.c.run_id == run_id).with_for_update()
        found = connection.execute(look).scalar() is not None
    else:
        found = connection.execute(update(run).where(run.c.run_id == run_id).values(step=step)).rowcount > 0
    if not found:
        raise StoreError(f"run={run_id} does not exist; `grpo-lab ls` lists the runs")


def _answer_row(evaluation_id: int, index: int, problem_key: int, answer: EvaluationAnswer) -> dict[str, Any]:
    completion, reward = answer.completion, answer.reward
    return {
        "evaluation_id": evaluation_id,
        "index": index,
        "problem_key": problem_key,
        "sample": answer.sample,
        "text": clean_text(completion.text),
        "token_ids": pack_token_ids(completion.token_ids),
        "reward": finite_or_none(reward.value),
        "reward_parts": dict(reward.parts),
        "answer": clean_text(reward.answer),
        "verdict": reward.verdict,
        "reason": clean_text(reward.reason),
        "length": len(completion.token_ids),
        "finish_reason": completion.finish_reason,
    }


def _sum_up_accuracy(connection: Connection, run_id: str) -> None:
    """Set the run's first, last and best accuracy anew from its sampled evaluations on the split of its config."""
    evaluation, run = schema.evaluation, schema.run
    config = connection.execute(select(run.c.config).where(run.c.run_id == run_id)).scalar_one()
    query = (
        select(evaluation.c.step, evaluation.c.accuracy)
        .where(
            evaluation.c.run_id == run_id,
            # Runs of versions that knew no choice of the split were evaluated on validation problems.
            evaluation.c.split == config.get("evaluation", {}).get("split", "validation"),
            evaluation.c.mode == "sampled",
            evaluation.c.accuracy.is_not(None),
        )
        .order_by(evaluation.c.step)
    )
    points = [(step, accuracy) for step, accuracy in connection.execute(query)]
    # max() keeps the earliest of equals.
    best_step, best = max(points, key=lambda point: point[1], default=(None, None))
    values = {
        "first_accuracy": points[0][1] if points else None,
        "last_accuracy": points[-1][1] if points else None,
        "best_accuracy": best,
        "best_step": best_step,
    }
    connection.execute(update(run).where(run.c.run_id == run_id).values(values))
