"""Table of topics: what users wish. What is so stands in `resource_status`."""

from pydantic import JsonValue as Json
from sqlalchemy import JSON, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base
from api.resource import DeletableColumns


class Topic(DeletableColumns, Base):
    """A topic. ``spec`` holds only what the user set: defaults show in ``status.effective``.

    ``folded_name`` is the name in lower case with ``.`` as ``_``: two names that fold alike would
    be one metric.
    """

    __tablename__ = "topics"
    __table_args__ = (
        # What is gone gives its name back.
        Index(
            "uq_topics_live_name",
            "stream_id",
            "folded_name",
            unique=True,
            sqlite_where=text("purged_at IS NULL"),
            postgresql_where=text("purged_at IS NULL"),
        ),
    )

    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    cluster_id: Mapped[str] = mapped_column(ForeignKey("clusters.id"), index=True)
    stream_id: Mapped[str] = mapped_column(ForeignKey("streams.id"), index=True)
    folded_name: Mapped[str] = mapped_column(String(255))
    spec: Mapped[dict[str, Json]] = mapped_column(JSON)
