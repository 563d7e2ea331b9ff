"""Draft invoices: one per organization and calendar month (UTC), from sums and the price book.

Owns rounding: a line is one meter by one price book. It is rated once from its whole quantity,
exact to 9 places (`amount_exact`), and rounded once, half-even, to the minor unit (`amount`); the
total is the sum of the lines as shown. A line's shares by topic are cut by the largest remainder,
so they add up to the line. The monthly minimum is a line of its own that tops the others up. Pure;
no float. Refuses to issue anything: a draft is drawn anew by every run until somebody issues it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from reports.billing.accounts import (
    Account,
    Accounts,
    Period,
    TopicName,
    period_of,
    periods_between,
)
from reports.formats import Value
from reports.input.export import Export, Organization
from reports.input.prices import COUNTED_IN, INFORMATIONAL, Price, PriceBook, amount_of, rounded

COLUMNS = (
    "line",
    "sku",
    "description",
    "quantity",
    "unit",
    "unit_price",
    "amount_exact",
    "amount",
    "currency",
    "period_start",
    "period_end",
    "charge_class",
    "corrects_line",
)
MINIMUM = "monthly_minimum"
DESCRIPTIONS = {
    "ingress_bytes": "Ingress, stored batch bytes",
    "partition_seconds": "Partitions, by lifetime",
    "egress_bytes": "Egress, batch bytes sent to consumers",
    "requests": "Requests",
    "stored_byte_seconds": "Storage, one copy",
    "records": "Records",
}
# The order of lines; what is dear comes first.
SKUS = tuple(DESCRIPTIONS)
# Of less than this nothing is foretold: what an account does first, it does not do all month.
COVERED_MIN = timedelta(hours=1)
NINE = Decimal("0.000000001")
# Printed on every draft, since prices can change while a month is open.
PRICING = (
    "Each hour is priced by the price book in effect when the hour began; the monthly minimum is "
    "that of the book in effect when the month began. A price change never affects earlier hours."
)


@dataclass(frozen=True, slots=True)
class Share:
    """A topic's part of a line: quantity, and minor units that add up to the line's amount."""

    topic: TopicName
    quantity: int
    amount_exact: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Line:
    """One line. quantity is in whole counted units (bytes, seconds), unit_price that of one."""

    number: int
    sku: str
    description: str
    quantity: int
    unit: str
    unit_price: Decimal
    amount_exact: Decimal
    amount: Decimal
    currency: str
    price: Price | None
    """What the price book says; None for the minimum."""
    book: PriceBook
    start: datetime
    end: datetime
    """The part of the month that the book prices, half-open."""
    shares: tuple[Share, ...] = ()

    def row(self) -> dict[str, Value]:
        """The columns, in their order. Nothing corrects anything: that begins with issuing."""
        return {
            "line": self.number,
            "sku": self.sku,
            "description": self.description,
            "quantity": self.quantity,
            "unit": self.unit,
            "unit_price": self.unit_price,
            "amount_exact": self.amount_exact,
            "amount": self.amount,
            "currency": self.currency,
            "period_start": self.start,
            "period_end": self.end,
            "charge_class": "",
            "corrects_line": "",
        }


@dataclass(frozen=True, slots=True)
class Draft:
    """An invoice that is not issued yet. as_of: what it knows of; per_month: the whole period at
    the rate from rate_from to as_of, exact to 9 places, and not below the minimum; None while that
    is less than COVERED_MIN. Of a month that is over it is what the month cost."""

    organization: Organization
    period: Period
    as_of: datetime
    currency: str
    minimum: Decimal
    books: tuple[PriceBook, ...]
    """That price the month, as far as it is known; the last one is the newest."""
    lines: tuple[Line, ...]
    rate_from: datetime
    per_month: Decimal | None
    account: Account

    @property
    def stem(self) -> str:
        """The name of its files, without what comes after the dot."""
        return f"invoice-{self.organization.id}-{self.period.name}"

    @property
    def total(self) -> Decimal:
        """The sum of the lines as they are shown."""
        return sum((line.amount for line in self.lines), Decimal("0.00"))

    @property
    def metered_exact(self) -> Decimal:
        """The sum of what was metered, before any rounding to minor units and without top-up."""
        metered = (line.amount_exact for line in self.lines if line.sku != MINIMUM)
        return sum(metered, Decimal("0.000000000"))


def drafts_of(accounts: Accounts, export: Export) -> list[Draft]:
    """Every draft, by organization id and period. Usage of an organization that the export does not
    list is in none: the reconciliation shows it and blocks."""
    found = []
    for identity in sorted(export.organizations):
        organization = export.organizations[identity]
        if organization.name.startswith("_"):
            continue
        for period in _periods(organization, accounts, export.as_of):
            account = accounts.by.get((organization.name, period), Account())
            as_of = min(export.as_of or account.last or period.end, period.end)
            found.append(_draft(organization, period, as_of, account, export))
    return found


def lines_of(account: Account, period: Period, export: Export) -> tuple[Line, ...]:
    """The lines of an account: one per meter and price book that have rows, then the top-up."""
    by_book = quantities_of(account, export)
    several = len({version for _, version in by_book}) > 1
    lines: list[Line] = []
    for sku in SKUS:
        books = [book for book in export.books if (sku, book.version) in by_book]
        if sku in INFORMATIONAL and not any(book.price(sku).unit_price for book in books):
            continue
        for book in books:
            quantities = by_book[sku, book.version]
            line = _metered(len(lines) + 1, sku, quantities, book, span_of(book, period, export))
            named = f"{line.description}, price book {book.version}"
            lines.append(replace(line, description=named) if several else line)
    book = export.book_at(period.start)
    missing = book.monthly_minimum - sum((line.amount for line in lines), Decimal(0))
    if missing > 0:
        lines.append(_top_up(len(lines) + 1, missing, book, period))
    return tuple(lines)


def quantities_of(account: Account, export: Export) -> dict[tuple[str, str], dict[TopicName, int]]:
    """Quantities by topic, by meter and version of the price book of their hours."""
    found: dict[tuple[str, str], dict[TopicName, int]] = defaultdict(lambda: defaultdict(int))
    books = {hour: export.book_at(hour).version for hour in {key[0] for key in account.hours}}
    for (hour, meter, topic), quantity in account.hours.items():
        found[meter, books[hour]][topic] += quantity
    return found


def span_of(book: PriceBook, period: Period, export: Export) -> tuple[datetime, datetime]:
    """The part of a period that a book prices; of the first one all that is older too."""
    place = export.books.index(book)
    start = period.start if place == 0 else max(period.start, book.starts)
    later = export.books[place + 1 :]
    return start, min([period.end, *(other.starts for other in later)])


def _metered(
    number: int,
    sku: str,
    quantities: Mapping[TopicName, int],
    book: PriceBook,
    span: tuple[datetime, datetime],
) -> Line:
    price, quantity = book.price(sku), sum(quantities.values())
    exact = amount_of(price, quantity)
    amount = rounded(exact)
    return Line(
        number=number,
        sku=sku,
        description=DESCRIPTIONS[sku],
        quantity=quantity,
        unit=COUNTED_IN[sku],
        unit_price=price.per_counted,
        amount_exact=exact,
        amount=amount,
        currency=book.currency,
        price=price,
        book=book,
        start=span[0],
        end=span[1],
        shares=shares_of(price, amount, quantities),
    )


def shares_of(
    price: Price, amount: Decimal, quantities: Mapping[TopicName, int]
) -> tuple[Share, ...]:
    """`amount` cut among topics by the largest remainder; equal remainders in order of name."""
    total, cents = sum(quantities.values()), int(amount.scaleb(2))
    floors = {topic: divmod(cents * each, total or 1) for topic, each in quantities.items()}
    order = sorted(floors, key=lambda topic: (-floors[topic][1], topic))
    left = cents - sum(whole for whole, _ in floors.values()) if total else 0
    extra = set(order[:left])
    return tuple(
        Share(
            topic,
            quantities[topic],
            amount_of(price, quantities[topic]),
            Decimal(floors[topic][0] + (topic in extra)).scaleb(-2),
        )
        for topic in sorted(quantities)
    )


def _top_up(number: int, missing: Decimal, book: PriceBook, period: Period) -> Line:
    least = f"{book.monthly_minimum:.2f} {book.currency}"
    return Line(
        number=number,
        sku=MINIMUM,
        description=f"Top-up to the monthly minimum of {least}",
        quantity=1,
        unit="month",
        unit_price=missing,
        amount_exact=missing.quantize(NINE),
        amount=rounded(missing),
        currency=book.currency,
        price=None,
        book=book,
        start=period.start,
        end=period.end,
    )


def _draft(
    organization: Organization, period: Period, as_of: datetime, account: Account, export: Export
) -> Draft:
    lines = lines_of(account, period, export)
    books, least = _books(period, as_of, export), export.book_at(period.start).monthly_minimum
    metered = sum((one.amount_exact for one in lines if one.sku != MINIMUM), Decimal(0))
    began = _began(organization, period, account)
    rate = _at_rate(metered, period, began, as_of)
    return Draft(
        organization=organization,
        period=period,
        as_of=as_of,
        currency=books[-1].currency,
        minimum=least,
        books=books,
        lines=lines,
        rate_from=began,
        per_month=None if rate is None else max(rate, least).quantize(NINE),
        account=account,
    )


def _began(organization: Organization, period: Period, account: Account) -> datetime:
    """From when on the period is known: the organization's making, which may lie inside the hour of
    its first row. Only usage of earlier hours, or an export that does not say, goes by hours."""
    created, first = organization.created, account.first
    if created is None or (first is not None and first + timedelta(hours=1) <= created):
        created = first or period.start
    return max(period.start, created)


def _at_rate(metered: Decimal, period: Period, began: datetime, as_of: datetime) -> Decimal | None:
    if as_of >= period.end:
        return metered
    if as_of - began < COVERED_MIN:
        return None
    seconds = timedelta(seconds=1)
    return metered * ((period.end - period.start) // seconds) / ((as_of - began) // seconds)


def _books(period: Period, as_of: datetime, export: Export) -> tuple[PriceBook, ...]:
    """Those that price some hour of a period up to as_of, by when they begin."""
    spans = ((book, span_of(book, period, export)) for book in export.books)
    found = tuple(book for book, (start, end) in spans if start < end and start < as_of)
    return found or (export.book_at(period.start),)


def _periods(
    organization: Organization, accounts: Accounts, as_of: datetime | None
) -> Iterator[Period]:
    """The months that have usage, and those from the organization's first to the present one."""
    found = {period for name, period in accounts.by if name == organization.name}
    if as_of is not None:
        first = min([organization.created or as_of, *(period.start for period in found)])
        found |= set(periods_between(first, as_of.astimezone(UTC)))
        found.add(period_of(as_of))
    yield from sorted(found)
