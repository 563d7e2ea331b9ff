"""Tables of what happened: the audit chain and the outbox.

Both are written in the transaction of the change.
"""

from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import JSON, BigInteger, Index, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant


class AuditEvent(Base):
    """One change or one refusal. ``hash`` covers the row and the previous row's hash."""

    __tablename__ = "audit_events"
    __table_args__ = (
        UniqueConstraint("org_id", "sequence"),
        Index("ix_audit_events_org_id_id", "org_id", "id"),
        Index("ix_audit_events_target_id_org_id", "target_id", "org_id", "id"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40))
    sequence: Mapped[int] = mapped_column(BigInteger)
    occurred_at: Mapped[datetime] = mapped_column(Instant)
    principal_id: Mapped[str] = mapped_column(String(40))
    action: Mapped[str] = mapped_column(String(64))
    outcome: Mapped[str] = mapped_column(String(16))
    target_kind: Mapped[str] = mapped_column(String(32))
    target_id: Mapped[str] = mapped_column(String(40))
    request_id: Mapped[str] = mapped_column(String(64))
    before: Mapped[dict[str, Json] | None] = mapped_column(JSON(none_as_null=True))
    after: Mapped[dict[str, Json] | None] = mapped_column(JSON(none_as_null=True))
    previous_hash: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64))


class OutboxEvent(Base):
    """One change, for those who watch. The number is given in order of insertion."""

    __tablename__ = "outbox"

    sequence: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True
    )
    org_id: Mapped[str] = mapped_column(String(40), index=True)
    occurred_at: Mapped[datetime] = mapped_column(Instant)
    kind: Mapped[str] = mapped_column(String(64))
    target_kind: Mapped[str] = mapped_column(String(32))
    target_id: Mapped[str] = mapped_column(String(40))
    payload: Mapped[dict[str, Json]] = mapped_column(JSON)
