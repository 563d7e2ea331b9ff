"""What happened to one object is found without a look at what happened to all others.

Revision 0010, after 0009. Adds an index only, so that no release before it can break. The audit
chain may be long: PostgreSQL builds it while others write, as long as that takes. A run that was
ended meanwhile has left one that is not valid; the next run begins it anew.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NAME = "ix_audit_events_target_id"
TABLE = "audit_events"
COLUMNS = ["target_id", "sequence"]


def upgrade() -> None:
    """Adds the index."""
    if op.get_bind().dialect.name != "postgresql":
        op.create_index(NAME, TABLE, COLUMNS)
        return
    with op.get_context().autocommit_block():
        usual = op.get_bind().exec_driver_sql("SHOW statement_timeout").scalar_one()
        op.execute("SET statement_timeout = 0")
        op.drop_index(NAME, TABLE, if_exists=True, postgresql_concurrently=True)
        op.create_index(NAME, TABLE, COLUMNS, postgresql_concurrently=True)
        op.execute(f"SET statement_timeout = '{usual}'")


def downgrade() -> None:
    """Removes it."""
    op.drop_index(NAME, TABLE)
