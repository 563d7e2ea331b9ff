"""Table of organizations: the tenants. A row's ``org_id`` is its own id."""

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from api.db.columns import ResourceColumns
from api.db.database import Base


class Organization(ResourceColumns, Base):
    """A tenant. ``system`` marks the one that holds the cluster's own topics."""

    __tablename__ = "organizations"
    __table_args__ = (
        UniqueConstraint("name"),
        CheckConstraint("org_id = id", name="own_organization"),
    )

    system: Mapped[bool] = mapped_column(default=False)
