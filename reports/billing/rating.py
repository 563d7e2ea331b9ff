"""Priced rows: what `rows` of usage cost, by Spark.

Owns the arithmetic on columns: that of `reports.input.prices.amount_of`, row by row. A row is one
hour of one meter of one principal, summed before it is priced, so splitting a metering window
changes nothing. The total is the sum of the rows: what is printed adds up.

The arithmetic is that of whole numbers. Spark's decimal division would cut digits to fit 38; here
the numerator (at most 19 + 18 = 37 digits) and the remainder are exact and the rounding is our own.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reports.input.prices import COUNTED_IN, PRICE_PLACES, Price, PriceBook, price_missing

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
METER_NAMED = "{meter}"


def rate(rows: DataFrame, books: Sequence[PriceBook], meters: Sequence[str]) -> DataFrame:
    """Priced rows: `rows` (meter, quantity long, of several books window_start_us, ..) plus five
    columns. The last book must price every meter, an earlier one what has rows in its time.

    unit (of the quantity: B, not GiB), unit_price decimal(38,32) of one such unit, currency,
    amount decimal(38,9), price_book_version. One row may cost up to 9.2 billion: beyond that Spark
    raises an overflow, it never wraps.
    """
    for meter in meters:
        books[-1].price(meter)

    def by_price(value: Callable[[Price], Column]) -> Column:
        return _by_book(books, lambda book: _by_meter(book, meters, value))

    priced = rows.withColumns(
        {
            "unit": by_price(lambda price: F.lit(COUNTED_IN[price.meter])),
            "unit_price": by_price(lambda price: F.lit(price.per_counted).cast("decimal(38,32)")),
            "_unit_quantity": by_price(
                lambda price: F.lit(price.unit_quantity).cast("decimal(16,0)")
            ),
            "_price_e12": by_price(
                lambda price: F.lit(price.unit_price.scaleb(PRICE_PLACES)).cast("decimal(18,0)")
            ),
        }
    )
    numerator = F.col("quantity").cast("decimal(19,0)") * F.col("_price_e12")
    # The numerator counts 1e-12 of the currency x unit_quantity: / (unit_quantity x 1000) leaves
    # billionths.
    return (
        priced.withColumn("_numerator", numerator.cast("decimal(38,0)"))
        .withColumn("_divisor", (F.col("_unit_quantity") * F.lit(1000).cast("decimal(4,0)")))
        .withColumn("_whole", F.expr("(_numerator div _divisor)").cast("decimal(19,0)"))
        .withColumn("_twice", F.expr("(_numerator % _divisor) * cast(2 as decimal(1,0))"))
        .withColumn(
            "_up",
            F.expr("_twice > _divisor or (_twice = _divisor and pmod(_whole, 2) = 1)"),
        )
        .withColumn("_billionths", F.expr("_whole + if(_up, 1, 0)").cast("decimal(20,0)"))
        .withColumn("amount", F.expr("cast(_billionths * 0.000000001 as decimal(38,9))"))
        .withColumn("currency", F.lit(books[-1].currency))
        .withColumn("price_book_version", _by_book(books, lambda book: F.lit(book.version)))
        .drop(
            "_numerator",
            "_divisor",
            "_whole",
            "_twice",
            "_up",
            "_billionths",
            "_price_e12",
            "_unit_quantity",
        )
    )


def _by_book(books: Sequence[PriceBook], value: Callable[[PriceBook], Column]) -> Column:
    """What `value` says of the book of the row's hour."""
    found = value(books[0])
    for book in books[1:]:
        starts_us = (book.starts - EPOCH) // timedelta(microseconds=1)
        found = F.when(F.col("window_start_us") >= starts_us, value(book)).otherwise(found)
    return found


def _by_meter(book: PriceBook, meters: Sequence[str], value: Callable[[Price], Column]) -> Column:
    """What `value` says of the row's meter. A meter without a price is an error, never null."""
    missing = price_missing(book.version, METER_NAMED)
    before, after = f"reports.errors.InputError: {missing}".split(METER_NAMED)
    found = F.raise_error(F.concat(F.lit(before), F.col("meter"), F.lit(after)))
    for meter, price in book.prices_of(meters).items():
        found = F.when(F.col("meter") == meter, value(price)).otherwise(found)
    return found
