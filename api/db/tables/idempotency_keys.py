"""Table of idempotency keys: the answers that are kept for replay."""

from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import JSON, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant


class IdempotencyKey(Base):
    """A finished request and its answer, for 24 hours.

    ``scope`` is the SHA-256 of (organization, principal, method, path, key). ``secret_of`` names
    the object whose secret the answer held; then no body is kept.
    """

    __tablename__ = "idempotency_keys"

    scope: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40), index=True)
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary(32))
    status: Mapped[int]
    headers: Mapped[dict[str, str]] = mapped_column(JSON)
    body: Mapped[Json] = mapped_column(JSON)
    secret_of: Mapped[str | None] = mapped_column(String(40))
    expires_at: Mapped[datetime] = mapped_column(Instant, index=True)
