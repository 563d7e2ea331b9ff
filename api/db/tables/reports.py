"""Tables of report runs, and which run's rows are shown."""

from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import JSON, CheckConstraint, ForeignKey, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant


class ReportRun(Base):
    """One run of a report. Its token is good for this run only and replaced at every start."""

    __tablename__ = "report_runs"
    __table_args__ = (
        CheckConstraint("state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED')", name="state"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
    kind: Mapped[str] = mapped_column(String(32))
    state: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = mapped_column(Instant)
    created_by: Mapped[str] = mapped_column(String(40))
    started_at: Mapped[datetime | None] = mapped_column(Instant)
    finished_at: Mapped[datetime | None] = mapped_column(Instant)
    token_public_id: Mapped[str | None] = mapped_column(String(10), unique=True)
    token_sha256: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    log_path: Mapped[str | None] = mapped_column(String(1024))
    error: Mapped[dict[str, Json] | None] = mapped_column(JSON(none_as_null=True))
    result: Mapped[dict[str, Json] | None] = mapped_column(JSON(none_as_null=True))


class CurrentRun(Base):
    """The run of a kind whose result is shown."""

    __tablename__ = "current_runs"

    kind: Mapped[str] = mapped_column(String(32), primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("report_runs.id"))
    updated_at: Mapped[datetime] = mapped_column(Instant)
