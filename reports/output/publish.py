"""Publishes a report: usage.* and invoice-*.* as .parquet, .csv, .json and .html, and
manifest.json, whole or not at all.

Owns the order: Spark writes the Parquet file, and every other format is made by reading that file,
so the four agree to the last digit. Names and contents hold no run id and no time: the same inputs
and the same code give the same SHA-256 of every file but the manifest, which says where they lie.
Refuses to publish figures that do not add up.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row

from headrace.evidence import MANIFEST, canonical_json
from headrace.version import VERSION
from reports import formats
from reports.billing.accounts import Accounts
from reports.billing.invoice import drafts_of
from reports.billing.reconciliation import Check, checks_of_draft, checks_of_run
from reports.errors import PublishError
from reports.files import appear, digest, pending_folder, write_parquet
from reports.input.export import Export
from reports.input.prices import rounded
from reports.output.evidence import sign_manifest
from reports.output.invoice_files import sums_of, write_invoice
from reports.output.names import COLUMNS
from reports.output.page_sums import Tally
from reports.output.usage_page import Evidence, usage_page

SCHEMA = 1
USAGE_JSON = "usage.json"
ROWS_PER_READ = 10_000


@dataclass(frozen=True, slots=True)
class Report:
    """A published report: its folder and what manifest.json holds."""

    folder: Path
    manifest: dict[str, object]


@dataclass(frozen=True, slots=True)
class Bill:
    """The run's checks; the invoices as the manifest names them, and the sums of their files."""

    checks: Sequence[Check]
    invoices: Sequence[dict[str, object]]
    sums: Sequence[dict[str, object]]


def publish(root: Path, rows: DataFrame, export: Export, evidence: Evidence) -> Report:
    """Write `rows` (columns and order of names.py, one Spark partition) to `root`/usage/<sha256 of
    the inputs>.
    """
    parent = root / "usage"
    target = parent / evidence.input_sha256
    with pending_folder(parent) as folder:
        written = write_parquet(rows, folder, "usage")
        if len(written) != 1:
            raise PublishError(
                "ROWS_NOT_ONE_FILE",
                f"Spark wrote {len(written)} files of rows.",
                "This is a fault of the report: keep the inputs and report it.",
            )
        parquet = folder / "usage.parquet"
        os.rename(written[0], parquet)
        tally, accounts = _write_rows(folder, parquet)
        tally.agree(
            bytes_billed=evidence.bytes_billed,
            records=sum(row["records_billed"] for row in evidence.partitions),
        )
        bill = _bill(folder, accounts, export, evidence)
        _finish_json(folder, tally, export, evidence, bill)
        page = usage_page(tally, export, evidence, bill.checks)
        (folder / "usage.html").write_text(page, encoding="utf-8")
        manifest = sign_manifest(
            root, "usage", _manifest(folder, target, tally, export, evidence, bill)
        )
        (folder / MANIFEST).write_bytes(canonical_json(manifest))
        appear(folder, target)
    return Report(target, manifest)


def totals_of(tally: Tally, export: Export, evidence: Evidence) -> dict[str, object]:
    """The figures of the manifest; whole numbers and money are strings, as everywhere in REST.

    amount_per_month: by what is known from rate_from to rate_until; null while that is less than
    one full hour.
    """
    per_month = tally.per_month(export.began, export.as_of)
    span = tally.covered(export.began, export.as_of)
    return {
        "bytes_in_log": str(evidence.bytes_in_log),
        "bytes_billed": str(evidence.bytes_billed),
        "bytes_open": str(evidence.bytes_open),
        "bytes_before_log": str(evidence.bytes_before_log),
        "records": str(tally.total.records),
        "rows": str(tally.rows),
        "amount_exact": f"{tally.total.amount:.9f}",
        "amount": f"{rounded(tally.total.amount):.2f}",
        "amount_per_month": None if per_month is None else f"{per_month:.9f}",
        "rate_from": formats.text_of("", span[0]) if span else None,
        "rate_until": formats.text_of("", span[1]) if span else None,
        "currency": export.price_book.currency,
    }


