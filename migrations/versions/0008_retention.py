"""The retention report that is shown.

Revision 0008, after 0007. Creates tables only, so that no release before it can break.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# timestamptz on PostgreSQL, integer microseconds since 1970 elsewhere.
INSTANT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "retention_rows",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("line", sa.String(length=12), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("topic", sa.String(length=512), nullable=False),
        sa.Column("topic_id", sa.String(length=40), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("policy_source", sa.String(length=16), nullable=False),
        sa.Column("retention_ms", sa.BigInteger(), nullable=True),
        sa.Column("retention_bytes", sa.BigInteger(), nullable=True),
        sa.Column("live_bytes", sa.BigInteger(), nullable=False),
        sa.Column("oldest_at", INSTANT, nullable=True),
        sa.Column("deleted_bytes", sa.BigInteger(), nullable=False),
        sa.Column("deleted_records", sa.BigInteger(), nullable=False),
        sa.Column("first_offset", sa.BigInteger(), nullable=False),
        sa.Column("last_offset", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.String(length=16), nullable=False),
        sa.Column("deleted_at", INSTANT, nullable=True),
        sa.Column("age_at_deletion_ms", sa.BigInteger(), nullable=True),
        sa.Column("next_deletion_at", INSTANT, nullable=True),
        sa.Column("hold_id", sa.String(length=1024), nullable=False),
        sa.Column("violation", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["report_runs.id"], name="fk_retention_rows_run_id_report_runs"
        ),
        sa.PrimaryKeyConstraint("run_id", "line", name="pk_retention_rows"),
    )
    op.create_index("ix_retention_rows_org_id", "retention_rows", ["org_id"])
    op.create_index("ix_retention_rows_topic_id", "retention_rows", ["topic_id"])
    op.create_table(
        "retention_topics",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("topic_id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["report_runs.id"], name="fk_retention_topics_run_id_report_runs"
        ),
        sa.PrimaryKeyConstraint("run_id", "topic_id", name="pk_retention_topics"),
    )
    op.create_index("ix_retention_topics_org_id", "retention_topics", ["org_id"])


def downgrade() -> None:
    """Drops the tables."""
    op.drop_table("retention_topics")
    op.drop_table("retention_rows")
