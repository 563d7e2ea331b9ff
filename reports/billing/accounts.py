"""What each organization used in each billing period, gathered while the rows are published.

Owns periods and the sums that an invoice is drawn from; they are taken from the published rows, so
an invoice can only say what usage.csv says. Memory grows with hours x topics, not with rows.
Refuses prices: invoice.py rates the sums.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

from reports.formats import Row


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A calendar month in UTC, half-open."""

    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """Like 2026-11."""
        return f"{self.start:%Y-%m}"


@dataclass(frozen=True, slots=True, order=True)
class TopicName:
    """A topic as people know it; the id tells two of one name apart."""

    project: str
    stream: str
    topic: str
    topic_id: str

    @property
    def label(self) -> str:
        """stream/topic."""
        return f"{self.stream}/{self.topic}"


@dataclass(slots=True)
class Account:
    """Exact sums of one organization in one period; meters by name."""

    rows: int = 0
    quantities: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    amounts: dict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    hours: dict[tuple[datetime, str, TopicName], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    first: datetime | None = None
    last: datetime | None = None

    def days(self, meter: str) -> dict[date, int]:
        """The meter by UTC day."""
        found: dict[date, int] = defaultdict(int)
        for (hour, name, _), quantity in self.hours.items():
            if name == meter:
                found[hour.date()] += quantity
        return found


class Accounts:
    """Accounts by organization (its name, as in the rows) and period."""

    def __init__(self) -> None:
        self.by: dict[tuple[str, Period], Account] = {}

    def add(self, row: Row) -> None:
        """Count one published row. An hour lies in one month only, for both are of UTC."""
        start, end = row["window_start"], row["window_end"]
        quantity, amount, meter = row["quantity"], row["amount"], str(row["meter"])
        assert isinstance(start, datetime)
        assert isinstance(end, datetime)
        assert isinstance(quantity, int)
        assert isinstance(amount, Decimal)
        hour = start.astimezone(UTC)
        key = str(row["organization"]), period_of(hour)
        account = self.by.setdefault(key, Account())
        names = [str(row[name]) for name in ("project", "stream", "topic", "topic_id")]
        topic = TopicName(*names)
        account.rows += 1
        account.quantities[meter] += quantity
        account.amounts[meter] += amount
        account.hours[hour, meter, topic] += quantity
        account.first = hour if account.first is None else min(account.first, hour)
        ended = end.astimezone(UTC)
        account.last = ended if account.last is None else max(account.last, ended)


def period_of(moment: datetime) -> Period:
    """The month that holds a moment."""
    start = moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    year, month = divmod(start.year * 12 + start.month, 12)
    return Period(start, start.replace(year=year, month=month + 1))


def periods_between(first: datetime, last: datetime) -> Iterator[Period]:
    """Every month from that of `first` to that of `last`."""
    period = period_of(first)
    while period.start <= last:
        yield period
        period = period_of(period.end)
