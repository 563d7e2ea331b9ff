"""Invoices, their lines, and the lifecycle of topics that partition time is billed from.

Revision 0007. Creates tables, so that no release before it can break. A topic that is there already
gets one span, from its creation on with the partitions it has now: how it grew before was not kept.
The price book `demo-1` gets the prices of the meters that there are now; they are zero, so nothing
that was billed by it changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# timestamptz on PostgreSQL, integer microseconds since 1970 elsewhere.
INSTANT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
PARTITIONS_DEFAULT = 1
DEMO_BOOK = "demo-1"
NEW_PRICES = (
    ("egress_bytes", "GiB", 1 << 30, "0"),
    ("requests", "million requests", 1_000_000, "0"),
    ("stored_byte_seconds", "GiB-hour", 3600 << 30, "0"),
)
prices = sa.table(
    "prices",
    sa.column("version", sa.String()),
    sa.column("meter", sa.String()),
    sa.column("unit", sa.String()),
    sa.column("unit_quantity", sa.BigInteger()),
    sa.column("unit_price", sa.String()),
)


def upgrade() -> None:
    """Creates the tables, parents first, and fills what can be known."""
    op.create_table(
        "topic_lifecycle",
        sa.Column("topic_id", sa.String(length=40), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.String(length=40), nullable=False),
        sa.Column("partitions", sa.Integer(), nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT, nullable=True),
        sa.ForeignKeyConstraint(
            ["topic_id"], ["topics.id"], name="fk_topic_lifecycle_topic_id_topics"
        ),
        sa.PrimaryKeyConstraint("topic_id", "generation", name="pk_topic_lifecycle"),
    )
    op.create_table(
        "invoices",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("period_start", INSTANT, nullable=False),
        sa.Column("period_end", INSTANT, nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("blocked", sa.Boolean(), nullable=False),
        sa.Column("as_of", INSTANT, nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("total", sa.String(length=64), nullable=False),
        sa.Column("metered_exact", sa.String(length=64), nullable=False),
        sa.Column("monthly_minimum", sa.String(length=40), nullable=False),
        sa.Column("amount_per_month", sa.String(length=64), nullable=False),
        sa.Column("price_book_version", sa.String(length=32), nullable=False),
        sa.Column("files", sa.String(length=128), nullable=False),
        sa.Column("checks", sa.JSON(), nullable=False),
        sa.CheckConstraint(
            "state IN ('DRAFT', 'ISSUED', 'PAID', 'VOID')", name="ck_invoices_state"
        ),
        sa.ForeignKeyConstraint(
            ["org_id"], ["organizations.id"], name="fk_invoices_org_id_organizations"
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["report_runs.id"], name="fk_invoices_run_id_report_runs"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_invoices"),
        sa.UniqueConstraint(
            "org_id", "period_start", "sequence", name="uq_invoices_org_id_period_start_sequence"
        ),
    )
    op.create_index("ix_invoices_org_id", "invoices", ["org_id"])
    op.create_index("ix_invoices_run_id", "invoices", ["run_id"])
    op.create_table(
        "invoice_lines",
        sa.Column("invoice_id", sa.String(length=40), nullable=False),
        sa.Column("line", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sku", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=False),
        sa.Column("quantity", sa.String(length=64), nullable=False),
        sa.Column("unit", sa.String(length=32), nullable=False),
        sa.Column("unit_price", sa.String(length=64), nullable=False),
        sa.Column("amount_exact", sa.String(length=64), nullable=False),
        sa.Column("amount", sa.String(length=64), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("period_start", INSTANT, nullable=False),
        sa.Column("period_end", INSTANT, nullable=False),
        sa.Column("charge_class", sa.String(length=32), nullable=False),
        sa.Column("corrects_line", sa.String(length=64), nullable=False),
        sa.Column("topics", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["invoice_id"], ["invoices.id"], name="fk_invoice_lines_invoice_id_invoices"
        ),
        sa.PrimaryKeyConstraint("invoice_id", "line", name="pk_invoice_lines"),
    )
    _fill_lifecycle()
    _fill_prices()


def downgrade() -> None:
    """Drops the tables, children first, and the prices that only later meters have."""
    op.drop_table("invoice_lines")
    op.drop_table("invoices")
    op.drop_table("topic_lifecycle")
    op.execute(
        prices.delete().where(
            prices.c.version == DEMO_BOOK,
            prices.c.meter.in_([meter for meter, _, _, _ in NEW_PRICES]),
        )
    )


def _fill_lifecycle() -> None:
    columns = ("org_id", "project_id", "cluster_id", "generation")
    topics = sa.table(
        "topics",
        sa.column("id", sa.String()),
        *(sa.column(name) for name in columns),
        sa.column("spec", sa.JSON()),
        sa.column("created_at", INSTANT),
        sa.column("deleted_at", INSTANT),
    )
    spans = sa.table(
        "topic_lifecycle",
        sa.column("topic_id", sa.String()),
        *(sa.column(name) for name in columns),
        sa.column("partitions", sa.Integer()),
        sa.column("started_at", INSTANT),
        sa.column("ended_at", INSTANT),
    )
    rows = [
        {
            "topic_id": row["id"],
            **{name: row[name] for name in columns},
            "partitions": (row["spec"] or {}).get("partitions", PARTITIONS_DEFAULT),
            "started_at": row["created_at"],
            "ended_at": row["deleted_at"],
        }
        for row in op.get_bind().execute(sa.select(topics)).mappings()
    ]
    if rows:
        op.bulk_insert(spans, rows)


def _fill_prices() -> None:
    books = sa.table("price_books", sa.column("version", sa.String()))
    known = sa.select(books.c.version).where(books.c.version == DEMO_BOOK)
    if op.get_bind().scalar(known) is None:
        return
    op.bulk_insert(
        prices,
        [
            {
                "version": DEMO_BOOK,
                "meter": meter,
                "unit": unit,
                "unit_quantity": size,
                "unit_price": price,
            }
            for meter, unit, size, price in NEW_PRICES
        ],
    )
