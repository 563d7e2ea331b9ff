"""Table of clusters. They belong to the operator's organization; tenants may read them."""

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from api.db.columns import ResourceColumns
from api.db.database import Base


class Cluster(ResourceColumns, Base):
    """A set of nodes that replicate together."""

    __tablename__ = "clusters"
    __table_args__ = (UniqueConstraint("name"),)

    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
