"""A draft: rounding at its edges, the minimum, shares that add up, and checks that turn red.

Pure: no Spark runs here.
"""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.billing.accounts import Account, Accounts, TopicName, period_of, periods_between
from reports.billing.invoice import MINIMUM, Draft, drafts_of, lines_of, shares_of
from reports.billing.partition_hours import seconds_within
from reports.billing.reconciliation import Check, Measured, checks_of_draft, checks_of_run
from reports.formats import Row
from reports.input.export import Export
from reports.input.prices import Price, amount_of, rounded
from tests.reports.building import export

GIB = 1 << 30
TEN = datetime(2026, 11, 27, 10, tzinfo=UTC)
NOTHING = Measured(lives=[], series=[], raw=[], ingress=[], partitions=[], findings=[])


def row(
    quantity: int,
    meter: str = "ingress_bytes",
    hour: datetime = TEN,
    topic: str = "flights",
    organization: str = "acme",
) -> Row:
    """One published row; its amount is what the price book makes of it."""
    return {
        "organization": organization,
        "project": "default",
        "stream": "default",
        "topic": topic,
        "topic_id": f"tp_{topic}",
        "meter": meter,
        "window_start": hour,
        "window_end": hour + timedelta(hours=1),
        "quantity": quantity,
        "amount": amount_of(export().price_book.price(meter), quantity),
    }


def accounts_of(rows: Sequence[Row]) -> Accounts:
    """The sums of rows."""
    found = Accounts()
    for one in rows:
        found.add(one)
    return found


def drawn(rows: Sequence[Row], names: Export) -> Draft:
    """The only draft of these rows."""
    (draft,) = drafts_of(accounts_of(rows), names)
    return draft


def cents_bytes(cents: str) -> int:
    """How many bytes cost so much at 0.05 per GiB."""
    return int(Decimal(cents) / Decimal("0.05") * GIB)


@pytest.mark.parametrize(
    ("cents", "more_bytes", "amount"),
    [
        ("0.005", 0, "0.00"),  # halves go to the even cent ...
        ("0.015", 0, "0.02"),
        ("0.025", 0, "0.02"),
        ("0.005", 1000, "0.01"),  # ... and a little more goes up
        ("0.015", -1000, "0.01"),
    ],
)
def test_a_line_is_rounded_once_half_even(cents: str, more_bytes: int, amount: str) -> None:
    (line,) = lines_of(_account(cents_bytes(cents) + more_bytes), period_of(TEN), export())
    assert f"{line.amount}" == amount


def _account(quantity: int) -> Account:
    (found,) = accounts_of([row(quantity)]).by.values()
    return found


@pytest.mark.parametrize("quantity", [0, 1, 10737, 10738, 21474, 21475, GIB - 1, GIB + 1])
def test_the_exact_amount_is_within_half_a_billionth_of_the_price(quantity: int) -> None:
    exact = Decimal(quantity) * Decimal("0.05") / GIB
    found = amount_of(export().price_book.price("ingress_bytes"), quantity)
    assert abs(found - exact) <= Decimal("0.0000000005")
    assert found.as_tuple().exponent == -9


def test_usage_below_the_minimum_is_topped_up_by_a_line_of_its_own() -> None:
    draft = drawn([row(20 * GIB)], export(minimum="5.00"))
    assert [(line.sku, f"{line.amount}") for line in draft.lines] == [
        ("ingress_bytes", "1.00"),
        (MINIMUM, "4.00"),
    ]
    assert f"{draft.total}" == "5.00"


@pytest.mark.parametrize(("gib", "total", "lines"), [(100, "5.00", 1), (101, "5.05", 1)])
def test_usage_at_or_above_the_minimum_has_no_top_up(gib: int, total: str, lines: int) -> None:
    draft = drawn([row(gib * GIB)], export(minimum="5.00"))
    assert (f"{draft.total}", len(draft.lines)) == (total, lines)


