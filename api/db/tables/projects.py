"""Table of projects: a team's part of an organization."""

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from api.db.columns import DeletableColumns
from api.db.database import Base


class Project(DeletableColumns, Base):
    """A part of an organization; keys may be confined to one."""

    __tablename__ = "projects"
    __table_args__ = (
        # What is gone gives its name back.
        Index(
            "uq_projects_live_name",
            "org_id",
            "name",
            unique=True,
            sqlite_where=text("purged_at IS NULL"),
            postgresql_where=text("purged_at IS NULL"),
        ),
    )

    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
