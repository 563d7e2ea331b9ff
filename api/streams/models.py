"""Table of streams: a namespace of topics, on one cluster."""

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base
from api.resource import ResourceColumns


class Stream(ResourceColumns, Base):
    """A namespace of topics in a project."""

    __tablename__ = "streams"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    cluster_id: Mapped[str] = mapped_column(ForeignKey("clusters.id"), index=True)
