"""What a reader of the report wants summed, gathered while the rows are written.

Owns the sums of the page and of the manifest, taken from the published rows themselves: a second,
independent addition that must agree with Spark's (`agree`). Memory grows with hours x topics and
days x lines, not with rows. Refuses layout.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from reports.errors import PublishError
from reports.formats import Row

DAYS_A_MONTH = 30
HOURLY_SPAN_MAX = timedelta(hours=48)


@dataclass(slots=True)
class Line:
    """One line of the bill: bytes, records and money of one topic and principal."""

    ingress_bytes: int = 0
    records: int = 0
    amount: Decimal = Decimal(0)


LineKey = tuple[str, str, str, str, str, str]
"""organization, project, stream, topic, topic_id, principal"""


@dataclass(slots=True)
class Tally:
    """Sums over rows; every figure is exact."""

    rows: int = 0
    total: Line = field(default_factory=Line)
    lines: dict[LineKey, Line] = field(default_factory=lambda: defaultdict(Line))
    days: dict[tuple[str, LineKey], Line] = field(default_factory=lambda: defaultdict(Line))
    hours: dict[tuple[datetime, str], int] = field(default_factory=lambda: defaultdict(int))
    first: datetime | None = None
    last: datetime | None = None
    estimated: int = 0

    def add(self, row: Row) -> None:
        """Count one published row."""
        quantity, amount = row["quantity"], row["amount"]
        start, end = row["window_start"], row["window_end"]
        assert isinstance(quantity, int)
        assert isinstance(amount, Decimal)
        assert isinstance(start, datetime)
        assert isinstance(end, datetime)
        self.rows += 1
        self.estimated += bool(row["estimated"])
        organization, project, stream, topic, topic_id, principal = (str(row[n]) for n in _LINE)
        key = (organization, project, stream, topic, topic_id, principal)
        day = start.astimezone(UTC).date().isoformat()
        for sums in (self.lines[key], self.days[day, key], self.total):
            sums.amount += amount
            if row["meter"] == "ingress_bytes":
                sums.ingress_bytes += quantity
            elif row["meter"] == "records":
                sums.records += quantity
        if row["meter"] == "ingress_bytes":
            self.hours[start.astimezone(UTC), f"{stream}/{topic}"] += quantity
        self.first = start if self.first is None else min(self.first, start)
        self.last = end if self.last is None else max(self.last, end)

    def agree(self, *, bytes_billed: int, records: int) -> None:
        """The closes, summed by Spark before they became rows, must be what was published.

        Tolerance 0.
        """
        if (self.total.ingress_bytes, self.total.records) != (bytes_billed, records):
            raise PublishError(
                "TOTALS_DISAGREE",
                f"The rows add up to {self.total.ingress_bytes} bytes and {self.total.records} "
                f"records, the closes to {bytes_billed} and {records}.",
                "Nothing was published; keep the inputs and report this fault of the report.",
            )

    def covered(
        self, began: datetime | None, as_of: datetime | None
    ) -> tuple[datetime, datetime] | None:
        """What the rows cover. began: when the first organization was made; as_of: when the run
        was; either may cut the hours of the first and the last row. None: no rows."""
        if self.first is None or self.last is None:
            return None
        inside = began is not None and self.first < began < self.first + timedelta(hours=1)
        start = began if inside and began is not None else self.first
        end = self.last if as_of is None else min(self.last, as_of)
        return start, max(start, end)

    def per_month(self, began: datetime | None, as_of: datetime | None) -> Decimal | None:
        """The amount of 30 days at the average rate of the covered time, to 9 places; None while
        that is less than one full hour."""
        span = self.covered(began, as_of)
        if span is None:
            return Decimal("0.000000000")
        seconds = (span[1] - span[0]) // timedelta(seconds=1)
        if seconds < 3600:
            return None
        of_month = self.total.amount * DAYS_A_MONTH * 86_400 / seconds
        return of_month.quantize(Decimal("0.000000001"))

    def by_day(self) -> list[dict[str, str]]:
        """The sums of each UTC day and line, in order; whole numbers and money as strings."""
        return [
            {
                "day": day,
                **dict(zip(_LINE, key, strict=True)),
                "ingress_bytes": str(line.ingress_bytes),
                "records": str(line.records),
                "amount": f"{line.amount:.9f}",
            }
            for (day, key), line in sorted(self.days.items())
        ]

    def buckets(self) -> tuple[str, Sequence[datetime], dict[tuple[datetime, str], int]]:
        """Bytes per day and topic, or per hour when there are at most two days.

        Every bucket of the span is listed.
        """
        if self.first is None or self.last is None:
            return "day", (), {}
        hourly = self.last - self.first <= HOURLY_SPAN_MAX
        step = timedelta(hours=1) if hourly else timedelta(days=1)
        sums: dict[tuple[datetime, str], int] = defaultdict(int)
        for (hour, topic), quantity in self.hours.items():
            sums[_floor(hour, hourly), topic] += quantity
        start = _floor(self.first.astimezone(UTC), hourly)
        count = -((start - self.last.astimezone(UTC)) // step)
        return ("hour" if hourly else "day"), [start + step * n for n in range(count)], sums


_LINE = ("organization", "project", "stream", "topic", "topic_id", "principal")


def _floor(moment: datetime, hourly: bool) -> datetime:
    return moment if hourly else moment.replace(hour=0)
