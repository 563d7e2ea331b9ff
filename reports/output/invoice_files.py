"""invoice-ORGANIZATION-PERIOD.{parquet,csv,json,html}: one draft in four formats that agree.

Owns the columns of an invoice's files. The Parquet file is written first and the others from what
it holds; beside our columns it has those of FOCUS, so that cost tools read it as it is. The JSON
file holds the way back too: each line by topic, by hour, and for ingress by partition and offsets.
Refuses money: invoice.py has drawn it.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row

from reports import formats
from reports.billing.invoice import COLUMNS, PRICING, Draft, Line, span_of
from reports.billing.reconciliation import Check
from reports.formats import Value, text_of
from reports.input.export import Export
from reports.input.prices import PriceBook
from reports.output.invoice_page import invoice_page

SCHEMA = 1
_MOMENT = pa.timestamp("us", tz="UTC")
_MONEY = pa.decimal128(38, 2)
_OURS = (
    ("line", pa.int32()),
    ("sku", pa.string()),
    ("description", pa.string()),
    ("quantity", pa.decimal128(38, 0)),
    ("unit", pa.string()),
    ("unit_price", pa.decimal128(38, 32)),
    ("amount_exact", pa.decimal128(38, 9)),
    ("amount", _MONEY),
    ("currency", pa.string()),
    ("period_start", _MOMENT),
    ("period_end", _MOMENT),
    ("charge_class", pa.string()),
    ("corrects_line", pa.string()),
)
_FOCUS = (
    ("BilledCost", _MONEY),
    ("BillingCurrency", pa.string()),
    ("BillingPeriodStart", _MOMENT),
    ("BillingPeriodEnd", _MOMENT),
    ("ChargePeriodStart", _MOMENT),
    ("ChargePeriodEnd", _MOMENT),
    ("ChargeCategory", pa.string()),
    ("ChargeClass", pa.string()),
    ("ChargeDescription", pa.string()),
    ("ConsumedQuantity", pa.decimal128(38, 0)),
    ("ConsumedUnit", pa.string()),
    ("PricingQuantity", pa.decimal128(38, 12)),
    ("PricingUnit", pa.string()),
    ("ListUnitPrice", pa.decimal128(38, 12)),
    ("SkuId", pa.string()),
    ("ResourceId", pa.string()),
    ("SubAccountId", pa.string()),
    ("Tags", pa.string()),
)
ARROW = pa.schema([*_OURS, *_FOCUS])


def write_invoice(
    folder: Path,
    draft: Draft,
    checks: Sequence[Check],
    export: Export,
    ingress: Sequence[Row],
    input_sha256: str,
) -> dict[str, object]:
    """Write the four files; what the manifest says of the invoice.

    ingress: rows of trail.ingress of this organization; those of the period are taken.
    """
    parquet = folder / f"{draft.stem}.parquet"
    rows = [_row(draft, line) for line in draft.lines]
    with pq.ParquetWriter(parquet, ARROW, compression="zstd", store_schema=False) as out:
        out.write_table(pa.Table.from_pylist(rows, schema=ARROW))
    with pq.ParquetFile(parquet) as file:
        written = file.read(columns=list(COLUMNS)).to_pylist()
    with (folder / f"{draft.stem}.csv").open("w", encoding="utf-8", newline="") as table:
        lines = formats.CsvWriter(table, COLUMNS)
        for row in written:
            lines.write(row)
    trail = [
        row for row in ingress if _inside(row["hour_us"], draft.period.start, draft.period.end)
    ]
    document = _document(draft, checks, export, input_sha256)
    document["lines"] = [
        {**_texts(row), **_details(draft, line, trail)}
        for row, line in zip(written, draft.lines, strict=True)
    ]
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, indent=1)
    (folder / f"{draft.stem}.json").write_text(f"{text}\n", encoding="utf-8")
    page = invoice_page(draft, checks, export, trail, input_sha256)
    (folder / f"{draft.stem}.html").write_text(page, encoding="utf-8")
    return _entry(draft, checks)


def sums_of(draft: Draft) -> dict[str, object]:
    """What the lines of the CSV file must add up to."""
    exact = sum((line.amount_exact for line in draft.lines), Decimal("0.000000000"))
    return {
        "file": f"{draft.stem}.csv",
        "rows": str(len(draft.lines)),
        "columns": {"amount": f"{draft.total:.2f}", "amount_exact": f"{exact:.9f}"},
    }


def _entry(draft: Draft, checks: Sequence[Check]) -> dict[str, object]:
    return {
        "organization_id": draft.organization.id,
        "period": draft.period.name,
        "name": draft.stem,
        "state": "DRAFT",
        "blocked": not all(check.ok for check in checks),
        "total": f"{draft.total:.2f}",
        "currency": draft.currency,
        "lines": len(draft.lines),
    }


def _row(draft: Draft, line: Line) -> dict[str, Value | None]:
    """Our columns and FOCUS's. A line of one topic names that topic; others name none."""
    topics = {share.topic.topic_id for share in line.shares}
    return {
        **line.row(),
        "BilledCost": line.amount,
        "BillingCurrency": line.currency,
        "BillingPeriodStart": draft.period.start,
        "BillingPeriodEnd": draft.period.end,
        "ChargePeriodStart": line.start,
        "ChargePeriodEnd": line.end,
        "ChargeCategory": "Usage" if line.price else "Adjustment",
        "ChargeClass": None,
        "ChargeDescription": line.description,
        "ConsumedQuantity": line.quantity if line.price else None,
        "ConsumedUnit": line.unit if line.price else None,
        "PricingQuantity": line.price.units(line.quantity, 12)
        if line.price
        else Decimal(line.quantity),
        "PricingUnit": line.price.unit if line.price else line.unit,
        "ListUnitPrice": (line.price.unit_price if line.price else line.unit_price),
        "SkuId": line.sku,
        "ResourceId": topics.pop() if len(topics) == 1 else None,
        "SubAccountId": draft.organization.id,
        "Tags": json.dumps({"price_book": line.book.version}, separators=(",", ":")),
    }


