"""Tables of invoices. Money is decimal text: floats cannot hold it."""

from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import JSON, BigInteger, CheckConstraint, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant


class Invoice(Base):
    """One organization's bill of one calendar month (UTC).

    A draft is drawn anew by every usage run and keeps its id. That there is one, and not two, is
    the unique key's business: no query decides it.
    """

    __tablename__ = "invoices"
    __table_args__ = (
        UniqueConstraint("org_id", "period_start", "sequence"),
        CheckConstraint("state IN ('DRAFT', 'ISSUED', 'PAID', 'VOID')", name="state"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    org_id: Mapped[str] = mapped_column(ForeignKey("organizations.id"), index=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("report_runs.id"), index=True)
    period_start: Mapped[datetime] = mapped_column(Instant)
    period_end: Mapped[datetime] = mapped_column(Instant)
    sequence: Mapped[int] = mapped_column(default=1)
    state: Mapped[str] = mapped_column(String(16))
    blocked: Mapped[bool]
    as_of: Mapped[datetime] = mapped_column(Instant)
    currency: Mapped[str] = mapped_column(String(3))
    total: Mapped[str] = mapped_column(String(64))
    metered_exact: Mapped[str] = mapped_column(String(64))
    monthly_minimum: Mapped[str] = mapped_column(String(40))
    amount_per_month: Mapped[str] = mapped_column(String(64))
    """Empty: not enough data."""
    rate_from: Mapped[datetime | None] = mapped_column(Instant)
    price_book_version: Mapped[str] = mapped_column(String(32))
    files: Mapped[str] = mapped_column(String(128))
    """The name of its files in the run's folder, without what comes after the last dot."""
    checks: Mapped[list[Json]] = mapped_column(JSON)


class InvoiceLine(Base):
    """One line as the job drew it; `topics` are its shares."""

    __tablename__ = "invoice_lines"

    invoice_id: Mapped[str] = mapped_column(ForeignKey("invoices.id"), primary_key=True)
    line: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    sku: Mapped[str] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(String(255))
    quantity: Mapped[str] = mapped_column(String(64))
    unit: Mapped[str] = mapped_column(String(32))
    unit_price: Mapped[str] = mapped_column(String(64))
    amount_exact: Mapped[str] = mapped_column(String(64))
    amount: Mapped[str] = mapped_column(String(64))
    currency: Mapped[str] = mapped_column(String(3))
    period_start: Mapped[datetime] = mapped_column(Instant)
    period_end: Mapped[datetime] = mapped_column(Instant)
    charge_class: Mapped[str] = mapped_column(String(32))
    corrects_line: Mapped[str] = mapped_column(String(64))
    topics: Mapped[list[Json]] = mapped_column(JSON)
