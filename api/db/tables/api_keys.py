"""Table of API keys. The secret itself is in no column: only its SHA-256 is."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from api.db.columns import ResourceColumns
from api.db.database import Base, Instant


class ApiKey(ResourceColumns, Base):
    """A principal and its credential; it is pushed to the nodes, which verify it by themselves."""

    __tablename__ = "api_keys"
    __table_args__ = (
        CheckConstraint("role IN ('owner', 'editor', 'viewer', 'billing-viewer')", name="role"),
        CheckConstraint("length(secret_sha256) = 32", name="secret_sha256"),
        # A revoked key gives its name back.
        Index(
            "uq_api_keys_live_name",
            "org_id",
            "name",
            unique=True,
            sqlite_where=text("revoked_at IS NULL"),
            postgresql_where=text("revoked_at IS NULL"),
        ),
    )

    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
    project_id: Mapped[str | None] = mapped_column(ForeignKey("projects.id"))
    role: Mapped[str] = mapped_column(String(16))
    operator: Mapped[bool] = mapped_column(default=False)
    public_id: Mapped[str] = mapped_column(String(10), unique=True)
    secret_sha256: Mapped[bytes] = mapped_column(LargeBinary(32))
    expires_at: Mapped[datetime | None] = mapped_column(Instant)
    revoked_at: Mapped[datetime | None] = mapped_column(Instant)
