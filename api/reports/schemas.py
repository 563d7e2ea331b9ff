"""What of a report run crosses HTTP."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, WithJsonSchema

from api.db.tables.reports import ReportRun
from api.http.resource import Command, Int64, Timestamp

SHA256_PATTERN = r"^[0-9a-f]{64}$"
Sha256 = Annotated[str, Field(pattern=SHA256_PATTERN)]
DecimalText = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$", max_length=64)]
Count = Annotated[
    int,
    Field(ge=0),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+$"}),
]


class ReportRunCreate(Command):
    """Starts a report: `usage` is what the bill is made of, `retention` what was and will be
    deleted."""

    kind: Literal["usage", "retention"] = "usage"


class ReportRunBody(BaseModel):
    """A run. ``state``: QUEUED, RUNNING, SUCCEEDED, FAILED. ``result`` is the job's manifest."""

    id: str
    organization_id: str
    kind: str
    state: str
    created_at: Timestamp
    created_by: str
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    error: dict[str, JsonValue] | None = None
    result: dict[str, JsonValue] | None = None

    @classmethod
    def of(cls, row: ReportRun) -> "ReportRunBody":
        """The body of a row; its token stays in the database."""
        return cls(
            id=row.id,
            organization_id=row.org_id,
            kind=row.kind,
            state=row.state,
            created_at=row.created_at,
            created_by=row.created_by,
            started_at=row.started_at,
            finished_at=row.finished_at,
            error=row.error,
            result=row.result,
        )


class PublishedFile(BaseModel):
    """One file of a result, under its folder."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    bytes: Count
    sha256: Sha256


class ResultInvoice(BaseModel):
    """A draft invoice of a result; ``name`` is that of its files, without what comes after the last
    dot."""

    model_config = ConfigDict(extra="allow")

    organization_id: Annotated[str, Field(max_length=40)]
    period: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}$")]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")]
    blocked: bool
    total: DecimalText


class ReportTotals(BaseModel):
    """The sums of a usage report."""

    model_config = ConfigDict(extra="allow")

    bytes_in_log: Int64
    bytes_billed: Int64
    records: Int64
    rows: Int64
    amount_exact: DecimalText
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]


class ReportResult(BaseModel):
    """The manifest that a job publishes: what it read, where its files are, and their digests.
    What else it holds is kept with the run as it came."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["usage"]
    input_sha256: Sha256
    path: Annotated[str, Field(max_length=1024)]
    files: Annotated[list[PublishedFile], Field(min_length=1, max_length=16384)]
    totals: ReportTotals
    invoices: list[ResultInvoice] = []


class NamedObject(BaseModel):
    """A name by id."""

    id: str
    name: str


class NamedOrganization(NamedObject):
    """An organization and since when it is one."""

    created_at: Timestamp


class NamedProject(NamedObject):
    """A project and whose it is."""

    organization_id: str


class NamedStream(NamedObject):
    """A stream and where it is."""

    organization_id: str
    project_id: str
    cluster_id: str


class NamedTopic(NamedStream):
    """A topic and where it is."""

    stream_id: str


class NamedKey(NamedObject):
    """A principal, without any part of its secret."""

    organization_id: str
    role: str


class NamedSpan(BaseModel):
    """A topic with so many partitions over [from, until); without ``until`` it goes on."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    topic_id: str
    organization_id: str
    project_id: str
    cluster_id: str
    generation: int
    partitions: int
    started_at: Annotated[Timestamp, Field(alias="from")]
    until: Timestamp | None = None


class PriceBody(BaseModel):
    """The price of ``unit_quantity`` of a meter's own unit."""

    meter: str
    unit: str
    unit_quantity: Count
    unit_price: str


class PriceBookBody(BaseModel):
    """A version of what things cost."""

    version: str
    currency: str
    monthly_minimum: str
    prices: list[PriceBody]


class DatedPriceBook(PriceBookBody):
    """A version of what things cost, and since when: hours that began before it cost what they
    did."""

    effective_from: Timestamp


class ReportInputs(BaseModel):
    """Every name and price a report needs, in order of id: the same database and start of the run
    give the same text. ``as_of`` is that start: up to then the lifecycle is known. ``price_books``
    are all that began by then, in that order; ``price_book`` is the last of them."""

    kind: str
    as_of: Timestamp
    organizations: list[NamedOrganization]
    projects: list[NamedProject]
    clusters: list[NamedObject]
    streams: list[NamedStream]
    topics: list[NamedTopic]
    topic_lifecycle: list[NamedSpan]
    api_keys: list[NamedKey]
    price_book: PriceBookBody
    price_books: list[DatedPriceBook]
