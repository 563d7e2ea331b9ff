"""The page of one invoice: what is owed, what for, where it lies in the log, what was proved.

Owns words and layout. Everything that a user could have typed is escaped; nothing is fetched and
nothing runs. Exact figures stand beside rounded ones. Refuses to compute money: every amount here
stands in the draft.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import escape

from pyspark.sql import Row

from reports.billing.accounts import Account
from reports.billing.invoice import DESCRIPTIONS, MINIMUM, PRICING, Draft, Line, span_of
from reports.billing.reconciliation import Check
from reports.input.export import Export
from reports.input.prices import Price, amount_of, rounded
from reports.output.chart import INGRESS, Measure, bars
from reports.output.markup import badge, document, more, section, table, tiles
from reports.output.usage_page import checks_table

HOURLY_SPAN_MAX = timedelta(hours=48)
ROWS_MAX = 100
PLACES_SHOWN = 6


def invoice_page(
    draft: Draft,
    checks: Sequence[Check],
    export: Export,
    trail: Sequence[Row],
    input_sha256: str,
) -> str:
    """The whole document. trail: rows of trail.ingress of this invoice."""
    blocked = not all(check.ok for check in checks)
    parts = [
        _heading(draft, blocked=blocked),
        _figures(draft),
        section("Line items", _lines(draft)),
        *_charts(draft, export),
        section("By topic", _shares(draft)),
        section("Ingress by log offset", _trail(draft, export, trail)) if trail else "",
        section("Reconciliation", _reconciliation(checks, blocked=blocked)),
        _footer(draft, export, input_sha256),
    ]
    title = f"Invoice {draft.period.name}, {escape(draft.organization.name)}"
    return document(title, "".join(parts))


def _heading(draft: Draft, *, blocked: bool) -> str:
    state = badge(not blocked, "blocked: see reconciliation" if blocked else "reconciled")
    return (
        f"<header><h1>Draft invoice {draft.period.name}</h1>"
        f"<p>{escape(draft.organization.name)} &middot; {draft.period.start:%Y-%m-%d} to "
        f"{draft.period.end:%Y-%m-%d} UTC, as of {draft.as_of:%Y-%m-%d %H:%M:%S} {state}</p>"
        "</header>"
    )


def _figures(draft: Draft) -> str:
    currency = escape(draft.currency)
    top_up = next((line.amount for line in draft.lines if line.sku == MINIMUM), Decimal(0))
    return tiles(
        [
            ("Total", f"{currency} {draft.total:,.2f}", f"{len(draft.lines)} line items"),
            (
                "Metered",
                f"{currency} {rounded(draft.metered_exact):,.2f}",
                f"exact: {draft.metered_exact:.9f}",
            ),
            (
                "Top-up",
                f"{currency} {top_up:,.2f}",
                f"to the monthly minimum of {draft.minimum:.2f}",
            ),
            _per_month(draft, currency),
        ]
    )


def _per_month(draft: Draft, currency: str) -> tuple[str, str, str]:
    title, span = "Monthly projection", f"since {draft.rate_from:%Y-%m-%d %H:%M:%S}"
    if draft.per_month is None:
        return title, "not enough data", f"less than one hour of usage {span}"
    figure = f"{currency} {rounded(draft.per_month):,.2f}"
    exact = f"exact: {draft.per_month:.9f}, including the minimum"
    if draft.as_of >= draft.period.end:
        return title, figure, f"{exact}; the month has ended"
    return title, figure, f"{exact}; based on usage {span}"


def _lines(draft: Draft) -> str:
    rows = [
        [
            str(line.number),
            f'<span class="words">{escape(line.description)}</span>',
            escape(line.sku),
            _quantity(line),
            _unit_price(line),
            f"{line.amount_exact:.9f}",
            f"{line.amount:,.2f}",
        ]
        for line in draft.lines
    ]
    foot = ["", "Total", "", "", "", "", f"{draft.total:,.2f}"]
    heads = ["Line", "Description", "SKU", "Quantity", "Unit price", "Exact"]
    return table([*heads, f"Amount ({escape(draft.currency)})"], rows, 3, foot) + (
        "<p>Exact = quantity &times; unit price, rounded half-even to 9 decimal places. Each line "
        "is rounded once, half-even; the total is the sum of the rounded lines.</p>"
    )


def _quantity(line: Line) -> str:
    if line.price is None:
        return "1"
    shown = line.price.units(line.quantity, PLACES_SHOWN)
    return (
        f"{shown.normalize():,f} {escape(line.price.unit)}"
        f'<div class="small">{line.quantity:,} {escape(line.unit)}</div>'
    )


def _unit_price(line: Line) -> str:
    price = line.price
    return f"{line.unit_price:.2f}" if price is None else f"{price.unit_price.normalize():f}"


def _charts(draft: Draft, export: Export) -> list[str]:
    """Cost by meter and ingress by topic; nothing for a period in which nothing was used."""
    account = draft.account
    if account.first is None or account.last is None:
        return []
    hourly = account.last - account.first <= HOURLY_SPAN_MAX
    unit, step = ("hour", timedelta(hours=1)) if hourly else ("day", timedelta(days=1))
    start = _floor(account.first, hourly=hourly)
    count = -((start - account.last) // step)
    buckets = [start + step * number for number in range(count)]
    money = Measure(f"Cost in {draft.currency}", _money)
    costs, ingress = _costs(account, export, hourly=hourly), _ingress(account, hourly=hourly)
    charts = []
    if any(costs.values()):
        chart = bars(unit, buckets, costs, money, "meter")
        title = f"Cost per {unit} and meter ({escape(draft.currency)})"
        charts.append(section(title, chart))
    if any(ingress.values()):
        chart = bars(unit, buckets, ingress, INGRESS)
        charts.append(section(f"Ingress per {unit} and topic", chart))
    return charts


def _costs(account: Account, export: Export, *, hourly: bool) -> dict[tuple[datetime, str], int]:
    """Billionths of the currency, rated per bucket: an estimate, not a bill."""
    quantities: dict[tuple[datetime, str, Price], int] = {}
    for (hour, meter, _), quantity in account.hours.items():
        key = _floor(hour, hourly=hourly), meter, export.book_at(hour).price(meter)
        quantities[key] = quantities.get(key, 0) + quantity
    costs: dict[tuple[datetime, str], int] = {}
    for (bucket, meter, price), quantity in quantities.items():
        place = bucket, DESCRIPTIONS[meter]
        costs[place] = costs.get(place, 0) + int(amount_of(price, quantity).scaleb(9))
    return {key: cost for key, cost in costs.items() if cost}


def _money(billionths: int) -> str:
    """Whole digits and as many places as there are."""
    whole, rest = divmod(billionths, 10**9)
    places = f"{rest:09d}".rstrip("0")
    return f"{whole:,}.{places.ljust(2, '0')}"


def _ingress(account: Account, *, hourly: bool) -> dict[tuple[datetime, str], int]:
    sums: dict[tuple[datetime, str], int] = {}
    for (hour, meter, topic), quantity in account.hours.items():
        if meter == "ingress_bytes":
            key = _floor(hour, hourly=hourly), topic.label
            sums[key] = sums.get(key, 0) + quantity
    return sums


def _shares(draft: Draft) -> str:
    rows = [
        [
            escape(share.topic.project),
            escape(share.topic.label),
            escape(line.sku),
            f"{share.quantity:,} {escape(line.unit)}",
            f"{share.amount_exact:.9f}",
            f"{share.amount:.2f}",
        ]
        for line in draft.lines
        for share in line.shares
    ]
    heads = ["Project", "Topic", "SKU", "Quantity", "Exact", f"Amount ({escape(draft.currency)})"]
    words = (
        "<p>The amount of a line is split among its topics by largest remainder, so it adds up.</p>"
        if rows
        else "<p>No usage in this period.</p>"
    )
    listed = table(heads, rows[:ROWS_MAX], 3) if rows else ""
    return listed + more(len(rows), ROWS_MAX, "rows", f"{draft.stem}.json") + words


def _trail(draft: Draft, export: Export, trail: Sequence[Row]) -> str:
    def place(topic_id: str) -> str:
        stream, topic = export.topics.get(topic_id, ("", topic_id))
        return escape(f"{stream}/{topic}" if stream else topic)

    rows = [
        [
            f"{datetime.fromtimestamp(row['hour_us'] // 1_000_000, UTC):%Y-%m-%d %H:%M}",
            place(row["topic_id"]),
            str(row["partition"]),
            f"{row['bytes']:,}",
            f"{row['records']:,}",
            "expired" if row["first_offset"] is None else f"{row['first_offset']:,}",
            "" if row["end_offset"] is None else f"{row['end_offset'] - 1:,}",
        ]
        for row in trail[:ROWS_MAX]
    ]
    heads = ["Hour (UTC)", "Topic", "Partition", "Bytes", "Records", "First offset", "Last offset"]
    return table(heads, rows, 2) + more(len(trail), ROWS_MAX, "rows", f"{draft.stem}.json")


def _reconciliation(checks: Sequence[Check], *, blocked: bool) -> str:
    words = (
        "<p><b>This invoice cannot be issued until every check passes.</b></p>"
        if blocked
        else "<p>All checks passed.</p>"
    )
    return words + checks_table(checks)


def _books(draft: Draft, export: Export) -> str:
    if len(draft.books) == 1:
        return f"Price book {draft.books[0].version}"
    spans = [(book.version, span_of(book, draft.period, export)[0]) for book in draft.books]
    return "Price books " + ", ".join(f"{name} from {at:%Y-%m-%d %H:%M}" for name, at in spans)


def _footer(draft: Draft, export: Export, input_sha256: str) -> str:
    return (
        f"<footer><p>{escape(_books(draft, export))}. {PRICING}</p>"
        f"<p>Computed from a snapshot of the inputs, <code>{input_sha256}</code>. "
        f"{draft.stem}.csv, .json and .parquet contain the same data. The run is signed: use "
        "<code>headrace report verify</code> with the folder of this page to check files, sums, "
        "signature and chain.</p></footer>"
    )


def _floor(moment: datetime, *, hourly: bool) -> datetime:
    return moment if hourly else moment.replace(hour=0)
