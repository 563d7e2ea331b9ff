"""What is due, what was found, and what happened.

Revision 0002, after 0001. Creates tables only, so that no release before it can break.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# timestamptz on PostgreSQL, integer microseconds since 1970 elsewhere.
INSTANT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    """Creates the tables, parents first."""
    op.create_table(
        "work",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("object_id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("run_after", INSTANT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("requested_generation", sa.Integer(), nullable=False),
        sa.Column("dirty", sa.Boolean(), nullable=False),
        sa.Column("lease_owner", sa.String(length=64), nullable=True),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", INSTANT, nullable=True),
        sa.Column("last_error", sa.String(length=1024), nullable=True),
        sa.Column("enqueued_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "object_id", name="pk_work"),
    )
    op.create_index("ix_work_due", "work", ["run_after", "priority"])
    op.create_index("ix_work_leased", "work", ["lease_until", "org_id"])
    op.create_table(
        "resource_status",
        sa.Column("object_id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("observed_generation", sa.Integer(), nullable=False),
        sa.Column("conditions", sa.JSON(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("object_id", name="pk_resource_status"),
    )
    op.create_index("ix_resource_status_org_id", "resource_status", ["org_id"])
    op.create_table(
        "operations",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=True),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("target_kind", sa.String(length=32), nullable=False),
        sa.Column("target_id", sa.String(length=40), nullable=False),
        sa.Column("target_generation", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("deadline_at", INSTANT, nullable=False),
        sa.Column("succeeded_at", INSTANT, nullable=True),
        sa.Column("superseded_at", INSTANT, nullable=True),
        sa.Column("failed_at", INSTANT, nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
    )
    op.create_index("ix_operations_org_id", "operations", ["org_id"])
    op.create_index("ix_operations_target_id", "operations", ["target_id"])
    op.create_table(
        "audit_events",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("occurred_at", INSTANT, nullable=False),
        sa.Column("principal_id", sa.String(length=40), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("target_kind", sa.String(length=32), nullable=False),
        sa.Column("target_id", sa.String(length=40), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
        sa.UniqueConstraint("org_id", "sequence", name="uq_audit_events_org_id_sequence"),
    )
    op.create_index("ix_audit_events_org_id", "audit_events", ["org_id"])
    op.create_table(
        "outbox",
        sa.Column(
            "sequence",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("occurred_at", INSTANT, nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("target_kind", sa.String(length=32), nullable=False),
        sa.Column("target_id", sa.String(length=40), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_outbox"),
    )
    op.create_index("ix_outbox_org_id", "outbox", ["org_id"])
    op.create_table(
        "idempotency_keys",
        sa.Column("scope", sa.LargeBinary(length=32), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(length=32), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=True),
        sa.Column("secret_of", sa.String(length=40), nullable=True),
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("scope", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_expires_at", "idempotency_keys", ["expires_at"])
    op.create_index("ix_idempotency_keys_org_id", "idempotency_keys", ["org_id"])


def downgrade() -> None:
    """Drops the tables, children first."""
    op.drop_table("idempotency_keys")
    op.drop_table("outbox")
    op.drop_table("audit_events")
    op.drop_table("operations")
    op.drop_table("resource_status")
    op.drop_table("work")