def test_a_month_without_usage_costs_the_minimum_from_the_organizations_first_on() -> None:
    names = export(minimum="5.00", as_of="2027-01-03T00:00:00Z")
    drafts = drafts_of(Accounts(), names)
    assert [(one.period.name, f"{one.total}") for one in drafts] == [
        ("2026-11", "5.00"),
        ("2026-12", "5.00"),
        ("2027-01", "5.00"),
    ]
    assert [line.sku for line in drafts[0].lines] == [MINIMUM]


def test_what_costs_nothing_has_a_line_and_what_only_informs_has_none() -> None:
    draft = drawn([row(7, "requests"), row(9, "records"), row(GIB)], export())
    assert [(line.sku, line.quantity) for line in draft.lines] == [
        ("ingress_bytes", GIB),
        ("requests", 7),
    ]


def test_an_hour_belongs_to_the_month_of_utc_in_which_it_begins() -> None:
    last = datetime(2026, 11, 30, 23, tzinfo=UTC)
    drafts = drafts_of(
        accounts_of([row(1, hour=last), row(2, hour=last + timedelta(hours=1))]), export()
    )
    assert [(one.period.name, one.lines[0].quantity) for one in drafts] == [
        ("2026-11", 1),
        ("2026-12", 2),
    ]


@pytest.mark.parametrize(
    ("moment", "days"),
    [("2027-02-28T23:59:59", 28), ("2028-02-01T00:00:00", 29), ("2026-12-31T23:00:00", 31)],
)
def test_a_period_is_a_calendar_month(moment: str, days: int) -> None:
    period = period_of(datetime.fromisoformat(moment).replace(tzinfo=UTC))
    assert (period.end - period.start).days == days


def test_months_follow_each_other_over_the_year() -> None:
    names = [one.name for one in periods_between(TEN, TEN + timedelta(days=70))]
    assert names == ["2026-11", "2026-12", "2027-01", "2027-02"]


def test_the_rate_per_month_is_that_of_the_time_since_the_organization_began() -> None:
    # 3 h 30 min since it was made, 0.05: 30 days at that rate are 30 x 24 / 3.5 of it.
    draft = drawn([row(GIB)], export(as_of="2026-11-27T13:00:00Z"))
    assert f"{draft.per_month:.9f}" == f"{Decimal('0.05') * 30 * 24 * 2 / 7:.9f}"
    assert draft.rate_from == datetime(2026, 11, 27, 9, 30, tzinfo=UTC)
    past = drafts_of(accounts_of([row(GIB)]), export(as_of="2027-01-01T00:00:00Z"))[0]
    assert f"{past.per_month:.9f}" == "0.050000000"


def test_an_organization_that_begins_inside_an_hour_is_not_said_to_be_there_for_all_of_it() -> None:
    # Made at 9:30, first used in the hour from 9:00 on: at 10:30 one hour is known, not 1.5.
    names = export(as_of="2026-11-27T10:30:00Z")
    draft = drawn([row(GIB, hour=TEN - timedelta(hours=1))], names)
    assert draft.rate_from == TEN - timedelta(minutes=30)
    assert f"{draft.per_month:.9f}" == f"{Decimal('0.05') * 30 * 24:.9f}"


def test_a_rate_is_not_told_before_one_full_hour_is_known() -> None:
    names = export(as_of="2026-11-27T10:29:59Z", minimum="5.00")
    draft = drawn([row(GIB)], names)
    assert draft.per_month is None
    assert f"{draft.total}" == "5.00"


@given(st.lists(st.integers(0, 3 * GIB), min_size=1, max_size=12), st.integers(0, 1 << 30))
@settings(max_examples=60, deadline=None)
def test_shares_add_up_to_their_line(quantities: list[int], seed: int) -> None:
    price = export().price_book.price("ingress_bytes")
    topics = {TopicName("p", "s", f"t{n}", f"tp_{n}"): each for n, each in enumerate(quantities)}
    amount = rounded(amount_of(price, sum(quantities)))
    found = shares_of(price, amount, topics)
    assert sum(share.amount for share in found) == amount
    turned = list(topics.items())
    random.Random(seed).shuffle(turned)
    assert shares_of(price, amount, dict(turned)) == found


