"""Metrics of single optimizer steps, the divergence of a completion, and which groups were trained on."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Added in place. A table made anew and filled from the old one would, when the old one goes, take the rows
    # that refer to it along.
    op.add_column("completion", sa.Column("kl", sa.Double()))
    op.add_column("group", sa.Column("trained", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.create_table(
        "update_metric",
        sa.Column("run_id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("update", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("kind", sa.String(length=4), nullable=False),
        sa.CheckConstraint("(kind = 'num') = (value IS NOT NULL)", name="ck_update_metric_value_unless_not_finite"),
        sa.CheckConstraint("kind IN ('num', 'nan', '+inf', '-inf')", name="ck_update_metric_known_kind"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_update_metric_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "name", "step", "update", name="pk_update_metric"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("update_metric")
    op.drop_column("group", "trained")
    op.drop_column("completion", "kl")
