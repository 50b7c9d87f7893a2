"""What another grader says of stored answers: a regrading, and each answer that it judges in another way."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Spelt out and not imported from the schema: a migration describes the past and must not change with it.
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "regrade",
        sa.Column("regrade_id", BIG_ID, nullable=False),
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("reward", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("covers", sa.String(length=16), nullable=False),
        sa.Column("step_from", sa.Integer(), nullable=False),
        sa.Column("step_to", sa.Integer(), nullable=False),
        sa.Column("sample", sa.Integer()),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("stop_requested", sa.Boolean(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_regrade_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("regrade_id", name="pk_regrade"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_regrade_run_id", "regrade", ["run_id"])
    op.create_table(
        "regrade_flip",
        sa.Column("regrade_id", BIG_ID, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("completion_id", BIG_ID),
        sa.Column("evaluation_id", BIG_ID),
        sa.Column("answer_index", sa.Integer()),
        sa.Column("value", sa.Double()),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("answer", sa.Text()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double()),
        sa.CheckConstraint("(completion_id IS NULL) = (evaluation_id IS NOT NULL)", name="ck_regrade_flip_of_one_kind"),
        sa.CheckConstraint(
            "(evaluation_id IS NULL) = (answer_index IS NULL)", name="ck_regrade_flip_whole_evaluation_key"
        ),
        sa.ForeignKeyConstraint(
            ["regrade_id"], ["regrade.regrade_id"], name="fk_regrade_flip_regrade_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["completion_id"], ["completion.completion_id"], name="fk_regrade_flip_completion_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["evaluation_id", "answer_index"],
            ["evaluation_answer.evaluation_id", "evaluation_answer.index"],
            name="fk_regrade_flip_evaluation_id_answer_index",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("regrade_id", "place", name="pk_regrade_flip"),
    )
    op.create_index("ix_regrade_flip_completion_id", "regrade_flip", ["completion_id"])
    op.create_index("ix_regrade_flip_evaluation_id_answer_index", "regrade_flip", ["evaluation_id", "answer_index"])


def downgrade() -> None:
    op.drop_table("regrade_flip")
    op.drop_table("regrade")
