"""Whole numbers in, decimals out: the rounding rule at its edges, against exact fractions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from reports.billing.rating import rate
from reports.errors import InputError, found_in
from reports.input.prices import COUNTED_IN, Price, PriceBook, in_order, price_of, rounded
from tests.reports.building import export

GIB = 1 << 30


def amounts(spark: SparkSession, price: Price, quantities: list[int]) -> list[Decimal]:
    """What Spark makes of these quantities."""
    table = pa.table(
        {
            "meter": pa.array([price.meter] * len(quantities)),
            "quantity": pa.array(quantities, pa.int64()),
        }
    )
    book = PriceBook("test-1", "EUR", (price,))
    rows = rate(spark.createDataFrame(table), [book], [price.meter]).collect()
    found = {row.quantity: row.amount for row in rows}
    return [found[quantity] for quantity in quantities]


def test_a_gibibyte_costs_its_price_and_a_byte_more_or_less_shows(spark: SparkSession) -> None:
    price = price_of("ingress_bytes", "GiB", GIB, "0.05")
    found = amounts(spark, price, [GIB - 11, GIB - 10, GIB, GIB + 10, GIB + 11])
    assert [str(amount) for amount in found] == [
        "0.049999999",
        "0.050000000",
        "0.050000000",
        "0.050000000",
        "0.050000001",
    ]


def test_a_half_goes_to_the_even_neighbour(spark: SparkSession) -> None:
    price = price_of("ingress_bytes", "two", 2, "0.000000001")
    found = amounts(spark, price, [1, 2, 3, 5, 7])
    assert [int(amount.scaleb(9)) for amount in found] == [0, 1, 2, 2, 4]


def test_spark_rounds_as_exact_fractions_do(spark: SparkSession) -> None:
    random = Random(11)
    quantities = [0, 1, GIB * 3 // 7, 2**53 + 1, 2**63 - 1]
    quantities += [random.randrange(2 ** random.randrange(1, 63)) for _ in range(300)]
    for price in (
        price_of("ingress_bytes", "GiB", GIB, "0.05"),
        price_of("ingress_bytes", "GiB", GIB, "0.000000000001"),
        price_of("ingress_bytes", "GB", 10**9, "0.123456789012"),
        price_of("ingress_bytes", "two", 2, "0.000000001"),
    ):
        unit_price = Fraction(price.unit_price)
        exact = [quantity * unit_price / price.unit_quantity for quantity in quantities]
        expected = [Decimal(round(amount * 10**9)).scaleb(-9) for amount in exact]
        assert amounts(spark, price, quantities) == expected


def test_a_row_multiplies_out_to_its_amount(spark: SparkSession) -> None:
    book = export().price_book
    table = pa.table({"meter": ["ingress_bytes"], "quantity": pa.array([119507905], pa.int64())})
    (row,) = rate(spark.createDataFrame(table), [book], ["ingress_bytes"]).collect()
    assert (row.unit, f"{row.unit_price:f}") == ("B", "0.00000000004656612873077392578125")
    exact = row.quantity * Fraction(row.unit_price)
    assert Decimal(round(exact * 10**9)).scaleb(-9) == row.amount


def test_a_row_has_the_price_of_its_hour(spark: SparkSession) -> None:
    hour = datetime(2026, 11, 10, 7, tzinfo=UTC)
    first = PriceBook("a", "EUR", (price_of("ingress_bytes", "B", 1, "1"),))
    # Begins inside the hour before, so with this one; what it does not price had no rows before.
    begins = hour - timedelta(minutes=1)
    requests = price_of("requests", "request", 1, "3")
    prices = (price_of("ingress_bytes", "B", 1, "2"), requests)
    books = in_order([PriceBook("b", "EUR", prices, effective_from=begins), first])
    starts = [hour - timedelta(hours=1), hour, hour + timedelta(hours=1), hour]
    table = pa.table(
        {
            "meter": ["ingress_bytes"] * 3 + ["requests"],
            "window_start_us": [int(one.timestamp()) * 1_000_000 for one in starts],
            "quantity": pa.array([10, 10, 10, 1], pa.int64()),
        }
    )
    found = rate(spark.createDataFrame(table), books, ["ingress_bytes", "requests"]).collect()
    told = [(row.price_book_version, int(row.amount)) for row in found]
    assert told == [("a", 10), ("b", 20), ("b", 20), ("b", 3)]
    early = spark.createDataFrame(table).withColumn("window_start_us", F.lit(0).cast("long"))
    with pytest.raises(PySparkException) as failure:
        rate(early, books, ["ingress_bytes", "requests"]).collect()
    raised = found_in(str(failure.value))
    assert raised is not None
    assert (raised.code, "requests" in raised.message) == ("PRICE_MISSING", True)


def test_prices_of_two_currencies_are_refused() -> None:
    other = replace(export().price_book, version="b", currency="USD")
    with pytest.raises(InputError, match="PRICE_INVALID"):
        in_order([export().price_book, other])


def test_a_book_of_the_last_hour_of_the_calendar_begins_then() -> None:
    late = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    assert replace(export().price_book, effective_from=late).starts == late.replace(minute=0)


def test_records_cost_nothing_and_other_meters_need_a_price() -> None:
    book = replace(export().price_book, prices=())
    assert book.price("records").unit_price == 0
    for meter in sorted(COUNTED_IN.keys() - {"records"}):
        with pytest.raises(InputError, match="PRICE_MISSING"):
            book.price(meter)


@pytest.mark.parametrize(
    "text",
    ["", "free", "-0.05", "NaN", "Infinity", "0.0000000000001", "1E999999", "-0", "1_0", "9" * 41],
)
def test_a_price_that_is_no_decimal_of_12_places_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="PRICE_INVALID"):
        export(text)


def test_a_quantity_of_any_size_is_told_in_units() -> None:
    # Terabytes stored for a month, priced by the byte-second.
    one, three = Price("m", "u", 1, Decimal(1)), Price("m", "u", 3, Decimal(1))
    assert one.units(2_678_400 * 10**16, 12) == 2_678_400 * 10**16
    assert three.units(2 * 10**25, 12) == Decimal("6666666666666666666666666.666666666667")
    assert three.units(7, 6) == Decimal("2.333333")


def test_money_for_people_is_rounded_half_even_to_cents() -> None:
    assert [str(rounded(Decimal(text))) for text in ("0.005", "0.015", "0.0251")] == [
        "0.00",
        "0.02",
        "0.03",
    ]
