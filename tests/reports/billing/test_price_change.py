"""Prices change at any hour: what was before costs what it did, a month is its parts' sum.

Pure: no Spark runs here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

from reports.billing.accounts import Accounts, period_of
from reports.billing.invoice import MINIMUM, Draft, Line, drafts_of, lines_of
from reports.billing.reconciliation import Measured, checks_of_draft
from reports.input.export import Export
from reports.input.prices import INFORMATIONAL, Price, PriceBook, amount_of
from reports.output.invoice_files import write_invoice
from tests.reports.building import export

GIB = 1 << 30
START = datetime(2026, 11, 1, tzinfo=UTC)
HOURS = 30 * 24
METERS = ("ingress_bytes", "partition_seconds", "egress_bytes", "records")
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Use:
    """What was used of a topic in an hour of November."""

    hour: int
    quantity: int
    meter: str = "ingress_bytes"
    topic: str = "flights"

    @property
    def moment(self) -> datetime:
        """When its hour began."""
        return START + self.hour * HOUR


USES = st.lists(
    st.builds(
        Use,
        st.integers(0, HOURS - 1),
        st.integers(0, 40 * GIB),
        st.sampled_from(METERS),
        st.sampled_from(("flights", "orders")),
    ),
    min_size=1,
    max_size=25,
)


def old_book(**changes: str) -> PriceBook:
    """The book of `export`, in force since ever."""
    return replace(export(**changes).price_book, version="old")


def new_book(change: int, minute: int = 0, minimum: str = "0") -> PriceBook:
    """Dearer by half, records too, from an hour of November on, or from inside the one before."""
    prices = [replace(price, unit_price=price.unit_price * 3 / 2) for price in old_book().prices]
    return replace(
        old_book(minimum=minimum),
        version="new",
        prices=(*prices, Price("records", "record", 1, Decimal("0.001"))),
        effective_from=START + change * HOUR - timedelta(minutes=minute),
    )


def names(*books: PriceBook, as_of: str = "2027-01-10T00:00:00Z") -> Export:
    """Two topics and these books."""
    return replace(export(as_of=as_of), books=books, lifecycle=())


def accounts_of(uses: Sequence[Use], told: Export) -> Accounts:
    """The sums of the rows of these uses, each rated as a row is."""
    found = Accounts()
    for use in uses:
        price = told.book_at(use.moment).price(use.meter)
        found.add(
            {
                "organization": "acme",
                "project": "default",
                "stream": "default",
                "topic": use.topic,
                "topic_id": f"tp_{use.topic}",
                "meter": use.meter,
                "window_start": use.moment,
                "window_end": use.moment + HOUR,
                "quantity": use.quantity,
                "amount": amount_of(price, use.quantity),
            }
        )
    return found


def lines(uses: Sequence[Use], *books: PriceBook) -> tuple[Line, ...]:
    """What November costs by these books."""
    told, period = names(*books), period_of(START)
    account = accounts_of(uses, told).by.get(("acme", period))
    return () if account is None else lines_of(account, period, told)


def drawn(uses: Sequence[Use], told: Export) -> Draft:
    """The draft of November."""
    drafts = drafts_of(accounts_of(uses, told), told)
    return next(one for one in drafts if one.period.start == START)


def costs(found: Sequence[Line]) -> list[tuple[str, str, int, Decimal, Decimal, Decimal]]:
    """What lines say, without their place; informational meters that cost nothing left out."""
    return sorted(
        (one.sku, one.book.version, one.quantity, one.unit_price, one.amount_exact, one.amount)
        for one in found
        if one.sku not in INFORMATIONAL or one.unit_price
    )


@given(USES, st.integers(0, HOURS), st.integers(0, 59))
@settings(max_examples=150, deadline=None)
def test_a_change_at_any_hour_is_the_sum_of_two_periods(
    uses: list[Use], change: int, minute: int
) -> None:
    old, new = old_book(), new_book(change, minute)
    before = lines([use for use in uses if use.hour < change], old)
    after = lines([use for use in uses if use.hour >= change], new)
    whole = lines(uses, old, new)
    assert costs(whole) == costs([*before, *after])
    shares = {(one.sku, one.book.version): one.shares for one in whole}
    for line in (*before, *after):
        assert shares.get((line.sku, line.book.version), line.shares) == line.shares
    turn = START + change * HOUR
    for line in whole:
        span = (START, turn) if line.book == old else (turn, period_of(START).end)
        assert (line.start, line.end) == span


@given(USES, st.integers(0, HOURS))
@settings(max_examples=60, deadline=None)
def test_a_month_of_two_books_reconciles(uses: list[Use], change: int) -> None:
    told = names(old_book(), new_book(change))
    uses = [use for use in uses if use.meter != "partition_seconds"]
    raw = [
        Row(
            organization_id="org_acme",
            at_us=int(use.moment.timestamp()) * 1_000_000,
            meter=use.meter,
            quantity=use.quantity,
        )
        for use in uses
    ]
    measured = Measured(lives=[], series=[], raw=raw, ingress=[], partitions=[], findings=[])
    checks = checks_of_draft(drawn(uses, told), measured, told)
    red = [check for check in checks if not check.ok]
    assert red == []


@given(USES, st.integers(HOURS, 3 * HOURS))
@settings(max_examples=40, deadline=None)
def test_a_change_of_prices_never_reprices_a_month_before_it(uses: list[Use], change: int) -> None:
    before = drawn(uses, names(old_book(minimum="5.00")))
    after = drawn(uses, names(old_book(minimum="5.00"), new_book(change, minimum="50.00")))
    assert (before.lines, before.total, before.minimum) == (after.lines, after.total, after.minimum)
    assert [book.version for book in after.books] == ["old"]


def test_the_minimum_is_that_of_the_book_in_force_when_the_month_began() -> None:
    told = names(old_book(minimum="5.00"), new_book(100, minimum="10.00"))
    drafts = drafts_of(Accounts(), told)
    totals = [(one.period.name, f"{one.total}") for one in drafts]
    assert totals == [("2026-11", "5.00"), ("2026-12", "10.00"), ("2027-01", "10.00")]


def test_lines_of_both_books_lead_back_to_their_hours_and_are_told_to_cost_tools(
    tmp_path: Path,
) -> None:
    uses = [Use(98, 40 * GIB), Use(99, 60 * GIB), Use(100, 20 * GIB, topic="orders")]
    told = names(old_book(), new_book(100))
    trail = [_trail(use) for use in uses]
    draft = drawn(uses, told)
    write_invoice(tmp_path, draft, [], told, trail, "0" * 64)

    document = json.loads((tmp_path / f"{draft.stem}.json").read_bytes())
    old, new = (line for line in document["lines"] if line["sku"] == "ingress_bytes")
    assert (old["amount"], new["amount"], document["total"]) == ("5.00", "1.50", "6.50")
    assert [old["description"][-3:], new["description"][-3:]] == ["old", "new"]
    assert old["period_end"] == new["period_start"] == "2026-11-05T04:00:00Z"
    for line, count in ((old, 2), (new, 1)):
        assert len(line["hours"]) == len(line["partitions"]) == count
        assert sum(int(one["quantity"]) for one in line["hours"]) == int(line["quantity"])
        assert sum(int(one["bytes"]) for one in line["partitions"]) == int(line["quantity"])
    assert [one["topic_id"] for one in new["topics"]] == ["tp_orders"]
    assert [(one["version"], one["from"]) for one in document["price_books"]] == [
        ("old", "2026-11-01T00:00:00Z"),
        ("new", "2026-11-05T04:00:00Z"),
    ]
    assert document["price_book_version"] == "new"

    focus = pq.read_table(tmp_path / f"{draft.stem}.parquet").to_pylist()
    assert [json.loads(row["Tags"])["price_book"] for row in focus] == ["old", "new"]
    assert focus[0]["ChargePeriodEnd"] == focus[1]["ChargePeriodStart"] == START + 100 * HOUR
    assert {row["BillingPeriodStart"] for row in focus} == {START}
    assert [f"{row['ListUnitPrice']:.3f}" for row in focus] == ["0.050", "0.075"]
    assert all(row["SkuId"] != MINIMUM for row in focus)
    page = (tmp_path / f"{draft.stem}.html").read_text(encoding="utf-8")
    assert "new from 2026-11-05 04:00" in page


def _trail(use: Use) -> Row:
    """What trail.ingress says of it."""
    return Row(
        organization_id="org_acme",
        topic_id=f"tp_{use.topic}",
        topic=16,
        created_revision=3,
        partition=0,
        hour_us=int(use.moment.timestamp()) * 1_000_000,
        closes=1,
        bytes=use.quantity,
        records=1,
        from_op=1,
        to_op=2,
        first_offset=use.hour,
        end_offset=use.hour + 1,
        bytes_in_log=use.quantity,
    )
