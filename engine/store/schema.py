"""The tables. A change here needs a migration; a test compares the two."""

from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    true,
)

from engine.store.columns import BIG_ID, JsonText, UtcDateTime

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _run_id(*, primary_key: bool = False) -> Column[str]:
    owner = ForeignKey("run.run_id", ondelete="CASCADE")
    return Column("run_id", String(16), owner, primary_key=primary_key, nullable=False)


def _number() -> tuple[Column[Any] | CheckConstraint, ...]:
    return (
        Column("value", Double),
        Column("kind", String(4), nullable=False),
        CheckConstraint("(kind = 'num') = (value IS NOT NULL)", name="value_unless_not_finite"),
        CheckConstraint("kind IN ('num', 'nan', '+inf', '-inf')", name="known_kind"),
    )


run = Table(
    "run",
    metadata,
    Column("run_id", String(16), primary_key=True),
    Column("ordinal", Integer, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("status", String(16), nullable=False, index=True),
    Column("config", JsonText, nullable=False),
    Column("preset", Text),
    Column("seed", BIG_ID, nullable=False),
    Column("arm", String(32), nullable=False),
    Column("launch_token", String(128), unique=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("queued_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("step", Integer, nullable=False),
    Column("total_steps", Integer, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("parent_run_id", String(16), ForeignKey("run.run_id"), index=True),
    Column("parent_step", Integer),
    Column("archived", Boolean, nullable=False),
    Column("stop_requested", Boolean, nullable=False),
    Column("error", Text),
    Column("attempts", Integer, nullable=False),
    # Kept here, in the transaction that changes them, so that a page of runs is one query.
    Column("best_accuracy", Double),
    Column("last_accuracy", Double),
    Column("first_accuracy", Double),
    Column("best_step", Integer),
)

attempt = Table(
    "attempt",
    metadata,
    Column("attempt_id", BIG_ID, primary_key=True),
    _run_id(),
    Column("number", Integer, nullable=False),
    Column("worker_id", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("boot_id", Text),
    Column("pid", Integer),
    Column("pid_started_at", Double),
    Column("log_path", Text),
    Column("started_at", UtcDateTime, nullable=False),
    Column("heartbeat_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime, index=True),
    Column("outcome", Text),
    Column("traceback", Text),
    Column("exit_code", Integer),
    Column("from_step", Integer, nullable=False),
    Column("seconds", Double, nullable=False),
    UniqueConstraint("run_id", "number"),
)

# Without a rowid the rows lie in key order, so one curve is one contiguous stretch of the file.
metric = Table(
    "metric",
    metadata,
    _run_id(primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("step", Integer, primary_key=True),
    *_number(),
    sqlite_with_rowid=False,
)

# Apart from `metric`, so that the curves by step, which every page reads, stay a stretch of their own.
update_metric = Table(
    "update_metric",
    metadata,
    _run_id(primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("update", Integer, primary_key=True),
    *_number(),
    sqlite_with_rowid=False,
)

problem = Table(
    "problem",
    metadata,
    Column("problem_key", BIG_ID, primary_key=True),
    # Of id, split, question and gold: two tasks may use one id for different questions.
    Column("digest", String(32), nullable=False, unique=True),
    Column("problem_id", Text, nullable=False),
    Column("split", String(16), nullable=False),
    Column("question", Text, nullable=False),
    Column("gold", Text, nullable=False),
)

# AUTOINCREMENT (here and below): pages link to these ids and cache by them, so an id freed by a resumed run
# must never come to mean something else.
group = Table(
    "group",
    metadata,
    Column("group_id", BIG_ID, primary_key=True),
    _run_id(),
    Column("step", Integer, nullable=False),
    Column("index", Integer, nullable=False),
    Column("problem_key", BIG_ID, ForeignKey("problem.problem_key"), nullable=False),
    Column("prompt", Text, nullable=False),
    Column("prompt_token_ids", LargeBinary, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("reward_mean", Double),
    Column("reward_std", Double),
    Column("size", Integer, nullable=False),
    Column("n_correct", Integer, nullable=False),
    Column("mean_length", Double, nullable=False),
    # With a default of the database's own: a run that an older version started may still be writing.
    Column("trained", Boolean, server_default=true(), nullable=False),
    UniqueConstraint("run_id", "step", "index"),
    sqlite_autoincrement=True,
)

completion = Table(
    "completion",
    metadata,
    Column("completion_id", BIG_ID, primary_key=True),
    Column("group_id", BIG_ID, ForeignKey("group.group_id", ondelete="CASCADE"), nullable=False),
    Column("index", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("reward", Double),
    Column("reward_parts", JsonText, nullable=False),
    Column("answer", Text),
    Column("verdict", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("advantage", Double),
    Column("length", Integer, nullable=False),
    Column("entropy", Double),
    Column("mean_log_prob", Double),
    Column("kl", Double),
    Column("finish_reason", String(16), nullable=False),
    Column("stop", Text),
    UniqueConstraint("group_id", "index"),
    sqlite_autoincrement=True,
)

# Apart from `completion`, so that reading texts and rewards does not drag the arrays through the cache.
completion_tokens = Table(
    "completion_tokens",
    metadata,
    Column(
        "completion_id",
        BIG_ID,
        ForeignKey("completion.completion_id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("length", Integer, nullable=False),
    Column("has_policy_log_probs", Boolean, nullable=False),
    Column("has_entropy", Boolean, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

evaluation = Table(
    "evaluation",
    metadata,
    Column("evaluation_id", BIG_ID, primary_key=True),
    _run_id(),
    Column("step", Integer, nullable=False),
    Column("split", String(16), nullable=False),
    Column("mode", String(16), nullable=False),
    Column("temperature", Double, nullable=False),
    Column("n", Integer, nullable=False),
    Column("accuracy", Double),
    Column("metrics", JsonText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("run_id", "step", "split", "mode"),
    sqlite_autoincrement=True,
)

evaluation_answer = Table(
    "evaluation_answer",
    metadata,
    Column("evaluation_id", BIG_ID, ForeignKey("evaluation.evaluation_id", ondelete="CASCADE"), primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("problem_key", BIG_ID, ForeignKey("problem.problem_key"), nullable=False),
    Column("sample", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("token_ids", LargeBinary, nullable=False),
    Column("reward", Double),
    Column("reward_parts", JsonText, nullable=False),
    Column("answer", Text),
    Column("verdict", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("length", Integer, nullable=False),
    Column("finish_reason", String(16), nullable=False),
)

# What another grader says of stored answers; the rows that it is about are never changed.
regrade = Table(
    "regrade",
    metadata,
    Column("regrade_id", BIG_ID, primary_key=True),
    Column("run_id", String(16), ForeignKey("run.run_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("reward", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("covers", String(16), nullable=False),
    Column("step_from", Integer, nullable=False),
    Column("step_to", Integer, nullable=False),
    Column("sample", Integer),
    Column("status", String(16), nullable=False),
    Column("stop_requested", Boolean, nullable=False),
    Column("error", Text),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("counts", JsonText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("heartbeat_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    sqlite_autoincrement=True,
)

# The keys of the answers are indexed: a run that resumes deletes answers, and each deletion looks here.
regrade_flip = Table(
    "regrade_flip",
    metadata,
    Column("regrade_id", BIG_ID, ForeignKey("regrade.regrade_id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("completion_id", BIG_ID, ForeignKey("completion.completion_id", ondelete="CASCADE"), index=True),
    Column("evaluation_id", BIG_ID),
    Column("answer_index", Integer),
    Column("value", Double),
    Column("verdict", String(16), nullable=False),
    Column("answer", Text),
    Column("reason", Text, nullable=False),
    Column("seconds", Double),
    CheckConstraint("(completion_id IS NULL) = (evaluation_id IS NOT NULL)", name="of_one_kind"),
    CheckConstraint("(evaluation_id IS NULL) = (answer_index IS NULL)", name="whole_evaluation_key"),
    ForeignKeyConstraint(
        ["evaluation_id", "answer_index"],
        ["evaluation_answer.evaluation_id", "evaluation_answer.index"],
        ondelete="CASCADE",
    ),
    Index(None, "evaluation_id", "answer_index"),
)

event = Table(
    "event",
    metadata,
    Column("event_id", BIG_ID, primary_key=True),
    _run_id(),
    Column("step", Integer),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("level", String(16), nullable=False),
    Column("message", Text, nullable=False),
    Index(None, "run_id", "event_id"),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    _run_id(primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("path", Text, nullable=False),
    Column("accuracy", Double),
    Column("is_best", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

worker = Table(
    "worker",
    metadata,
    Column("worker_id", String(128), primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("heartbeat_at", UtcDateTime, nullable=False),
)