def _texts(row: dict[str, Value]) -> dict[str, object]:
    return {name: text_of(name, row[name]) for name in COLUMNS}


def _document(
    draft: Draft, checks: Sequence[Check], export: Export, input_sha256: str
) -> dict[str, object]:
    return {
        **_entry(draft, checks),
        "schema": SCHEMA,
        "kind": "invoice",
        "organization": draft.organization.name,
        "period_start": text_of("", draft.period.start),
        "period_end": text_of("", draft.period.end),
        "as_of": text_of("", draft.as_of),
        "price_book_version": draft.books[-1].version,
        "price_books": [_priced(draft, book, export) for book in draft.books],
        "pricing": PRICING,
        "monthly_minimum": f"{draft.minimum:.2f}",
        "metered_exact": f"{draft.metered_exact:.9f}",
        "amount_per_month": None if draft.per_month is None else f"{draft.per_month:.9f}",
        "rate_from": text_of("", draft.rate_from),
        "reconciliation": [check.document() for check in checks],
        "input_sha256": input_sha256,
    }


def _priced(draft: Draft, book: PriceBook, export: Export) -> dict[str, object]:
    """Which part of the month a price book prices, and its prices."""
    start, end = span_of(book, draft.period, export)
    return {
        "version": book.version,
        "from": text_of("", start),
        "until": text_of("", end),
        "prices": [
            {
                "meter": price.meter,
                "unit": price.unit,
                "unit_quantity": str(price.unit_quantity),
                "unit_price": f"{price.unit_price:f}",
            }
            for price in book.prices
        ],
    }


def _details(draft: Draft, line: Line, trail: Sequence[Row]) -> dict[str, object]:
    """A line by topic and by hour, and ingress by partition."""
    if line.price is None:
        return {}
    details: dict[str, object] = {
        "topics": [
            {
                "project": share.topic.project,
                "topic": share.topic.label,
                "topic_id": share.topic.topic_id,
                "quantity": str(share.quantity),
                "amount_exact": f"{share.amount_exact:.9f}",
                "amount": f"{share.amount:.2f}",
            }
            for share in line.shares
        ],
        "hours": [
            {
                "hour": text_of("", hour),
                "topic_id": topic.topic_id,
                "quantity": str(quantity),
            }
            for (hour, meter, topic), quantity in sorted(draft.account.hours.items())
            if meter == line.sku and line.start <= hour < line.end
        ],
    }
    if line.sku == "ingress_bytes":
        details["partitions"] = [
            _strings(row) for row in trail if _inside(row["hour_us"], line.start, line.end)
        ]
    return details


def _strings(row: Row) -> dict[str, object]:
    return {
        name: str(value) if isinstance(value, int) else value
        for name, value in row.asDict().items()
        if name != "organization_id"
    }


def _inside(hour_us: int, start: datetime, end: datetime) -> bool:
    return start.timestamp() <= hour_us // 1_000_000 < end.timestamp()
