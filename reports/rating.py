"""Prices: integers in, decimal money out, no double anywhere.

Owns the price book and the rounding rule: amount = quantity x unit_price / unit_quantity, rounded
half-even once per row to 9 places (billionths of the currency). A row is one hour of one meter of
one principal, summed before it is priced, so splitting a metering window changes nothing. The total
is the sum of the rows: what is printed adds up.

The arithmetic is that of whole numbers. Spark's decimal division would cut digits to fit 38; here
the numerator (at most 19 + 18 = 37 digits) and the remainder are exact and the rounding is our own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reports.errors import InputError

AMOUNT_PLACES = 9
PRICE_PLACES = 12
PRICE_DIGITS = 18
UNIT_QUANTITY_MAX = 10**15
MINIMUM_MAX = 10**6

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


@dataclass(frozen=True, slots=True)
class PriceBook:
    """One immutable version of the prices."""

    version: str
    currency: str
    prices: tuple[Price, ...]
    monthly_minimum: Decimal = Decimal(0)
    """What an organization pays for a month at least; in whole minor units."""

    def price(self, meter: str) -> Price:
        """The price of a meter; PRICE_MISSING if it may not be given away."""
        for price in self.prices:
            if price.meter == meter:
                return price
        if meter in INFORMATIONAL:
            return Price(meter, COUNTED_IN[meter], 1, Decimal(0))
        raise InputError(
            "PRICE_MISSING",
            f"Price book {self.version} has no price for the meter {meter}.",
            "Publish a version of the price book that names it, then run the report again.",
        )


def price_of(meter: str, unit: str, unit_quantity: int, unit_price: str) -> Price:
    """A checked price from its written form; unit_price is a decimal string, never a float."""
    try:
        amount = Decimal(unit_price)
    except InvalidOperation as failure:
        raise _bad_price(meter, unit_price) from failure
    scaled = amount.scaleb(PRICE_PLACES) if amount.is_finite() else Decimal(-1)
    if scaled < 0 or scaled != scaled.to_integral_value() or scaled >= 10**PRICE_DIGITS:
        raise _bad_price(meter, unit_price)
    if not 1 <= unit_quantity <= UNIT_QUANTITY_MAX:
        raise _bad_price(meter, f"{unit_price} per {unit_quantity}")
    return Price(meter, unit, unit_quantity, amount)


def rate(rows: DataFrame, book: PriceBook, meters: Sequence[str]) -> DataFrame:
    """Priced rows: `rows` (meter, quantity long, ..) plus five columns.

    unit (of the quantity: B, not GiB), unit_price decimal(38,32) of one such unit, currency,
    amount decimal(38,9), price_book_version. One row may cost up to 9.2 billion: beyond that Spark
    raises an overflow, it never wraps.
    """
    prices = {meter: book.price(meter) for meter in meters}
    priced = rows.withColumns(
        {
            "unit": _by_meter(prices, lambda price: F.lit(COUNTED_IN[price.meter])),
            "unit_price": _by_meter(
                prices, lambda price: F.lit(price.per_counted).cast("decimal(38,32)")
            ),
            "_unit_quantity": _by_meter(
                prices, lambda price: F.lit(price.unit_quantity).cast("decimal(16,0)")
            ),
            "_price_e12": _by_meter(
                prices,
                lambda price: F.lit(price.unit_price.scaleb(PRICE_PLACES)).cast("decimal(18,0)"),
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
        .withColumn("currency", F.lit(book.currency))
        .withColumn("price_book_version", F.lit(book.version))
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


def price_book_of(document: Mapping[str, object], prices: Sequence[Price]) -> PriceBook:
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
    return PriceBook(str(document["version"]), str(document["currency"]), ordered, minimum)


def _minimum(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation as failure:
        raise _bad_price("the monthly minimum", text) from failure
    if not amount.is_finite() or not 0 <= amount < MINIMUM_MAX or amount != rounded(amount):
        raise _bad_price("the monthly minimum", text)
    return rounded(amount)


def _by_meter(prices: Mapping[str, Price], value: Callable[[Price], Column]) -> Column:
    """What `value` says of the row's meter. A meter without a price is an error, never null."""
    found = F.raise_error(F.concat(F.lit("no price for the meter "), F.col("meter")))
    for meter, price in prices.items():
        found = F.when(F.col("meter") == meter, value(price)).otherwise(found)
    return found


def _bad_price(meter: str, text: str) -> InputError:
    return InputError(
        "PRICE_INVALID",
        f"The price of {meter} is not a decimal string of at most {PRICE_PLACES} places: {text}.",
        "Publish a corrected version of the price book.",
    )
