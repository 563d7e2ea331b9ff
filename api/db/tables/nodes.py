"""Table of nodes: where the control plane finds the members of a cluster."""

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from api.db.columns import ResourceColumns
from api.db.database import Base


class Node(ResourceColumns, Base):
    """A process that serves partitions. ``address`` is ``host:port`` of its gRPC port."""

    __tablename__ = "nodes"
    __table_args__ = (UniqueConstraint("cluster_id", "name"),)

    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
    cluster_id: Mapped[str] = mapped_column(ForeignKey("clusters.id"), index=True)
    address: Mapped[str] = mapped_column(String(255))
