"""Table of streams: a namespace of topics, on one cluster."""

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from api.db.columns import DeletableColumns
from api.db.database import Base


class Stream(DeletableColumns, Base):
    """A namespace of topics in a project."""

    __tablename__ = "streams"
    __table_args__ = (
        # What is gone gives its name back.
        Index(
            "uq_streams_live_name",
            "project_id",
            "name",
            unique=True,
            sqlite_where=text("purged_at IS NULL"),
            postgresql_where=text("purged_at IS NULL"),
        ),
    )

    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    cluster_id: Mapped[str] = mapped_column(ForeignKey("clusters.id"), index=True)