@given(
    st.lists(st.tuples(st.integers(0, 5 * GIB), st.integers(0, 100)), min_size=1, max_size=15),
    st.integers(0, 1 << 30),
)
@settings(max_examples=40, deadline=None)
def test_neither_order_nor_splitting_changes_an_invoice(
    uses: list[tuple[int, int]], seed: int
) -> None:
    whole = [row(size, hour=TEN + timedelta(hours=hour)) for size, hour in uses]
    halves = [
        row(part, hour=TEN + timedelta(hours=hour))
        for size, hour in uses
        for part in (size // 2, size - size // 2)
    ]
    random.Random(seed).shuffle(halves)
    names = export(minimum="1.00")

    def told(rows: Sequence[Row]) -> list[dict[str, object]]:
        return [
            dict(line.row())
            for draft in drafts_of(accounts_of(rows), names)
            for line in draft.lines
        ]

    assert told(halves) == told(whole)


def test_a_price_is_exact_at_the_largest_quantity() -> None:
    price = Price("requests", "million", 1_000_000, Decimal("0.000000000001"))
    assert amount_of(price, (1 << 63) - 1) == Decimal("9.223372037")


def test_seconds_of_partitions_are_cut_at_both_ends() -> None:
    names = export(as_of="2026-11-27T10:30:00Z")
    as_of = names.as_of
    assert as_of is not None
    assert seconds_within(names.lifecycle, as_of, TEN, TEN + timedelta(hours=9)) == 2 * 1800
    later = TEN + timedelta(minutes=20)
    assert seconds_within(names.lifecycle, as_of, later, later + timedelta(hours=9)) == 2 * 600


def answers(checks: Sequence[Check]) -> dict[str, bool]:
    """Green or not, by name."""
    return {check.name: check.ok for check in checks}


def test_usage_of_nobody_is_on_no_invoice_and_is_red_for_the_run_alone() -> None:
    rows = [row(5), row(7, organization="org_gone")]
    accounts, names = accounts_of(rows), export()
    drafts = drafts_of(accounts, names)
    assert [one.organization.name for one in drafts] == ["acme"]
    run = {check.name: check for check in checks_of_run(accounts, drafts, NOTHING, names)}
    assert not run["unattributed"].ok
    assert run["unattributed"].figures["unattributed_bytes"] == "7"
    assert answers(checks_of_draft(drafts[0], NOTHING, names))["unattributed"]


def test_usage_that_is_dated_ahead_of_the_run_is_quarantined_by_name() -> None:
    names = export(as_of="2026-11-27T10:30:00Z")
    draft = drafts_of(accounts_of([row(5, hour=TEN + timedelta(hours=1))]), names)[0]
    checks = {check.name: check for check in checks_of_draft(draft, NOTHING, names)}
    assert not checks["unattributed"].ok
    assert "default/flights" in checks["unattributed"].detail


def test_hours_that_are_not_the_lifecycle_are_red() -> None:
    names = export(as_of="2026-11-27T10:30:00Z")
    for seconds, good in ((3600, True), (3601, False), (3599, False)):
        draft = drawn([row(seconds, "partition_seconds")], names)
        assert answers(checks_of_draft(draft, NOTHING, names))["partition_seconds"] is good


def test_rows_that_no_raw_record_stands_behind_are_red() -> None:
    draft = drawn([row(5)], export())
    check = next(
        one for one in checks_of_draft(draft, NOTHING, export()) if one.name == "quantities"
    )
    assert not check.ok
    assert (check.figures["ingress_bytes_raw"], check.figures["ingress_bytes_rated"]) == ("0", "5")
