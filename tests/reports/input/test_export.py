"""Names and prices: the same bytes for the same content, and refusals that name the field."""

import copy
import random
from datetime import UTC, datetime

import pytest

from reports.errors import InputError
from reports.input.export import export_of
from tests.reports.building import export


def document() -> dict[str, object]:
    return copy.deepcopy(export().document)


def test_order_and_unknown_fields_do_not_change_the_bytes() -> None:
    answer = document()
    names = [{"id": f"org_{n}", "name": f"n{n}", "etag": n} for n in range(9)]
    answer["organizations"] = names
    first = export_of(answer).canonical()
    random.Random(3).shuffle(names)
    assert export_of({**answer, "exported_at": "now"}).canonical() == first
    assert b"etag" not in first


def test_what_was_archived_reads_back_as_itself() -> None:
    assert export_of(document()).canonical() == export().canonical()


def test_a_topic_knows_its_stream() -> None:
    assert export().topics == {"tp_flights": ("default", "flights")}


@pytest.mark.parametrize(
    "field", ["organizations", "projects", "streams", "topics", "api_keys", "price_book"]
)
def test_a_missing_field_is_named(field: str) -> None:
    answer = document()
    del answer[field]
    with pytest.raises(InputError, match=f"EXPORT_INVALID.*{field}"):
        export_of(answer)


def test_a_float_as_a_price_is_refused() -> None:
    answer = document()
    price = {"meter": "m", "unit": "u", "unit_quantity": 1, "unit_price": 0.05}
    answer["price_book"] = {"version": "v", "currency": "EUR", "prices": [price]}
    with pytest.raises(InputError, match=r"EXPORT_INVALID.*unit_price"):
        export_of(answer)


def dated(*versions: tuple[str, str]) -> dict[str, object]:
    """An answer with several price books, each from a time on; the last one is the newest."""
    answer = document()
    book = answer["price_book"]
    assert isinstance(book, dict)
    books = [{**book, "version": name, "effective_from": at} for name, at in versions]
    return {**answer, "price_books": books, "price_book": {**book, "version": versions[-1][0]}}


def test_price_books_are_archived_in_the_order_in_which_they_began() -> None:
    answer = dated(("a", "2026-01-01T00:00:00Z"), ("b", "2026-11-10T07:00:00.000001Z"))
    books = answer["price_books"]
    assert isinstance(books, list)
    found = export_of(answer)
    assert export_of({**answer, "price_books": books[::-1]}).canonical() == found.canonical()
    assert export_of(found.document).canonical() == found.canonical()
    seven, eight = (datetime(2026, 11, 10, hour, tzinfo=UTC) for hour in (7, 8))
    hours = (datetime(2020, 1, 1, tzinfo=UTC), seven, eight)
    assert [found.book_at(hour).version for hour in hours] == ["a", "a", "b"]


@pytest.mark.parametrize("versions", ["aa", "ba"])
def test_price_books_that_do_not_fit_the_newest_are_refused(versions: str) -> None:
    times = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")
    answer = dated(*zip(versions, times, strict=True))
    book = answer["price_book"]
    assert isinstance(book, dict)
    with pytest.raises(InputError, match=r"EXPORT_INVALID.*price_book"):
        export_of({**answer, "price_book": {**book, "version": "b"}})


def test_a_meter_with_two_prices_is_refused() -> None:
    answer = document()
    price = {"meter": "m", "unit": "u", "unit_quantity": 1, "unit_price": "0.05"}
    answer["price_book"] = {"version": "v", "currency": "EUR", "prices": [price, price]}
    with pytest.raises(InputError, match="PRICE_AMBIGUOUS"):
        export_of(answer)
