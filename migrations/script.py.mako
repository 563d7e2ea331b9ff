"""${message}

The law of migrations: a revision may not break the release before it. Expand first (new columns are nullable or have a
default), backfill in batches, contract one release later. Lock 4 s and statement 5 s at most on PostgreSQL; indexes on
large tables concurrently. Reversible, or the docstring says why not. One change a revision, read by hand.

Revision: ${up_revision}
Revises: ${down_revision | comma,n}
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expands the schema."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Takes the expansion back."""
    ${downgrades if downgrades else "pass"}
