"""What a job hands in: the manifest of its files, and the sums that these must hold."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

from api.http.resource import Int64

SHA256_PATTERN = r"^[0-9a-f]{64}$"
Sha256 = Annotated[str, Field(pattern=SHA256_PATTERN)]
DecimalText = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$", max_length=64)]
Count = Annotated[
    int,
    Field(ge=0),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+$"}),
]


class PublishedFile(BaseModel):
    """A file of a report, relative to its folder."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    bytes: Count
    sha256: Sha256


class ResultInvoice(BaseModel):
    """A draft invoice of a result. ``name`` is the name of its files without the extension."""

    model_config = ConfigDict(extra="allow")

    organization_id: Annotated[str, Field(max_length=40)]
    period: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}$")]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")]
    blocked: bool
    total: DecimalText


class ReportTotals(BaseModel):
    """The totals of a usage report."""

    model_config = ConfigDict(extra="allow")

    bytes_in_log: Int64
    bytes_billed: Int64
    records: Int64
    rows: Int64
    amount_exact: DecimalText
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]


class ReportResult(BaseModel):
    """The manifest that a job publishes: its inputs, and its files with their digests. Further
    members are stored with the run unchanged.
    """

    model_config = ConfigDict(extra="allow")

    kind: Literal["usage"]
    input_sha256: Sha256
    path: Annotated[str, Field(max_length=1024)]
    files: Annotated[list[PublishedFile], Field(min_length=1, max_length=16384)]
    totals: ReportTotals
    invoices: list[ResultInvoice] = []
