"""A draft invoice to look at, drawn of lines of usage.csv as a usage run draws it: shares, hours,
offsets, the top-up to the minimum, and six checks.

Owns the document of invoice-ORGANIZATION-PERIOD.json. Refuses chance and floats.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

Line = Mapping[str, str]
Document = dict[str, object]
MINIMUM = Decimal("5.00")
CENT = Decimal("0.01")
HOUR_US = 3_600_000_000
DESCRIPTIONS = {
    "ingress_bytes": "Ingress, stored batch bytes",
    "partition_seconds": "Partitions, by lifetime",
    "requests": "Requests",
}
CHECKS = {
    "counters": "Counters are complete",
    "quantities": "Raw, hourly, daily and rated sums match",
    "log": "Billed bytes match the log",
    "partition_seconds": "Partition time matches topic lifetimes",
    "unattributed": "All usage has an owner",
    "lines": "Line items add up to the invoice",
}


def invoice_of(
    organization_id: str, rows: Sequence[Line], month: datetime, as_of: datetime, red: str = ""
) -> Document:
    """The invoice of a month over these lines; `red` names a check that differs."""
    start = f"{month:%Y-%m-%dT%H:%M:%SZ}"
    following = (
        month.replace(year=month.year + 1, month=1)
        if month.month == 12
        else month.replace(month=month.month + 1)
    )
    period = {"period_start": start, "period_end": f"{following:%Y-%m-%dT%H:%M:%SZ}"}
    within = [row for row in rows if start <= row["window_start"] < period["period_end"]]
    lines: list[Document] = []
    for sku, description in DESCRIPTIONS.items():
        of = [row for row in within if row["meter"] == sku]
        if of:
            lines.append({**_line(len(lines) + 1, sku, description, of), **period})
    metered = sum((Decimal(str(line["amount_exact"])) for line in lines), Decimal("0.000000000"))
    sum_shown = sum((Decimal(str(line["amount"])) for line in lines), Decimal("0.00"))
    if sum_shown < MINIMUM:
        lines.append({**_top_up(len(lines) + 1, MINIMUM - sum_shown), **period})
    total = max(sum_shown, MINIMUM)
    return {
        "organization_id": organization_id,
        "name": f"invoice-{organization_id}-{month:%Y-%m}",
        "state": "DRAFT",
        "blocked": bool(red),
        "period": f"{month:%Y-%m}",
        **period,
        "as_of": f"{as_of:%Y-%m-%dT%H:%M:%SZ}",
        "currency": "EUR",
        "total": f"{total:.2f}",
        "metered_exact": f"{metered:.9f}",
        "monthly_minimum": f"{MINIMUM:.2f}",
        "amount_per_month": f"{max(metered * 31 / as_of.day, MINIMUM):.9f}",
        "rate_from": start,
        "price_book_version": "demo-1",
        "lines": lines,
        "reconciliation": [_check(name, name != red) for name in CHECKS],
    }


def _line(number: int, sku: str, description: str, rows: Sequence[Line]) -> Document:
    exact = sum((Decimal(row["amount"]) for row in rows), Decimal("0.000000000"))
    line: Document = {
        "line": str(number),
        "sku": sku,
        "description": description,
        "quantity": str(sum(int(row["quantity"]) for row in rows)),
        "unit": rows[0]["unit"],
        "unit_price": rows[0]["unit_price"],
        "amount_exact": f"{exact:.9f}",
        "amount": f"{exact.quantize(CENT):.2f}",
        "currency": "EUR",
        "charge_class": "",
        "corrects_line": "",
        "topics": _shares(rows),
        "hours": [
            {"hour": row["window_start"], "topic_id": row["topic_id"], "quantity": row["quantity"]}
            for row in rows
        ],
    }
    if sku == "ingress_bytes":
        line["partitions"] = [_place(number, row) for number, row in enumerate(rows)]
    return line


def _shares(rows: Sequence[Line]) -> list[Document]:
    of: dict[str, list[Line]] = defaultdict(list)
    for row in rows:
        of[row["topic_id"]].append(row)
    shares: list[Document] = []
    for topic_id, mine in of.items():
        exact = sum((Decimal(row["amount"]) for row in mine), Decimal("0.000000000"))
        shares.append(
            {
                "project": "default",
                "topic": f"{mine[0]['stream']}/{mine[0]['topic']}",
                "topic_id": topic_id,
                "quantity": str(sum(int(row["quantity"]) for row in mine)),
                "amount_exact": f"{exact:.9f}",
                "amount": f"{exact.quantize(CENT):.2f}",
            }
        )
    return shares


def _place(number: int, row: Line) -> Document:
    begin = datetime.fromisoformat(row["window_start"])
    return {
        "topic_id": row["topic_id"],
        "partition": "0",
        "hour_us": str(int(begin.timestamp()) * 1_000_000),
        "bytes": row["quantity"],
        "records": "100",
        # The oldest hour was removed by retention since.
        "first_offset": str(100 * number) if number else None,
        "end_offset": str(100 * number + 100) if number else None,
    }


def _top_up(number: int, missing: Decimal) -> Document:
    return {
        "line": str(number),
        "sku": "monthly_minimum",
        "description": f"Top-up to the monthly minimum of {MINIMUM:.2f} EUR",
        "quantity": "1",
        "unit": "month",
        "unit_price": f"{missing:.2f}",
        "amount_exact": f"{missing:.9f}",
        "amount": f"{missing:.2f}",
        "currency": "EUR",
        "charge_class": "",
        "corrects_line": "",
        "topics": [],
    }


def _check(name: str, ok: bool) -> Document:
    detail = "Both sums match." if ok else "The log has 2 bytes more than were billed."
    figures = {"by_the_log": "1073741824", "billed": "1073741824" if ok else "1073741822"}
    state = "GREEN" if ok else "RED"
    told = {"name": name, "title": CHECKS[name], "state": state}
    return {**told, "figures": figures, "detail": detail}
