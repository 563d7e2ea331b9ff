"""Names and prices of a run, as the control plane exported them.

Owns the shape of `GET /v1/report-runs/{id}/inputs` as far as a report uses it, and its canonical
bytes: the same names and prices give the same bytes whatever their order and whatever else the
answer holds. Refuses to ask for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from headrace.evidence import canonical_json
from reports.errors import InputError
from reports.input.prices import Price, PriceBook, book_at, in_order, price_book_of, price_of

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
class Organization:
    """Who is billed. created: None if the export does not say."""

    id: str
    name: str
    created: datetime | None


@dataclass(frozen=True, slots=True)
class Span:
    """A topic with a number of partitions over [start, end); end None: it goes on."""

    topic_id: str
    organization_id: str
    project_id: str
    cluster_id: str
    generation: int
    partitions: int
    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Export:
    """Names by id, and the price book. `document` is the canonical form that is archived."""

    document: dict[str, object]
    books: tuple[PriceBook, ...]
    """Every price book that began, in the order in which they did."""
    projects: dict[str, tuple[str, str]]
    """Project id: (organization name, project name)."""
    clusters: dict[str, str]
    api_keys: dict[str, str]
    topics: dict[str, tuple[str, str]]
    """Topic id: (stream name, topic name)."""
    organizations: dict[str, Organization]
    """By id."""
    lifecycle: tuple[Span, ...]
    as_of: datetime | None
    """Up to when `lifecycle` is known, in whole seconds; None: the export says nothing of it."""

    @property
    def price_book(self) -> PriceBook:
        """The newest."""
        return self.books[-1]

    def book_at(self, hour: datetime) -> PriceBook:
        """The one that prices an hour."""
        return book_at(self.books, hour)

    @property
    def began(self) -> datetime | None:
        """When the first organization was made, as far as the export says."""
        known = [one.created for one in self.organizations.values() if one.created is not None]
        return min(known, default=None)

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
    created = _created(root)
    documents, books = _price_books(root)
    spans, as_of = _lifecycle(root)
    return Export(
        document={
            **rows,
            "organizations": [
                {**row, "created_at": _written(created[row["id"]])} if row["id"] in created else row
                for row in rows["organizations"]
            ],
            **documents,
            **_archived(spans, as_of),
        },
        books=books,
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
        organizations={
            row["id"]: Organization(row["id"], row["name"], created.get(row["id"]))
            for row in rows["organizations"]
        },
        lifecycle=spans,
        as_of=as_of,
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


def _price_books(
    root: Mapping[str, object],
) -> tuple[dict[str, object], tuple[PriceBook, ...]]:
    """Every book that began; of an export of an earlier release the one that it names."""
    newest, priced = _price_book(_mapping(root.get("price_book"), "price_book"))
    if "price_books" not in root:
        return {"price_book": newest}, (priced,)
    found = root["price_books"]
    if not isinstance(found, list) or not found:
        raise _invalid("the list price_books")
    read = []
    for item in found:
        book = _mapping(item, "an item of price_books")
        read.append(_price_book(book, _instant(book, "effective_from", "price_books")))
    documents = {priced.version: document for document, priced in read}
    books = in_order([priced for _, priced in read])
    if len(documents) != len(books) or books[-1].version != priced.version:
        raise _invalid("each of price_books once, price_book as the last of them")
    listed = [
        {**documents[one.version], "effective_from": _written_whole(one.effective_from)}
        for one in books
        if one.effective_from is not None
    ]
    return {"price_book": newest, "price_books": listed}, books


def _price_book(
    book: Mapping[str, object], effective_from: datetime | None = None
) -> tuple[dict[str, object], PriceBook]:
    header = {field: _text(book, field, "price_book") for field in ("version", "currency")}
    if "monthly_minimum" in book:
        header["monthly_minimum"] = _text(book, "monthly_minimum", "price_book")
    items = book.get("prices")
    if not isinstance(items, list):
        raise _invalid("price_book.prices")
    prices = [_price(_mapping(item, "a price")) for item in items]
    checked = price_book_of(header, prices, effective_from)
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


def _created(root: Mapping[str, object]) -> dict[str, datetime]:
    """When each organization was made, as far as the export says."""
    found = root.get("organizations")
    items = [_mapping(item, "an item") for item in found] if isinstance(found, list) else []
    return {
        str(item.get("id")): _moment(item, "created_at", "organizations")
        for item in items
        if "created_at" in item
    }


def _lifecycle(root: Mapping[str, object]) -> tuple[tuple[Span, ...], datetime | None]:
    """Topics by time, cut to whole seconds: so hours add up to the whole, to the second."""
    if "as_of" not in root:
        return (), None
    found = root.get("topic_lifecycle")
    if not isinstance(found, list):
        raise _invalid("the list topic_lifecycle")
    spans = [_span(_mapping(item, "an item of topic_lifecycle")) for item in found]
    ordered = sorted(spans, key=lambda span: (span.topic_id, span.generation))
    return tuple(ordered), _moment(root, "as_of", "the export")


def _span(item: Mapping[str, object]) -> Span:
    place = "topic_lifecycle"
    counts = [item.get(name) for name in ("generation", "partitions")]
    if not all(isinstance(count, int) and count >= 1 for count in counts):
        raise _invalid(f"generation and partitions of {place}, whole numbers")
    start = _moment(item, "from", place)
    end = None if item.get("until") is None else _moment(item, "until", place)
    if end is not None and end < start:
        raise _invalid(f"until of {place}, not before from")
    return Span(
        topic_id=_text(item, "topic_id", place),
        organization_id=_text(item, "organization_id", place),
        project_id=_text(item, "project_id", place),
        cluster_id=_text(item, "cluster_id", place),
        generation=int(str(counts[0])),
        partitions=int(str(counts[1])),
        start=start,
        end=end,
    )


def _archived(spans: tuple[Span, ...], as_of: datetime | None) -> dict[str, object]:
    """The canonical form of the lifecycle; nothing if the export does not say."""
    if as_of is None:
        return {}
    return {
        "as_of": _written(as_of),
        "topic_lifecycle": [
            {
                "topic_id": span.topic_id,
                "organization_id": span.organization_id,
                "project_id": span.project_id,
                "cluster_id": span.cluster_id,
                "generation": span.generation,
                "partitions": span.partitions,
                "from": _written(span.start),
                "until": None if span.end is None else _written(span.end),
            }
            for span in spans
        ],
    }


def _written(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _written_whole(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _moment(item: Mapping[str, object], field: str, place: str) -> datetime:
    """A time with its zone, cut to the second, in UTC."""
    return _instant(item, field, place).replace(microsecond=0)


def _instant(item: Mapping[str, object], field: str, place: str) -> datetime:
    """A time with its zone, in UTC."""
    text = _text(item, field, place)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _invalid(f"{field} of {place}, a time like 2026-11-27T10:00:00Z") from None
    if moment.tzinfo is None:
        raise _invalid(f"{field} of {place} with its time zone")
    return moment.astimezone(UTC)


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
