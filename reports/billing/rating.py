"""Prices: integers in, decimal money out, no double anywhere.

Owns the price book and the rounding rule: amount = quantity x unit_price / unit_quantity, rounded
half-even once per row to 9 places (billionths of the currency). A row is one hour of one meter of
one principal, summed before it is priced, so splitting a metering window changes nothing. The total
is the sum of the rows: what is printed adds up.

A row is priced by the book that was in force when its hour began. A book that becomes effective
inside an hour begins with the next full one, and the first book also rates what is older than it:
so no change of prices changes what an hour before it costs.

The arithmetic is that of whole numbers. Spark's decimal division would cut digits to fit 38; here
the numerator (at most 19 + 18 = 37 digits) and the remainder are exact and the rounding is our own.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reports.errors import InputError

AMOUNT_PLACES = 9
PRICE_PLACES = 12
PRICE_DIGITS = 18
UNIT_QUANTITY_MAX = 10**15
MINIMUM_MAX = 10**6
DECIMAL_TEXT = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")

# What one whole number of a meter is: the unit of every row's quantity.
COUNTED_IN = {
    "ingress_bytes": "B",
    "partition_seconds": "partition-second",
    "egress_bytes": "B",
    "requests": "request",
    "stored_byte_seconds": "B-second",
    "records": "record",
}
# Meters that cost nothing unless a price book says otherwise.
INFORMATIONAL = ("records",)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ALWAYS = datetime.min.replace(tzinfo=UTC)
# The last hour that a calendar has.
NEVER = datetime.max.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
METER_NAMED = "{meter}"
# Places of the price per counted unit: 0.05 per GiB, that is per 2^30 bytes, is exact in 32.
ROW_PRICE_PLACES = 32


@dataclass(frozen=True, slots=True)
class Price:
    """What one `unit` of a meter costs.

    Unit_quantity is how many of the meter's whole numbers make one unit.
    """

    meter: str
    unit: str
    unit_quantity: int
    unit_price: Decimal

    @property
    def per_counted(self) -> Decimal:
        """The price of one of the meter's whole numbers: what a row's quantity is multiplied by.

        Exact for units of powers of two and ten; else half-even at 32 places. Amounts are never
        computed from it.
        """
        with localcontext(prec=60):
            each = self.unit_price / self.unit_quantity
            return each.quantize(Decimal(1).scaleb(-ROW_PRICE_PLACES), rounding=ROUND_HALF_EVEN)

    def units(self, quantity: int, places: int) -> Decimal:
        """A quantity in units, half-even at so many places, however large it is. Amounts are never
        computed from it."""
        with localcontext(prec=60):
            units = Decimal(quantity) / self.unit_quantity
            return units.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, slots=True)
class PriceBook:
    """One immutable version of the prices."""

    version: str
    currency: str
    prices: tuple[Price, ...]
    monthly_minimum: Decimal = Decimal(0)
    """What an organization pays for a month at least; in whole minor units."""
    effective_from: datetime | None = None
    """None: it always was."""

    @property
    def starts(self) -> datetime:
        """The first hour that it prices."""
        if self.effective_from is None:
            return ALWAYS
        hour = self.effective_from.replace(minute=0, second=0, microsecond=0)
        if hour in (self.effective_from, NEVER):
            return hour
        return hour + timedelta(hours=1)

    def price(self, meter: str) -> Price:
        """The price of a meter; PRICE_MISSING if it may not be given away."""
        for price in self.prices:
            if price.meter == meter:
                return price
        if meter in INFORMATIONAL:
            return Price(meter, COUNTED_IN[meter], 1, Decimal(0))
        raise _missing(self.version, meter)

    def prices_of(self, meters: Sequence[str]) -> dict[str, Price]:
        """Those of `meters` that have one: an earlier book need not price what came after it."""
        named = {price.meter for price in self.prices} | set(INFORMATIONAL)
        return {meter: self.price(meter) for meter in meters if meter in named}


def book_at(books: Sequence[PriceBook], hour: datetime) -> PriceBook:
    """The book of an hour. books: by `starts`, one at least."""
    return books[max(0, bisect_right([book.starts for book in books], hour) - 1)]


def price_of(meter: str, unit: str, unit_quantity: int, unit_price: str) -> Price:
    """A checked price from its written form; unit_price is a decimal string, never a float."""
    amount = _decimal(meter, unit_price)
    scaled = amount.scaleb(PRICE_PLACES)
    if scaled != scaled.to_integral_value() or scaled >= 10**PRICE_DIGITS:
        raise _bad_price(meter, unit_price)
    if not 1 <= unit_quantity <= UNIT_QUANTITY_MAX:
        raise _bad_price(meter, f"{unit_price} per {unit_quantity}")
    return Price(meter, unit, unit_quantity, amount)


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


def amount_of(price: Price, quantity: int) -> Decimal:
    """The same arithmetic as `rate`, for one quantity: half-even to 9 places, integers only."""
    numerator = quantity * int(price.unit_price.scaleb(PRICE_PLACES))
    whole, rest = divmod(numerator, price.unit_quantity * 1000)
    twice, divisor = 2 * rest, price.unit_quantity * 1000
    up = twice > divisor or (twice == divisor and whole % 2 == 1)
    return Decimal(whole + up).scaleb(-AMOUNT_PLACES)


def rounded(amount: Decimal, places: int = 2) -> Decimal:
    """Money for people: half-even to the minor unit."""
    return amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


def price_book_of(
    document: Mapping[str, object],
    prices: Sequence[Price],
    effective_from: datetime | None = None,
) -> PriceBook:
    """A price book from its fields and its checked prices; a meter priced twice is refused."""
    names = [price.meter for price in prices]
    if len(set(names)) != len(names):
        raise InputError(
            "PRICE_AMBIGUOUS",
            f"Price book {document['version']} prices a meter more than once.",
            "Publish a version with one price per meter.",
        )
    ordered = tuple(sorted(prices, key=lambda price: price.meter))
    minimum = _minimum(str(document.get("monthly_minimum", "0")))
    version, currency = str(document["version"]), str(document["currency"])
    return PriceBook(version, currency, ordered, minimum, effective_from)


def in_order(books: Sequence[PriceBook]) -> tuple[PriceBook, ...]:
    """Books by when they begin; of two that begin at once the one of the later version counts.
    All are of one currency, since sums of two are none."""
    ordered = sorted(books, key=lambda book: (book.effective_from or ALWAYS, book.version))
    for book in ordered:
        if book.currency != ordered[-1].currency:
            raise InputError(
                "PRICE_INVALID",
                f"Price book {book.version} is in {book.currency}, {ordered[-1].version} in "
                f"{ordered[-1].currency}.",
                "Publish prices in one currency: amounts of two cannot be summed.",
            )
    return tuple(ordered)


def _minimum(text: str) -> Decimal:
    amount = _decimal("the monthly minimum", text)
    if amount >= MINIMUM_MAX or amount != rounded(amount):
        raise _bad_price("the monthly minimum", text)
    return rounded(amount)


def _decimal(what: str, text: str) -> Decimal:
    """Digits and a point: an exponent may stand for more digits than there is memory."""
    if DECIMAL_TEXT.fullmatch(text) is None:
        raise _bad_price(what, text)
    return Decimal(text)


def _by_book(books: Sequence[PriceBook], value: Callable[[PriceBook], Column]) -> Column:
    """What `value` says of the book of the row's hour."""
    found = value(books[0])
    for book in books[1:]:
        starts_us = (book.starts - EPOCH) // timedelta(microseconds=1)
        found = F.when(F.col("window_start_us") >= starts_us, value(book)).otherwise(found)
    return found


def _by_meter(book: PriceBook, meters: Sequence[str], value: Callable[[Price], Column]) -> Column:
    """What `value` says of the row's meter. A meter without a price is an error, never null."""
    missing = _missing(book.version, METER_NAMED)
    before, after = f"reports.errors.InputError: {missing}".split(METER_NAMED)
    found = F.raise_error(F.concat(F.lit(before), F.col("meter"), F.lit(after)))
    for meter, price in book.prices_of(meters).items():
        found = F.when(F.col("meter") == meter, value(price)).otherwise(found)
    return found


def _missing(version: str, meter: str) -> InputError:
    return InputError(
        "PRICE_MISSING",
        f"Price book {version} has no price for the meter {meter}.",
        "Publish a version of the price book that names it, then run the report again.",
    )


def _bad_price(meter: str, text: str) -> InputError:
    return InputError(
        "PRICE_INVALID",
        f"The price of {meter} is not a decimal string of at most {PRICE_PLACES} places: {text}.",
        "Publish a corrected version of the price book.",
    )
