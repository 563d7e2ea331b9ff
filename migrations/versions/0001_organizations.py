"""Organizations and what they hold: projects, clusters, nodes, streams, topics, keys.

Revision 0001, the first. Creates tables only, so that no release before it can break.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# timestamptz on PostgreSQL, integer microseconds since 1970 elsewhere.
INSTANT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    """Creates the tables, parents first."""
    op.create_table(
        "meta",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("value", sa.String(length=256), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_meta"),
    )
    op.create_table(
        "organizations",
        sa.Column("system", sa.Boolean(), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=63), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("annotations", sa.JSON(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.CheckConstraint("org_id = id", name="ck_organizations_own_organization"),
        sa.PrimaryKeyConstraint("id", name="pk_organizations"),
        sa.UniqueConstraint("name", name="uq_organizations_name"),
    )
    op.create_index("ix_organizations_org_id", "organizations", ["org_id"])
    op.create_table(
        "projects",
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=63), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("annotations", sa.JSON(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id"], ["organizations.id"], name="fk_projects_org_id_organizations"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
        sa.UniqueConstraint("org_id", "name", name="uq_projects_org_id_name"),
    )
    op.create_index("ix_projects_org_id", "projects", ["org_id"])
    op.create_table(
        "clusters",
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=63), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("annotations", sa.JSON(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id"], ["organizations.id"], name="fk_clusters_org_id_organizations"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_clusters"),
        sa.UniqueConstraint("name", name="uq_clusters_name"),
    )
    op.create_index("ix_clusters_org_id", "clusters", ["org_id"])
    op.create_table(
        "nodes",
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.String(length=40), nullable=False),
        sa.Column("address", sa.String(length=255), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=63), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("annotations", sa.JSON(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["clusters.id"], name="fk_nodes_cluster_id_clusters"
        ),
        sa.ForeignKeyConstraint(
            ["org_id"], ["organizations.id"], name="fk_nodes_org_id_organizations"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_nodes"),
        sa.UniqueConstraint("cluster_id", "name", name="uq_nodes_cluster_id_name"),
    )
    op.create_index("ix_nodes_cluster_id", "nodes", ["cluster_id"])
    op.create_index("ix_nodes_org_id", "nodes", ["org_id"])
    op.create_table(
        "streams",
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.String(length=40), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=63), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("annotations", sa.JSON(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["clusters.id"], name="fk_streams_cluster_id_clusters"
        ),
        sa.ForeignKeyConstraint(
            ["org_id"], ["organizations.id"], name="fk_streams_org_id_organizations"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_streams_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_streams"),
        sa.UniqueConstraint("project_id", "name", name="uq_streams_project_id_name"),
    )
    op.create_index("ix_streams_cluster_id", "streams", ["cluster_id"])
    op.create_index("ix_streams_org_id", "streams", ["org_id"])
    op.create_index("ix_streams_project_id", "streams", ["project_id"])
    op.create_table(
        "topics",
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("cluster_id", sa.String(length=40), nullable=False),
        sa.Column("stream_id", sa.String(length=40), nullable=False),
        sa.Column("folded_name", sa.String(length=255), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=63), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("annotations", sa.JSON(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["clusters.id"], name="fk_topics_cluster_id_clusters"
        ),
        sa.ForeignKeyConstraint(
            ["org_id"], ["organizations.id"], name="fk_topics_org_id_organizations"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_topics_project_id_projects"
        ),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name="fk_topics_stream_id_streams"),
        sa.PrimaryKeyConstraint("id", name="pk_topics"),
        sa.UniqueConstraint("stream_id", "folded_name", name="uq_topics_stream_id_folded_name"),
    )
    op.create_index("ix_topics_cluster_id", "topics", ["cluster_id"])
    op.create_index("ix_topics_org_id", "topics", ["org_id"])
    op.create_index("ix_topics_project_id", "topics", ["project_id"])
    op.create_index("ix_topics_stream_id", "topics", ["stream_id"])
    op.create_table(
        "api_keys",
        sa.Column("org_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("operator", sa.Boolean(), nullable=False),
        sa.Column("public_id", sa.String(length=10), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("expires_at", INSTANT, nullable=True),
        sa.Column("revoked_at", INSTANT, nullable=True),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("display_name", sa.String(length=63), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("annotations", sa.JSON(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.CheckConstraint(
            "role IN ('owner', 'editor', 'viewer', 'billing-viewer')", name="ck_api_keys_role"
        ),
        sa.CheckConstraint("length(secret_sha256) = 32", name="ck_api_keys_secret_sha256"),
        sa.ForeignKeyConstraint(
            ["org_id"], ["organizations.id"], name="fk_api_keys_org_id_organizations"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_api_keys_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("public_id", name="uq_api_keys_public_id"),
    )
    op.create_index("ix_api_keys_org_id", "api_keys", ["org_id"])
    op.create_index(
        "uq_api_keys_live_name",
        "api_keys",
        ["org_id", "name"],
        unique=True,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )


def downgrade() -> None:
    """Drops the tables, children first."""
    op.drop_table("api_keys")
    op.drop_table("topics")
    op.drop_table("streams")
    op.drop_table("nodes")
    op.drop_table("clusters")
    op.drop_table("projects")
    op.drop_table("organizations")
    op.drop_table("meta")
