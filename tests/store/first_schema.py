"""What the first released version wrote, in SQL of its own: a finished run of two steps, with the groups of one."""

import zlib
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, text

from engine.store.database import Database

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
NO_TOKENS = zlib.compress(b"")


def fill_first_schema(db: Database, run_id: str = "oldrun23", ordinal: int = 1) -> None:
    """Insert the run; no column is named that the first schema does not have."""
    with db.write() as connection:
        insert(
            connection,
            "run",
            run_id=run_id,
            ordinal=ordinal,
            name="old",
            status="succeeded",
            config="{}",
            seed=0,
            arm="arm",
            created_at=NOON,
            queued_at=NOON,
            step=2,
            total_steps=2,
            seconds=1.0,
            archived=False,
            stop_requested=False,
            attempts=1,
        )
        for step, reward in ((1, 0.5), (2, 0.75)):
            insert(connection, "metric", run_id=run_id, name="reward", step=step, value=reward, kind="num")
        problem = insert(
            connection,
            "problem",
            "problem_key",
            digest=run_id,
            problem_id="p",
            split="train",
            question="2 + 2",
            gold="4",
        )
        for index, answers in enumerate((["four", "five"], ["nine"])):
            group = insert(
                connection,
                "group",
                "group_id",
                run_id=run_id,
                step=1,
                index=index,
                problem_key=problem,
                prompt="2 + 2 =",
                prompt_token_ids=NO_TOKENS,
                kind="mixed",
                reward_mean=0.5,
                reward_std=0.5,
                size=len(answers),
                n_correct=1,
                mean_length=2.0,
            )
            for place, answer in enumerate(answers):
                completion = insert(
                    connection,
                    "completion",
                    "completion_id",
                    group_id=group,
                    index=place,
                    text=answer,
                    reward=1.0,
                    reward_parts='{"answer": 1.0}',
                    verdict="correct",
                    reason="",
                    length=2,
                    finish_reason="eos",
                )
                if answer == "four":
                    arrays = np.array([7, 8], "<i4").tobytes() + np.array([-0.5, -0.25], "<f4").tobytes()
                    insert(
                        connection,
                        "completion_tokens",
                        completion_id=completion,
                        length=2,
                        has_policy_log_probs=False,
                        has_entropy=False,
                        data=zlib.compress(arrays),
                    )


def insert(connection: Connection, table: str, returning: str | None = None, /, **values: Any) -> Any:
    """Insert one row and return the column `returning` of it."""
    columns, places = ", ".join(f'"{name}"' for name in values), ", ".join(f":{name}" for name in values)
    end = "" if returning is None else f" RETURNING {returning}"
    result = connection.execute(text(f'INSERT INTO "{table}" ({columns}) VALUES ({places}){end}'), values)
    return None if returning is None else result.scalar_one()
