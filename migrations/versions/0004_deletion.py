"""The wish that an object goes, and the tombstone that stays of it.

Revision 0004, after 0003. New columns are nullable or have defaults that hold for rows of the
release before, and for rows it still writes. A name is unique among what is not gone. Going back
drops the tombstones; it refuses while something is being deleted, for the release before would
make it anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# timestamptz on PostgreSQL, integer microseconds since 1970 elsewhere.
INSTANT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")

# Children before parents: (table, members of the name, finalizers of a row).
TABLES = (
    ("topics", ("stream_id", "folded_name"), '["data-plane"]'),
    ("streams", ("project_id", "name"), '["topics"]'),
    ("projects", ("org_id", "name"), '["streams", "keys"]'),
)
COLUMNS = (
    "finalizers", "deleted_at", "deleted_by", "deletion_confirmed", "force_reason", "purged_at",
)  # fmt: skip
LIVE = sa.text("purged_at IS NULL")


def upgrade() -> None:
    """Adds the columns and frees the names of what is gone."""
    for table, members, finalizers in TABLES:
        with op.batch_alter_table(table) as batch:
            batch.add_column(
                sa.Column("finalizers", sa.JSON(), nullable=False, server_default=finalizers)
            )
            batch.add_column(sa.Column("deleted_at", INSTANT, nullable=True))
            batch.add_column(sa.Column("deleted_by", sa.String(length=40), nullable=True))
            batch.add_column(
                sa.Column(
                    "deletion_confirmed", sa.Boolean(), nullable=False, server_default=sa.false()
                )
            )
            batch.add_column(sa.Column("force_reason", sa.String(length=255), nullable=True))
            batch.add_column(sa.Column("purged_at", INSTANT, nullable=True))
            batch.drop_constraint(f"uq_{table}_{'_'.join(members)}", type_="unique")
        op.create_index(
            f"uq_{table}_live_name",
            table,
            list(members),
            unique=True,
            sqlite_where=LIVE,
            postgresql_where=LIVE,
        )


def downgrade() -> None:
    """Drops the tombstones and the columns."""
    _refuse_while_something_goes()
    op.execute(
        "DELETE FROM api_keys WHERE project_id IN "
        "(SELECT id FROM projects WHERE purged_at IS NOT NULL)"
    )
    for table, members, _ in TABLES:
        op.execute(f"DELETE FROM {table} WHERE purged_at IS NOT NULL")
        op.drop_index(f"uq_{table}_live_name", table)
        with op.batch_alter_table(table) as batch:
            for column in COLUMNS:
                batch.drop_column(column)
            batch.create_unique_constraint(f"uq_{table}_{'_'.join(members)}", list(members))


def _refuse_while_something_goes() -> None:
    for table, _, _ in TABLES:
        going = sa.text(
            f"SELECT count(*) FROM {table} WHERE deleted_at IS NOT NULL AND purged_at IS NULL"
        )
        count = op.get_bind().scalar(going)
        if count:
            raise RuntimeError(
                f"{count} {table} are being deleted. Let the workers finish before going back: "
                "the release before would make them anew."
            )
