"""Names and prices of a run, as the control plane exported them.

Owns the shape of `GET /v1/report-runs/{id}/inputs` as far as a report uses it, and its canonical
bytes: the same names and prices give the same bytes whatever their order and whatever else the
answer holds. Refuses to ask for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.evidence import canonical_json
from reports.errors import InputError
from reports.rating import Price, PriceBook, price_book_of, price_of

# What is kept of each list. Everything else in the answer may change without changing a report.
_KEPT = {
    "organizations": ("id", "name"),
    "projects": ("id", "organization_id", "name"),
    "clusters": ("id", "name"),
    "streams": ("id", "project_id", "name"),
    "topics": ("id", "stream_id", "name"),
    "api_keys": ("id", "name"),
}
_OPTIONAL = frozenset({"clusters"})
_PRICE = ("meter", "unit", "unit_quantity", "unit_price")


@dataclass(frozen=True, slots=True)
class Export:
    """Names by id, and the price book. `document` is the canonical form that is archived."""

    document: dict[str, object]
    price_book: PriceBook
    projects: dict[str, tuple[str, str]]
    """Project id: (organization name, project name)."""
    clusters: dict[str, str]
    api_keys: dict[str, str]
    topics: dict[str, tuple[str, str]]
    """Topic id: (stream name, topic name)."""

    def canonical(self) -> bytes:
        """The bytes that are archived and hashed."""
        return canonical_json(self.document)

    def project_names(self) -> pa.Table:
        """project_id, organization, project."""
        return pa.table(
            {
                "project_id": pa.array(list(self.projects), pa.string()),
                "organization": pa.array([name for name, _ in self.projects.values()], pa.string()),
                "project": pa.array([name for _, name in self.projects.values()], pa.string()),
            }
        )

    def topic_names(self) -> pa.Table:
        """topic_id, stream, topic."""
        return pa.table(
            {
                "topic_id": pa.array(list(self.topics), pa.string()),
                "stream": pa.array([stream for stream, _ in self.topics.values()], pa.string()),
                "topic": pa.array([topic for _, topic in self.topics.values()], pa.string()),
            }
        )


def export_of(answer: object) -> Export:
    """Check an answer and keep what is used. EXPORT_INVALID names the field that is missing."""
    root = _mapping(answer, "the export")
    rows = {name: _rows(root, name, kept) for name, kept in _KEPT.items()}
    organizations, streams = _names(rows["organizations"]), _names(rows["streams"])
    book, prices = _price_book(root)
    return Export(
        document={**rows, "price_book": book},
        price_book=prices,
        projects={
            row["id"]: (
                organizations.get(row["organization_id"], row["organization_id"]),
                row["name"],
            )
            for row in rows["projects"]
        },
        clusters=_names(rows["clusters"]),
        api_keys=_names(rows["api_keys"]),
        topics={
            row["id"]: (streams.get(row["stream_id"], row["stream_id"]), row["name"])
            for row in rows["topics"]
        },
    )


def _rows(root: Mapping[str, object], name: str, kept: tuple[str, ...]) -> list[dict[str, str]]:
    found = root.get(name, [] if name in _OPTIONAL else None)
    if not isinstance(found, list):
        raise _invalid(f"the list {name}")
    rows = [
        {field: _text(_mapping(item, f"an item of {name}"), field, name) for field in kept}
        for item in found
    ]
    return sorted(rows, key=lambda row: row["id"])


def _price_book(root: Mapping[str, object]) -> tuple[dict[str, object], PriceBook]:
    book = _mapping(root.get("price_book"), "price_book")
    header = {field: _text(book, field, "price_book") for field in ("version", "currency")}
    items = book.get("prices")
    if not isinstance(items, list):
        raise _invalid("price_book.prices")
    prices = [_price(_mapping(item, "a price")) for item in items]
    checked = price_book_of(header, prices)
    written = [
        dict(
            zip(
                _PRICE,
                (price.meter, price.unit, price.unit_quantity, format(price.unit_price, "f")),
                strict=True,
            )
        )
        for price in checked.prices
    ]
    return {**header, "prices": written}, checked


def _price(item: Mapping[str, object]) -> Price:
    size = item.get("unit_quantity")
    if isinstance(size, bool) or not isinstance(size, int | str) or not str(size).isdecimal():
        raise _invalid("unit_quantity of a price, a whole number")
    texts = [_text(item, field, "a price") for field in ("meter", "unit", "unit_price")]
    return price_of(texts[0], texts[1], int(size), texts[2])


def _names(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["id"]: row["name"] for row in rows}


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _invalid(what)
    return value


def _text(item: Mapping[str, object], field: str, place: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        raise _invalid(f"{field} of {place}, a string")
    return value


def _invalid(what: str) -> InputError:
    return InputError(
        "EXPORT_INVALID",
        f"The names and prices of this run do not hold {what}.",
        "Control plane and reports must be of the same release: see docs/internals/reports.md.",
    )
