"""Legal holds, and purges that a cluster has not been told of.

Revision 0006, after 0004. Creates tables only, so that no release before it can break. Going back
drops the rows, and refuses while one is not released: the release before would let held topics be
marked for deletion, and could not release what the cluster holds.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0004"
branch_labels = None
depends_on = None

# timestamptz on PostgreSQL, integer microseconds since 1970 elsewhere.
INSTANT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
PARENTS = (
    ("org_id", "organizations"),
    ("project_id", "projects"),
    ("topic_id", "topics"),
)


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "legal_holds",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("topic_id", sa.String(length=40), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=True),
        sa.Column("from_offset", sa.BigInteger(), nullable=True),
        sa.Column("case_id", sa.String(length=128), nullable=False),
        sa.Column("reason", sa.String(length=1024), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("intent_op", sa.BigInteger(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("activated_at", INSTANT, nullable=True),
        sa.Column("release_wished_at", INSTANT, nullable=True),
        sa.Column("released_at", INSTANT, nullable=True),
        sa.Column("released_by", sa.String(length=40), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "state IN ('PROPAGATING', 'ACTIVE', 'RELEASING', 'RELEASED')",
            name="ck_legal_holds_state",
        ),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{parent}.id"], name=f"fk_legal_holds_{column}_{parent}"
            )
            for column, parent in PARENTS
        ),
        sa.PrimaryKeyConstraint("id", name="pk_legal_holds"),
    )
    op.create_table(
        "topic_purges",
        sa.Column("topic_id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["topic_id"], ["topics.id"], name="fk_topic_purges_topic_id_topics"
        ),
        sa.PrimaryKeyConstraint("topic_id", name="pk_topic_purges"),
    )
    for column in ("org_id", "project_id", "topic_id", "case_id"):
        op.create_index(f"ix_legal_holds_{column}", "legal_holds", [column])


def downgrade() -> None:
    """Drops the tables."""
    held = sa.text("SELECT count(*) FROM legal_holds WHERE state != 'RELEASED'")
    count = op.get_bind().scalar(held)
    if count:
        raise RuntimeError(
            f"{count} legal holds are not released. The release before cannot release them, and a "
            "topic that the cluster holds would never go: release them first."
        )
    op.drop_table("topic_purges")
    op.drop_table("legal_holds")
