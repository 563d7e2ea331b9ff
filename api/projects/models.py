"""Table of projects: a team's part of an organization."""

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base
from api.resource import ResourceColumns


class Project(ResourceColumns, Base):
    """A part of an organization; keys may be confined to one."""

    __tablename__ = "projects"
    __table_args__ = (UniqueConstraint("org_id", "name"),)

    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
