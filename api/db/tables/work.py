"""Tables of the reconcilers: what is due, and what was found.

One row of work per object, not per change: an enqueue merges into it, so that no wake-up is lost
and none is doubled. The status stands in a table of its own, so that writing it never looks like a
change of the spec.
"""

from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import JSON, BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant


class Work(Base):
    """An object somebody must look at, from ``run_after`` on. Leases make sure that one does.

    ``lease_token`` grows with every claim; a holder whose token is not the row's has lost the
    lease, and whatever it found is discarded.
    """

    __tablename__ = "work"
    __table_args__ = (
        Index("ix_work_due", "run_after", "priority"),
        Index("ix_work_leased", "lease_until", "org_id"),
    )

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    object_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40))
    priority: Mapped[int] = mapped_column(default=0)
    run_after: Mapped[datetime] = mapped_column(Instant)
    attempts: Mapped[int] = mapped_column(default=0)
    requested_generation: Mapped[int] = mapped_column(default=1)
    dirty: Mapped[bool] = mapped_column(default=True)
    lease_owner: Mapped[str | None] = mapped_column(String(64))
    lease_token: Mapped[int] = mapped_column(BigInteger, default=0)
    lease_until: Mapped[datetime | None] = mapped_column(Instant)
    last_error: Mapped[str | None] = mapped_column(String(1024))
    enqueued_at: Mapped[datetime] = mapped_column(Instant)


class ResourceStatus(Base):
    """What was last found of an object. ``observed_generation`` means looked at, not done."""

    __tablename__ = "resource_status"

    object_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40), index=True)
    observed_generation: Mapped[int] = mapped_column(default=0)
    conditions: Mapped[list[Json]] = mapped_column(JSON)
    detail: Mapped[dict[str, Json]] = mapped_column(JSON)
    updated_at: Mapped[datetime] = mapped_column(Instant)
