"""Names and prices: the same bytes for the same content, and refusals that name the field."""

import copy
import random

import pytest

from reports.errors import InputError
from reports.export import export_of
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


def test_a_meter_with_two_prices_is_refused() -> None:
    answer = document()
    price = {"meter": "m", "unit": "u", "unit_quantity": 1, "unit_price": "0.05"}
    answer["price_book"] = {"version": "v", "currency": "EUR", "prices": [price, price]}
    with pytest.raises(InputError, match="PRICE_AMBIGUOUS"):
        export_of(answer)
