"""Tables of usage and prices: rows that a report run computed, and the price book they name."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from api.db.database import Base, Instant


class PriceBook(Base):
    """An immutable version of what things cost. Money is decimal text: floats cannot hold it."""

    __tablename__ = "price_books"

    version: Mapped[str] = mapped_column(String(32), primary_key=True)
    currency: Mapped[str] = mapped_column(String(3))
    effective_from: Mapped[datetime] = mapped_column(Instant)
    monthly_minimum: Mapped[str] = mapped_column(String(40))


class Price(Base):
    """The price of ``unit_quantity`` of a meter's own unit (2^30 bytes for a GiB)."""

    __tablename__ = "prices"

    version: Mapped[str] = mapped_column(ForeignKey("price_books.version"), primary_key=True)
    meter: Mapped[str] = mapped_column(String(32), primary_key=True)
    unit: Mapped[str] = mapped_column(String(32))
    unit_quantity: Mapped[int] = mapped_column(BigInteger)
    unit_price: Mapped[str] = mapped_column(String(40))


class UsageRow(Base):
    """One line of usage.csv of one run: a meter of a topic and a principal over an hour."""

    __tablename__ = "usage_rows"
    __table_args__ = (Index("ix_usage_rows_run_id_org_id", "run_id", "org_id", "window_start"),)

    sequence: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True
    )
    run_id: Mapped[str] = mapped_column(ForeignKey("report_runs.id"))
    org_id: Mapped[str] = mapped_column(String(40))
    organization: Mapped[str] = mapped_column(String(255))
    project: Mapped[str] = mapped_column(String(255))
    project_id: Mapped[str] = mapped_column(String(40))
    cluster: Mapped[str] = mapped_column(String(255))
    stream: Mapped[str] = mapped_column(String(255))
    topic: Mapped[str] = mapped_column(String(512))
    topic_id: Mapped[str] = mapped_column(String(40))
    principal: Mapped[str] = mapped_column(String(255))
    meter: Mapped[str] = mapped_column(String(32))
    unit: Mapped[str] = mapped_column(String(32))
    window_start: Mapped[datetime] = mapped_column(Instant)
    window_end: Mapped[datetime] = mapped_column(Instant)
    quantity: Mapped[str] = mapped_column(String(64))
    unit_price: Mapped[str] = mapped_column(String(64))
    currency: Mapped[str] = mapped_column(String(3))
    amount: Mapped[str] = mapped_column(String(64))
    price_book_version: Mapped[str] = mapped_column(String(32))
    estimated: Mapped[bool]
