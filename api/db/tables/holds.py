"""Table of legal holds: what must not be deleted, for which case, and who said so."""

from datetime import datetime
from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant

# States in which a hold keeps records from going.
KEEPING: Final = ("PROPAGATING", "ACTIVE")


class LegalHold(Base):
    """A hold on a topic, for ever in the table: a released one is evidence too.

    ``revision`` counts what users did, 1 and then 2 for the release, and is the generation too.
    ``state``, ``intent_op``, ``activated_at`` and ``released_at`` follow the cluster and are
    written by a pass alone; ``released_by`` requested the release.
    """

    __tablename__ = "legal_holds"
    __table_args__ = (
        CheckConstraint(
            "state IN ('PROPAGATING', 'ACTIVE', 'RELEASING', 'RELEASED')", name="state"
        ),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"), index=True)
    topic_id: Mapped[str] = mapped_column(ForeignKey("topics.id"), index=True)
    partition: Mapped[int | None]  # all of them, also those to come
    from_offset: Mapped[int | None] = mapped_column(BigInteger)  # from the log's start
    case_id: Mapped[str] = mapped_column(String(128), index=True)
    reason: Mapped[str] = mapped_column(String(1024))
    state: Mapped[str] = mapped_column(String(16))
    intent_op: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(Instant)
    created_by: Mapped[str] = mapped_column(String(40))
    activated_at: Mapped[datetime | None] = mapped_column(Instant)
    release_wished_at: Mapped[datetime | None] = mapped_column(Instant)
    released_at: Mapped[datetime | None] = mapped_column(Instant)
    released_by: Mapped[str | None] = mapped_column(String(40))
    revision: Mapped[int] = mapped_column(default=1)
