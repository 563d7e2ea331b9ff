"""Tables of topics: the specs. Their status stands in `resource_status`."""

from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import JSON, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from api.db.columns import DeletableColumns
from api.db.database import Base, Instant


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


class TopicPurge(Base):
    """What shall go of a topic and has not been said to its cluster: by partition the first offset
    that is kept, as decimal strings. ``generation`` is the topic's that requested it last."""

    __tablename__ = "topic_purges"

    topic_id: Mapped[str] = mapped_column(ForeignKey("topics.id"), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40))
    before: Mapped[dict[str, str]] = mapped_column(JSON)
    generation: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(Instant)
    created_by: Mapped[str] = mapped_column(String(40))


class TopicSpan(Base):
    """How many partitions a topic had from one of its generations on; open while it goes on."""

    __tablename__ = "topic_lifecycle"

    topic_id: Mapped[str] = mapped_column(ForeignKey("topics.id"), primary_key=True)
    generation: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    org_id: Mapped[str] = mapped_column(String(40))
    project_id: Mapped[str] = mapped_column(String(40))
    cluster_id: Mapped[str] = mapped_column(String(40))
    partitions: Mapped[int]
    started_at: Mapped[datetime] = mapped_column(Instant)
    ended_at: Mapped[datetime | None] = mapped_column(Instant)
