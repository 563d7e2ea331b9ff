"""Table of operations: the receipts of changes that take time. Their state is computed, not
kept."""

from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import JSON, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant


class Operation(Base):
    """A change of ``target_generation`` of an object, and what became of it."""

    __tablename__ = "operations"
    __table_args__ = (
        Index("ix_operations_org_id_id", "org_id", "id"),
        Index("ix_operations_target_id_org_id", "target_id", "org_id", "id"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40))
    project_id: Mapped[str | None] = mapped_column(String(40))
    kind: Mapped[str] = mapped_column(String(32))
    target_kind: Mapped[str] = mapped_column(String(32))
    target_id: Mapped[str] = mapped_column(String(40))
    target_generation: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(Instant)
    created_by: Mapped[str] = mapped_column(String(40))
    deadline_at: Mapped[datetime] = mapped_column(Instant)
    succeeded_at: Mapped[datetime | None] = mapped_column(Instant)
    superseded_at: Mapped[datetime | None] = mapped_column(Instant)
    failed_at: Mapped[datetime | None] = mapped_column(Instant)
    error: Mapped[dict[str, Json] | None] = mapped_column(JSON(none_as_null=True))
