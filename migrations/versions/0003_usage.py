"""Prices, report runs, and the usage they computed.

Revision 0003, after 0002. Creates tables only, so that no release before it can break.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# timestamptz on PostgreSQL, integer microseconds since 1970 elsewhere.
INSTANT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    """Creates the tables, parents first."""
    op.create_table(
        "price_books",
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("effective_from", INSTANT, nullable=False),
        sa.Column("monthly_minimum", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("version", name="pk_price_books"),
    )
    op.create_table(
        "prices",
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("meter", sa.String(length=32), nullable=False),
        sa.Column("unit", sa.String(length=32), nullable=False),
        sa.Column("unit_quantity", sa.BigInteger(), nullable=False),
        sa.Column("unit_price", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["version"], ["price_books.version"], name="fk_prices_version_price_books"
        ),
        sa.PrimaryKeyConstraint("version", "meter", name="pk_prices"),
    )
    op.create_table(
        "report_runs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("started_at", INSTANT, nullable=True),
        sa.Column("finished_at", INSTANT, nullable=True),
        sa.Column("token_public_id", sa.String(length=10), nullable=True),
        sa.Column("token_sha256", sa.LargeBinary(length=32), nullable=True),
        sa.Column("log_path", sa.String(length=1024), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED')", name="ck_report_runs_state"
        ),
        sa.ForeignKeyConstraint(
            ["org_id"], ["organizations.id"], name="fk_report_runs_org_id_organizations"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_report_runs"),
        sa.UniqueConstraint("token_public_id", name="uq_report_runs_token_public_id"),
    )
    op.create_index("ix_report_runs_org_id", "report_runs", ["org_id"])
    op.create_table(
        "current_runs",
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["report_runs.id"], name="fk_current_runs_run_id_report_runs"
        ),
        sa.PrimaryKeyConstraint("kind", name="pk_current_runs"),
    )
    op.create_table(
        "usage_rows",
        sa.Column(
            "sequence",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("organization", sa.String(length=255), nullable=False),
        sa.Column("project", sa.String(length=255), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("cluster", sa.String(length=255), nullable=False),
        sa.Column("stream", sa.String(length=255), nullable=False),
        sa.Column("topic", sa.String(length=512), nullable=False),
        sa.Column("topic_id", sa.String(length=40), nullable=False),
        sa.Column("principal", sa.String(length=255), nullable=False),
        sa.Column("meter", sa.String(length=32), nullable=False),
        sa.Column("unit", sa.String(length=32), nullable=False),
        sa.Column("window_start", INSTANT, nullable=False),
        sa.Column("window_end", INSTANT, nullable=False),
        sa.Column("quantity", sa.String(length=64), nullable=False),
        sa.Column("unit_price", sa.String(length=64), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("amount", sa.String(length=64), nullable=False),
        sa.Column("price_book_version", sa.String(length=32), nullable=False),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["report_runs.id"], name="fk_usage_rows_run_id_report_runs"
        ),
        sa.PrimaryKeyConstraint("sequence", name="pk_usage_rows"),
    )
    op.create_index("ix_usage_rows_org_id", "usage_rows", ["org_id"])
    op.create_index("ix_usage_rows_run_id", "usage_rows", ["run_id"])


def downgrade() -> None:
    """Drops the tables, children first."""
    op.drop_table("usage_rows")
    op.drop_table("current_runs")
    op.drop_table("report_runs")
    op.drop_table("prices")
    op.drop_table("price_books")
