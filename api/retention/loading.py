"""From the files of a retention result to rows: every digest first, then every line, then the sums.

The same rules as for usage: a file that is not the manifest's, or rows that do not add up to its
totals, and nothing is loaded.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from api.errors import ResultRejectedError
from api.reports.loading import checked_files, insert_all, unescaped
from api.reports.models import CurrentRun, ReportRun
from api.retention.models import RetentionRow, RetentionTopic
from api.retention.schemas import RetentionResult
from api.topics.models import Topic

ROWS_FILE: Final = "retention.csv"
TOPICS_FILE: Final = "retention.json"
COLUMNS: Final = (
    "topic", "topic_id", "partition", "policy_source", "retention_ms", "retention_bytes",
    "live_bytes", "oldest_at", "deleted_bytes", "deleted_records", "first_offset", "last_offset",
    "cause", "deleted_at", "age_at_deletion_ms", "next_deletion_at", "hold_id", "violation",
)  # fmt: skip
INSTANTS: Final = ("oldest_at", "deleted_at", "next_deletion_at")
TEXTS: Final = ("topic", "topic_id", "policy_source", "cause", "hold_id", "violation")
SUMMED: Final = ("deleted_bytes", "deleted_records", "live_bytes")

Line = dict[str, str | int | datetime | None]


def read_retention(root: Path, result: RetentionResult) -> tuple[list[Line], list[dict[str, Json]]]:
    """The lines of retention.csv and the topics of retention.json, once all files hold."""
    texts = checked_files(root, result.path, result.files, (ROWS_FILE, TOPICS_FILE))
    try:
        lines = list(_lines(texts[ROWS_FILE]))
        document = json.loads(texts[TOPICS_FILE])
    except ValueError as error:
        raise ResultRejectedError(f"The report holds a value that is none: {error}.") from error
    topics = document.get("topics") if isinstance(document, dict) else None
    if not isinstance(topics, list) or not all(isinstance(each, dict) for each in topics):
        raise ResultRejectedError(f"{TOPICS_FILE} lists no topics.")
    found = (len(lines), *(sum(int(str(line[name])) for line in lines) for name in SUMMED))
    said = (result.totals.rows, *(getattr(result.totals, name) for name in SUMMED))
    if found != said:
        raise ResultRejectedError(
            f"The rows of {ROWS_FILE} do not add up to the totals of the manifest.",
            rows=[str(value) for value in found],
            totals=[str(value) for value in said],
        )
    return lines, topics


def load_retention(
    session: Session,
    run: ReportRun,
    lines: list[Line],
    documents: list[dict[str, Json]],
) -> None:
    """Puts the rows of a run in place of those of the run that is shown now."""
    known = session.execute(select(Topic.id, Topic.org_id, Topic.project_id))
    owners = {topic_id: (org_id, project_id) for topic_id, org_id, project_id in known}
    shown = session.get(CurrentRun, run.kind)
    if shown is not None:
        for table in (RetentionRow, RetentionTopic):
            session.execute(delete(table).where(table.run_id == shown.run_id))
    rows = (
        {**line, **_owner(owners, line["topic_id"]), "run_id": run.id, "line": f"{number:012d}"}
        for number, line in enumerate(lines, 1)
    )
    topics = (
        {
            **_owner(owners, document.get("topic_id")),
            "run_id": run.id,
            "topic_id": str(document.get("topic_id")),
            "document": document,
        }
        for document in documents
    )
    insert_all(session, RetentionRow, rows)
    insert_all(session, RetentionTopic, topics)


def _owner(owners: Mapping[str, tuple[str, str]], topic_id: object) -> dict[str, str]:
    """Whose a topic is. Nobody's, if its tombstone is not here: then only the operator sees it."""
    org_id, project_id = owners.get(str(topic_id), ("", ""))
    return {"org_id": org_id, "project_id": project_id}


def _lines(text: str) -> Iterator[Line]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ResultRejectedError(f"{ROWS_FILE} has other columns than this version reads.")
    for cells in reader:
        yield {name: _value(name, unescaped(cells[name] or "")) for name in COLUMNS}


def _value(name: str, cell: str) -> str | int | datetime | None:
    if name in TEXTS:
        return cell
    if not cell:
        return None
    if name in INSTANTS:
        return datetime.fromisoformat(cell).astimezone(UTC)
    return int(cell)
