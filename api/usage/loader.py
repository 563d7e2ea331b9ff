"""From the usage file of a result to rows: every line, then the totals.

The rows must add up to what the manifest says; otherwise nothing is loaded.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from api.db.tables.organizations import Organization
from api.db.tables.reports import CurrentRun, ReportRun
from api.db.tables.topics import Topic
from api.db.tables.usage import UsageRow
from api.http.errors import ResultRejectedError
from api.jobs.files import checked_files
from api.jobs.result import ReportResult
from api.jobs.rows import csv_lines, insert_all

USAGE_FILE: Final = "usage.csv"
COLUMNS: Final = (
    "organization", "project", "cluster", "stream", "topic", "topic_id", "principal", "meter",
    "unit", "window_start", "window_end", "quantity", "unit_price", "currency", "amount",
    "price_book_version", "estimated",
)  # fmt: skip
NUMBERS: Final = ("quantity", "unit_price", "amount")
# As they are written: neither NaN, nor an exponent that takes a gigabyte to write out.
DECIMAL_PATTERN: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")


def read_result(root: Path, result: ReportResult) -> dict[str, str]:
    """The text of usage.csv and of each invoice's document by name, once every file of the manifest
    is there with its digest."""
    wanted = (USAGE_FILE, *(f"{invoice.name}.json" for invoice in result.invoices))
    texts = checked_files(root, result.path, result.files, wanted)
    _check_totals(texts[USAGE_FILE], result)
    return texts


def load_usage(session: Session, run: ReportRun, text: str) -> None:
    """Puts the rows of a run in place of those of the run that is shown now."""
    known = session.execute(select(Topic.id, Topic.org_id, Topic.project_id))
    owners = {topic_id: (org_id, project_id) for topic_id, org_id, project_id in known}
    organizations = {
        name: row.id
        for row in session.execute(select(Organization.id, Organization.name))
        for name in row
    }
    shown = session.get(CurrentRun, run.kind)
    if shown is not None:
        session.execute(delete(UsageRow).where(UsageRow.run_id == shown.run_id))
    rows = (_row(run.id, line, owners, organizations) for line in _lines(text))
    insert_all(session, UsageRow, rows)


def _lines(text: str) -> Iterator[dict[str, str]]:
    return csv_lines(text, COLUMNS, USAGE_FILE)


def _check_totals(text: str, result: ReportResult) -> None:
    rows = 0
    sums = {"ingress_bytes": 0, "records": 0}
    amount = Decimal(0)
    try:
        for line in _lines(text):
            rows += 1
            if not all(DECIMAL_PATTERN.fullmatch(line[name]) for name in NUMBERS):
                raise ResultRejectedError(f"Row {rows} of {USAGE_FILE} contains an invalid number.")
            amount += Decimal(line["amount"])
            if line["meter"] in sums:
                sums[line["meter"]] += int(line["quantity"])
    except (ValueError, InvalidOperation) as error:
        raise ResultRejectedError(f"{USAGE_FILE} contains an invalid number.") from error
    found = (rows, sums["ingress_bytes"], sums["records"], amount)
    totals = result.totals
    said = (totals.rows, totals.bytes_billed, totals.records, Decimal(totals.amount_exact))
    if found != said:
        raise ResultRejectedError(
            f"The rows of {USAGE_FILE} do not add up to the totals of the manifest.",
            rows=[str(value) for value in found],
            totals=[str(value) for value in said],
        )


def _row(
    run_id: str,
    line: Mapping[str, str],
    owners: Mapping[str, tuple[str, str]],
    organizations: Mapping[str, str],
) -> dict[str, object]:
    of_name = organizations.get(line["organization"])
    org_id, project_id = owners.get(line["topic_id"], (of_name, ""))
    if not line["topic_id"] and not line["organization"]:
        org_id = ""  # Unattributed: not billed, and visible to the operator only.
    if org_id is None:
        raise ResultRejectedError(
            f"{USAGE_FILE} names the topic {line['topic_id']}, which no organization here owns."
        )
    times = {name: _instant(line[name]) for name in ("window_start", "window_end")}
    return {
        **line,
        **times,
        "run_id": run_id,
        "org_id": org_id,
        "project_id": project_id,
        "estimated": line["estimated"] == "true",
    }


def _instant(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ResultRejectedError(f"{USAGE_FILE} contains an invalid time: {text}.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