def _write_rows(folder: Path, parquet: Path) -> tuple[Tally, Accounts]:
    """usage.csv and the rows of usage.json, one pass over the Parquet file; the sums of it."""
    tally, accounts = Tally(), Accounts()
    with ExitStack() as stack:
        table = stack.enter_context((folder / "usage.csv").open("w", encoding="utf-8", newline=""))
        document = stack.enter_context((folder / USAGE_JSON).open("w", encoding="utf-8"))
        lines = formats.CsvWriter(table, COLUMNS)
        document.write('{"rows":[')
        objects = formats.JsonRows(document, COLUMNS)
        for row in parquet_rows(parquet):
            lines.write(row)
            objects.write(row)
            tally.add(row)
            accounts.add(row)
    return tally, accounts


def _finish_json(
    folder: Path, tally: Tally, export: Export, evidence: Evidence, bill: Bill
) -> None:
    """What stands after the rows of usage.json."""
    rest = {
        "schema": SCHEMA,
        "kind": "usage",
        "input_sha256": evidence.input_sha256,
        "complete": evidence.complete,
        "price_book": export.document["price_book"],
        "price_books": export.document.get("price_books", [export.document["price_book"]]),
        "api_keys": export.document["api_keys"],
        "totals": totals_of(tally, export, evidence),
        "days": tally.by_day(),
        "reconciliation": [_strings(row) for row in evidence.partitions],
        "gaps": [_strings(row) for row in evidence.findings],
        "lives": [_strings(row) for row in evidence.measured.lives],
        "checks": [check.document() for check in bill.checks],
        "invoices": list(bill.invoices),
    }
    with (folder / USAGE_JSON).open("a", encoding="utf-8") as document:
        document.write("\n],")
        document.write(json.dumps(rest, sort_keys=True, ensure_ascii=False, indent=1)[1:])
        document.write("\n")


def _bill(folder: Path, accounts: Accounts, export: Export, evidence: Evidence) -> Bill:
    """The files of every invoice, and what was checked of all of them together."""
    drafts = drafts_of(accounts, export)
    entries = []
    for draft in drafts:
        mine = evidence.measured.of(draft.organization.id)
        checks = checks_of_draft(draft, mine, export)
        entries.append(
            write_invoice(folder, draft, checks, export, mine.ingress, evidence.input_sha256)
        )
    return Bill(
        checks_of_run(accounts, drafts, evidence.measured, export),
        entries,
        [sums_of(draft) for draft in drafts],
    )


def parquet_rows(parquet: Path) -> Iterator[formats.Row]:
    """The rows of a published file, in order."""
    with pq.ParquetFile(parquet) as file:
        for batch in file.iter_batches(ROWS_PER_READ):
            yield from batch.to_pylist()


def _strings(row: Row) -> dict[str, object]:
    return {
        name: str(value) if isinstance(value, int) else value
        for name, value in row.asDict().items()
    }


def _manifest(
    folder: Path,
    target: Path,
    tally: Tally,
    export: Export,
    evidence: Evidence,
    bill: Bill,
) -> dict[str, object]:
    states: dict[str, int] = {}
    for row in evidence.partitions:
        states[row["state"]] = states.get(row["state"], 0) + 1
    return {
        "schema": SCHEMA,
        "kind": "usage",
        "code_version": VERSION,
        "input_sha256": evidence.input_sha256,
        "price_book_version": export.price_book.version,
        "path": str(target),
        "complete": evidence.complete,
        "gaps": len(evidence.findings),
        "partitions": states,
        "files": [digest(path).entry() for path in sorted(folder.iterdir())],
        "totals": totals_of(tally, export, evidence),
        "checks": [check.document() for check in bill.checks],
        "invoices": list(bill.invoices),
        "sums": [
            {
                "file": "usage.csv",
                "rows": str(tally.rows),
                "columns": {"amount": f"{tally.total.amount:.9f}"},
            },
            *bill.sums,
        ],
    }
