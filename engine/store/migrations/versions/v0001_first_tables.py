"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Spelt out and not imported from the schema: a migration describes the past and must not change with it.
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)
JSON = sa.Text()


def upgrade() -> None:
    op.create_table(
        "problem",
        sa.Column("problem_key", BIG_ID, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("problem_id", sa.Text(), nullable=False),
        sa.Column("split", sa.String(length=16), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("gold", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("problem_key", name="pk_problem"),
        sa.UniqueConstraint("digest", name="uq_problem_digest"),
    )
    op.create_table(
        "run",
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("config", JSON, nullable=False),
        sa.Column("preset", sa.Text()),
        sa.Column("seed", BIG_ID, nullable=False),
        sa.Column("arm", sa.String(length=32), nullable=False),
        sa.Column("launch_token", sa.String(length=128)),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("queued_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("ended_at", TIME),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("total_steps", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("parent_run_id", sa.String(length=16)),
        sa.Column("parent_step", sa.Integer()),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("stop_requested", sa.Boolean(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("best_accuracy", sa.Double()),
        sa.Column("last_accuracy", sa.Double()),
        sa.Column("first_accuracy", sa.Double()),
        sa.Column("best_step", sa.Integer()),
        sa.ForeignKeyConstraint(["parent_run_id"], ["run.run_id"], name="fk_run_parent_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run"),
        sa.UniqueConstraint("launch_token", name="uq_run_launch_token"),
        sa.UniqueConstraint("ordinal", name="uq_run_ordinal"),
    )
    op.create_index("ix_run_parent_run_id", "run", ["parent_run_id"])
    op.create_index("ix_run_status", "run", ["status"])
    op.create_table(
        "worker",
        sa.Column("worker_id", sa.String(length=128), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("worker_id", name="pk_worker"),
    )
    op.create_table(
        "attempt",
        sa.Column("attempt_id", BIG_ID, nullable=False),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text()),
        sa.Column("pid", sa.Integer()),
        sa.Column("pid_started_at", sa.Double()),
        sa.Column("log_path", sa.Text()),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("outcome", sa.Text()),
        sa.Column("traceback", sa.Text()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("from_step", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_attempt_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("attempt_id", name="pk_attempt"),
        sa.UniqueConstraint("run_id", "number", name="uq_attempt_run_id_number"),
    )
    op.create_index("ix_attempt_ended_at", "attempt", ["ended_at"])
    op.create_table(
        "checkpoint",
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("accuracy", sa.Double()),
        sa.Column("is_best", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_checkpoint_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "step", name="pk_checkpoint"),
    )
    op.create_table(
        "evaluation",
        sa.Column("evaluation_id", BIG_ID, nullable=False),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("split", sa.String(length=16), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("temperature", sa.Double(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("accuracy", sa.Double()),
        sa.Column("metrics", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_evaluation_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation_id", name="pk_evaluation"),
        sa.UniqueConstraint("run_id", "step", "split", "mode", name="uq_evaluation_run_id_step_split_mode"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "event",
        sa.Column("event_id", BIG_ID, nullable=False),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer()),
        sa.Column("at", TIME, nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_event_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("event_id", name="pk_event"),
    )
    op.create_index("ix_event_run_id_event_id", "event", ["run_id", "event_id"])
    op.create_table(
        "group",
        sa.Column("group_id", BIG_ID, nullable=False),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("problem_key", BIG_ID, nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("prompt_token_ids", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("reward_mean", sa.Double()),
        sa.Column("reward_std", sa.Double()),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("n_correct", sa.Integer(), nullable=False),
        sa.Column("mean_length", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["problem_key"], ["problem.problem_key"], name="fk_group_problem_key"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_group_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("group_id", name="pk_group"),
        sa.UniqueConstraint("run_id", "step", "index", name="uq_group_run_id_step_index"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "metric",
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("kind", sa.String(length=4), nullable=False),
        sa.CheckConstraint("(kind = 'num') = (value IS NOT NULL)", name="ck_metric_value_unless_not_finite"),
        sa.CheckConstraint("kind IN ('num', 'nan', '+inf', '-inf')", name="ck_metric_known_kind"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_metric_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "name", "step", name="pk_metric"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "completion",
        sa.Column("completion_id", BIG_ID, nullable=False),
        sa.Column("group_id", BIG_ID, nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("reward", sa.Double()),
        sa.Column("reward_parts", JSON, nullable=False),
        sa.Column("answer", sa.Text()),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("advantage", sa.Double()),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("entropy", sa.Double()),
        sa.Column("mean_log_prob", sa.Double()),
        sa.Column("finish_reason", sa.String(length=16), nullable=False),
        sa.Column("stop", sa.Text()),
        sa.ForeignKeyConstraint(["group_id"], ["group.group_id"], name="fk_completion_group_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("completion_id", name="pk_completion"),
        sa.UniqueConstraint("group_id", "index", name="uq_completion_group_id_index"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "evaluation_answer",
        sa.Column("evaluation_id", BIG_ID, nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("problem_key", BIG_ID, nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("token_ids", sa.LargeBinary(), nullable=False),
        sa.Column("reward", sa.Double()),
        sa.Column("reward_parts", JSON, nullable=False),
        sa.Column("answer", sa.Text()),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("finish_reason", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluation.evaluation_id"],
            name="fk_evaluation_answer_evaluation_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["problem_key"], ["problem.problem_key"], name="fk_evaluation_answer_problem_key"),
        sa.PrimaryKeyConstraint("evaluation_id", "index", name="pk_evaluation_answer"),
    )
    op.create_table(
        "completion_tokens",
        sa.Column("completion_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("has_policy_log_probs", sa.Boolean(), nullable=False),
        sa.Column("has_entropy", sa.Boolean(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["completion_id"],
            ["completion.completion_id"],
            name="fk_completion_tokens_completion_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("completion_id", name="pk_completion_tokens"),
    )


def downgrade() -> None:
    for table in (
        "completion_tokens",
        "completion",
        "group",
        "evaluation_answer",
        "evaluation",
        "checkpoint",
        "event",
        "metric",
        "attempt",
        "worker",
        "run",
        "problem",
    ):
        op.drop_table(table)
