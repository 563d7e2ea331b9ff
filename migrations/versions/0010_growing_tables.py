"""What only grows is read by indexes in the order in which it is asked for.

Revision 0010, after 0009. Changes indexes only, so that no release before it can break. The audit
chain may be long: PostgreSQL builds them while others write, as long as that takes. A run that was
ended meanwhile has left one that is not valid; the next run begins it anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

MADE = (
    ("ix_audit_events_org_id_id", "audit_events", ["org_id", "id"]),
    ("ix_audit_events_target_id_org_id", "audit_events", ["target_id", "org_id", "id"]),
    ("ix_operations_org_id_id", "operations", ["org_id", "id"]),
    ("ix_operations_target_id_org_id", "operations", ["target_id", "org_id", "id"]),
    ("ix_usage_rows_run_id_org_id", "usage_rows", ["run_id", "org_id", "window_start"]),
)
# What each was for, one of those does; no query asks for an organization's rows of every run.
REPLACED = (
    ("ix_audit_events_org_id", "audit_events", ["org_id"]),
    ("ix_operations_org_id", "operations", ["org_id"]),
    ("ix_operations_target_id", "operations", ["target_id"]),
    ("ix_usage_rows_run_id", "usage_rows", ["run_id"]),
    ("ix_usage_rows_org_id", "usage_rows", ["org_id"]),
)


def upgrade() -> None:
    """Makes the new ones first."""
    with _beside_others() as concurrently:
        for name, table, columns in MADE:
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=concurrently)
            op.create_index(name, table, columns, postgresql_concurrently=concurrently)
        for name, table, _ in REPLACED:
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=concurrently)


def downgrade() -> None:
    """Makes the ones before again."""
    with _beside_others() as concurrently:
        for name, table, columns in REPLACED:
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=concurrently)
            op.create_index(name, table, columns, postgresql_concurrently=concurrently)
        for name, table, _ in MADE:
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=concurrently)


@contextmanager
def _beside_others() -> Iterator[bool]:
    """On PostgreSQL in no transaction and without a limit of time: nobody waits for it."""
    if op.get_bind().dialect.name != "postgresql":
        yield False
        return
    with op.get_context().autocommit_block():
        usual = op.get_bind().exec_driver_sql("SHOW statement_timeout").scalar_one()
        op.execute("SET statement_timeout = 0")
        yield True
        op.execute(f"SET statement_timeout = '{usual}'")
