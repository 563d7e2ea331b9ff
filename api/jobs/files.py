"""From the files of a result to rows: digests first, then every line, then the totals.

A path may not leave the reports' folder, a digest may not differ, and the rows must add up to what
the manifest says; otherwise nothing is loaded. The CSV is read as the job wrote it: text that a
spreadsheet could take for a formula has an apostrophe before it.
"""

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from sqlalchemy import String, delete, insert, inspect, select
from sqlalchemy.orm import Session

from api.db.database import Base
from api.db.tables.organizations import Organization
from api.db.tables.reports import CurrentRun, ReportRun
from api.db.tables.topics import Topic
from api.db.tables.usage import UsageRow
from api.http.errors import ResultRejectedError
from api.http.resource import INT64_MAX
from api.reports.schemas import PublishedFile, ReportResult

USAGE_FILE: Final = "usage.csv"
COLUMNS: Final = (
    "organization", "project", "cluster", "stream", "topic", "topic_id", "principal", "meter",
    "unit", "window_start", "window_end", "quantity", "unit_price", "currency", "amount",
    "price_book_version", "estimated",
)  # fmt: skip
NUMBERS: Final = ("quantity", "unit_price", "amount")
# As they are written: neither NaN, nor an exponent that takes a gigabyte to write out.
DECIMAL_PATTERN: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
FILE_BYTES_MAX: Final = 2 << 30
CHUNK_BYTES: Final = 1 << 20
ROWS_A_STATEMENT: Final = 500


def folder_of(uri: str) -> Path:
    """The folder of ``reports.uri``: a path or a file:// URL."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        raise ValueError(f"reports.uri must be a folder or a file:// URL, not {parts.scheme}://")
    return Path(unquote(parts.path))


def read_result(root: Path, result: ReportResult) -> dict[str, str]:
    """The text of usage.csv and of each invoice's document by name, once every file of the manifest
    is there with its digest."""
    wanted = (USAGE_FILE, *(f"{invoice.name}.json" for invoice in result.invoices))
    texts = checked_files(root, result.path, result.files, wanted)
    _check_totals(texts[USAGE_FILE], result)
    return texts


def checked_files(
    root: Path, path: str, files: Sequence[PublishedFile], wanted: Sequence[str]
) -> dict[str, str]:
    """The texts of the wanted files, once every file of a manifest is there with its digest.

    Files are large: this is for before a transaction begins. Of those that are not wanted no more
    than CHUNK_BYTES is in memory at once.
    """
    root = root.absolute()
    folder = (root / folder_of(path)).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise ResultRejectedError(
            "The path of the result leaves the folder of reports.",
            hint="Publish below reports.uri, which the worker passes as --uri.",
        )
    texts = {}
    for file in files:
        loaded = file.name in wanted
        content = checked_file(folder / file.name, size=file.bytes, sha256=file.sha256, keep=loaded)
        if loaded:
            texts[file.name] = _decoded(content, file.name)
    for name in wanted:
        if name not in texts:
            raise ResultRejectedError(f"The manifest names no {name}.")
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


def insert_all(session: Session, table: type[Base], rows: Iterator[Mapping[str, object]]) -> None:
    """Rows into a table, made as they are inserted: the transaction is never idle for as long as
    all of them take, and no second copy of them is in memory.

    :raises ResultRejectedError: a value is none that the table holds.
    """
    while some := list(islice(rows, ROWS_A_STATEMENT)):
        for row in some:
            check_values(table, row)
        session.execute(insert(table), some)


def csv_lines(text: str, columns: Sequence[str], name: str) -> Iterator[dict[str, str]]:
    """The cells of a CSV file by column, text without what keeps spreadsheets from running it.

    :raises ResultRejectedError: it has other columns, or a line is none of them.
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        if tuple(next(reader, ())) != tuple(columns):
            raise ResultRejectedError(f"{name} has other columns than this version reads.")
        for cells in reader:
            if len(cells) != len(columns):
                raise ResultRejectedError(
                    f"Line {reader.line_num} of {name} has {len(cells)} cells."
                )
            yield dict(zip(columns, map(unescaped, cells), strict=True))
    except csv.Error as error:
        raise ResultRejectedError(f"{name} is no CSV: {error}.") from None


def checked_file(path: Path, *, size: int, sha256: str, keep: bool) -> bytes:
    """What the file holds if it is to be kept, else nothing; of too long a file no more is read
    than shows that it is."""
    if size > FILE_BYTES_MAX:
        raise ResultRejectedError(f"{path.name} is above {FILE_BYTES_MAX} bytes.")
    digest, length, kept = hashlib.sha256(), 0, []
    try:
        with path.open("rb") as file:
            while length <= size and (chunk := file.read(CHUNK_BYTES)):
                digest.update(chunk)
                length += len(chunk)
                if keep:
                    kept.append(chunk)
    except OSError as error:
        raise ResultRejectedError(
            f"{path.name} cannot be read: {error.strerror}.",
            hint="Job and control plane must see the same folder under reports.uri.",
        ) from error
    if length != size or digest.hexdigest() != sha256:
        raise ResultRejectedError(
            f"{path.name} is not the file of the manifest: size or SHA-256 differ.",
            hint="Run the report again; files must not be edited after the job.",
        )
    return b"".join(kept)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultRejectedError(f"{name} is not UTF-8: {error.reason}.") from None


def _lines(text: str) -> Iterator[dict[str, str]]:
    return csv_lines(text, COLUMNS, USAGE_FILE)


def check_values(table: type[Base], row: Mapping[str, object]) -> None:
    """Refuses what some database would not store: long texts, NULs, numbers beyond 64 bits, times
    that are nowhere.

    :raises ResultRejectedError: names the column.
    """
    for name, most in _columns(table).items():
        value = row.get(name)
        if isinstance(value, str):
            holds = "\0" not in value and (most is None or len(value) <= most)
        elif isinstance(value, datetime):
            holds = value.tzinfo is not None
        else:
            holds = not isinstance(value, int) or abs(value) <= INT64_MAX
        if not holds:
            raise ResultRejectedError(f"The {name} of a row cannot be stored: {str(value)[:40]!r}.")


@cache
def _columns(table: type[Base]) -> dict[str, int | None]:
    """By name how many characters a column holds, if it is said."""
    return {
        one.key: one.type.length if isinstance(one.type, String) else None
        for one in inspect(table).columns
    }


def unescaped(cell: str) -> str:
    """A cell of text without the apostrophe that keeps spreadsheets from running it."""
    return cell[1:] if cell.startswith("'") else cell


def _check_totals(text: str, result: ReportResult) -> None:
    rows = 0
    sums = {"ingress_bytes": 0, "records": 0}
    amount = Decimal(0)
    try:
        for line in _lines(text):
            rows += 1
            if not all(DECIMAL_PATTERN.fullmatch(line[name]) for name in NUMBERS):
                raise ResultRejectedError(
                    f"Row {rows} of {USAGE_FILE} holds a number that is none."
                )
            amount += Decimal(line["amount"])
            if line["meter"] in sums:
                sums[line["meter"]] += int(line["quantity"])
    except (ValueError, InvalidOperation) as error:
        raise ResultRejectedError(f"{USAGE_FILE} holds a number that is none.") from error
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
        org_id = ""  # Unattributed: nobody's to pay, and the operator's alone to see.
    if org_id is None:
        raise ResultRejectedError(
            f"{USAGE_FILE} names the topic {line['topic_id']}, which nobody here owns."
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
        raise ResultRejectedError(f"{USAGE_FILE} holds a time that is none: {text}.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
