"""Tables of the retention report that is shown: its rows, and what it says of each topic.

`org_id` is empty for a topic that the control plane does not know (its database is younger than the
cluster): only the operator sees those.
"""

from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import JSON, BigInteger, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant


class RetentionRow(Base):
    """One line of retention.csv of one run: a trim, or a partition as it stood.

    ``line`` is its number, twelve digits, so that lines page in order.
    """

    __tablename__ = "retention_rows"

    run_id: Mapped[str] = mapped_column(ForeignKey("report_runs.id"), primary_key=True)
    line: Mapped[str] = mapped_column(String(12), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40), index=True)
    project_id: Mapped[str] = mapped_column(String(40))
    topic: Mapped[str] = mapped_column(String(512))
    topic_id: Mapped[str] = mapped_column(String(40), index=True)
    partition: Mapped[int]
    policy_source: Mapped[str] = mapped_column(String(16))
    retention_ms: Mapped[int | None] = mapped_column(BigInteger)
    retention_bytes: Mapped[int | None] = mapped_column(BigInteger)
    live_bytes: Mapped[int] = mapped_column(BigInteger)
    oldest_at: Mapped[datetime | None] = mapped_column(Instant)
    deleted_bytes: Mapped[int] = mapped_column(BigInteger)
    deleted_records: Mapped[int] = mapped_column(BigInteger)
    first_offset: Mapped[int] = mapped_column(BigInteger)
    last_offset: Mapped[int] = mapped_column(BigInteger)
    cause: Mapped[str] = mapped_column(String(16))
    deleted_at: Mapped[datetime | None] = mapped_column(Instant)
    age_at_deletion_ms: Mapped[int | None] = mapped_column(BigInteger)
    next_deletion_at: Mapped[datetime | None] = mapped_column(Instant)
    hold_id: Mapped[str] = mapped_column(String(1024))
    violation: Mapped[str] = mapped_column(String(255))


class RetentionTopic(Base):
    """What one run says of one topic: an entry of `topics` in retention.json, as it came."""

    __tablename__ = "retention_topics"

    run_id: Mapped[str] = mapped_column(ForeignKey("report_runs.id"), primary_key=True)
    topic_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(String(40), index=True)
    project_id: Mapped[str] = mapped_column(String(40))
    document: Mapped[dict[str, Json]] = mapped_column(JSON)
