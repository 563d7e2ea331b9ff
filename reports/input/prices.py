"""Prices: integers in, decimal money out, no double anywhere.

Owns the price books and the rounding rule: amount = quantity x unit_price / unit_quantity, rounded
half-even once per row to 9 places (billionths of the currency). Knows no Spark.

An hour is priced by the book that was in force when it began. A book that becomes effective inside
an hour begins with the next full one, and the first book also rates what is older than it: so no
change of prices changes what an hour before it costs.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

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
ALWAYS = datetime.min.replace(tzinfo=UTC)
# The last hour that a calendar has.
NEVER = datetime.max.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
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
        raise price_missing(self.version, meter)

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


def amount_of(price: Price, quantity: int) -> Decimal:
    """What so much of a meter costs: half-even to 9 places, integers only."""
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


def price_missing(version: str, meter: str) -> InputError:
    """PRICE_MISSING for a meter that a book does not name."""
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
