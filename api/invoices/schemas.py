"""What of invoices crosses HTTP, and the document that a report job draws."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from api.db.tables.invoices import Invoice, InvoiceLine
from api.http.resource import Timestamp
from api.jobs.result import DecimalText

Currency = Annotated[str, Field(pattern="^[A-Z]{3}$")]
PERIOD_PATTERN = r"^[0-9]{4}-[0-9]{2}$"


class Check(BaseModel):
    """One question of the reconciliation: its name, its title (what it asks, in words), GREEN or
    RED, and the figures compared."""

    name: str
    title: str = ""
    state: Literal["GREEN", "RED"]
    figures: dict[str, str]
    detail: str


class Share(BaseModel):
    """The share of a topic in a line item. The shares add up to the amount of the line."""

    project: str
    topic: str
    topic_id: str
    quantity: str
    amount_exact: DecimalText
    amount: DecimalText


class LineBody(BaseModel):
    """A line item: quantity x unit price, exact to 9 decimal places and rounded once to the minor
    unit.
    """

    model_config = ConfigDict(from_attributes=True)

    line: int
    sku: str
    description: str
    quantity: str
    unit: str
    unit_price: DecimalText
    amount_exact: DecimalText
    amount: DecimalText
    currency: Currency
    period_start: Timestamp
    period_end: Timestamp
    charge_class: str
    corrects_line: str
    topics: list[Share] = []


class DrawnInvoice(BaseModel):
    """An invoice as the job wrote it; what else its file holds leads back to the log."""

    organization_id: str
    name: str
    state: Literal["DRAFT"]
    blocked: bool
    period: Annotated[str, Field(pattern=PERIOD_PATTERN)]
    period_start: Timestamp
    period_end: Timestamp
    as_of: Timestamp
    currency: Currency
    total: DecimalText
    metered_exact: DecimalText
    monthly_minimum: DecimalText
    amount_per_month: DecimalText | None
    rate_from: Timestamp | None = None
    price_book_version: Annotated[str, Field(max_length=32)]
    lines: list[LineBody]
    reconciliation: list[Check]


class InvoiceBody(BaseModel):
    """An invoice. Every usage report recomputes the draft. ``blocked``: a check of its
    reconciliation is RED, so it cannot be issued. ``lines`` and ``reconciliation`` are returned for
    a single invoice, not in lists. ``files`` are served by its report run. ``own``: the invoice
    belongs to the organization of the caller.

    ``amount_per_month`` is the monthly projection, based on the usage from ``rate_from`` to
    ``as_of``; it is absent if there is less than one hour of usage. For a past month, it is the
    actual cost.
    """

    id: str
    organization_id: str
    organization: str
    own: bool
    run_id: str
    state: str
    blocked: bool
    period: str
    period_start: Timestamp
    period_end: Timestamp
    as_of: Timestamp
    currency: str
    total: str
    metered_exact: str
    monthly_minimum: str
    amount_per_month: str | None = None
    rate_from: Timestamp | None = None
    price_book_version: str
    files: list[str]
    lines: list[LineBody] | None = None
    reconciliation: list[JsonValue] | None = None

    @classmethod
    def of(
        cls,
        row: Invoice,
        organization: str,
        *,
        own: bool,
        lines: list[InvoiceLine] | None = None,
    ) -> "InvoiceBody":
        """The body of a row, with its lines and checks if they are given."""
        return cls(
            id=row.id,
            organization_id=row.org_id,
            organization=organization,
            own=own,
            run_id=row.run_id,
            state=row.state,
            blocked=row.blocked,
            period=f"{row.period_start:%Y-%m}",
            period_start=row.period_start,
            period_end=row.period_end,
            as_of=row.as_of,
            currency=row.currency,
            total=row.total,
            metered_exact=row.metered_exact,
            monthly_minimum=row.monthly_minimum,
            amount_per_month=row.amount_per_month or None,
            rate_from=row.rate_from,
            price_book_version=row.price_book_version,
            files=[f"{row.files}.{kind}" for kind in ("csv", "html", "json", "parquet")],
            lines=None if lines is None else [LineBody.model_validate(line) for line in lines],
            reconciliation=None if lines is None else row.checks,
        )


class InvoiceChecks(BaseModel):
    """The reconciliation of one invoice."""

    invoice_id: str
    organization_id: str
    period: str
    blocked: bool
    checks: list[JsonValue]


class ReconciliationBody(BaseModel):
    """The reconciliation of the latest usage report, by invoice. ``checks`` are those of the whole
    run, for operators only. Without ``run_id``, there is no report yet.
    """

    run_id: str | None = None
    input_sha256: str | None = None
    green: bool
    checks: list[JsonValue] | None = None
    invoices: list[InvoiceChecks]
