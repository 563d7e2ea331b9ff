"""From what span on "at this rate, per month" of an invoice is computed.

Revision 0009, after 0008. Adds a column that may be empty, so that no release before it can break.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# timestamptz on PostgreSQL, integer microseconds since 1970 elsewhere.
INSTANT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    """Adds the column; drafts have it from the next report on."""
    with op.batch_alter_table("invoices") as batch:
        batch.add_column(sa.Column("rate_from", INSTANT, nullable=True))


def downgrade() -> None:
    """Removes it."""
    with op.batch_alter_table("invoices") as batch:
        batch.drop_column("rate_from")
