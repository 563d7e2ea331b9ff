"""From the files of a retention result to rows: every digest first, then every line, then the sums.

The same rules as for usage: a file that is not the manifest's, or rows that do not add up to its
totals, and nothing is loaded.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from pydantic import JsonValue as Json
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from api.db.tables.reports import CurrentRun, ReportRun
from api.db.tables.retention import RetentionRow, RetentionTopic
from api.db.tables.topics import Topic
from api.http.errors import ResultRejectedError
from api.jobs.files import checked_files
from api.jobs.rows import csv_lines, insert_all
from api.retention.schemas import ReportedTopic, RetentionItem, RetentionResult

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

REPORTED_TOPICS: Final = TypeAdapter(list[ReportedTopic])
JSON_OBJECTS: Final = TypeAdapter(list[dict[str, Json]])

Line = dict[str, str | int | datetime | None]


def read_retention(root: Path, result: RetentionResult) -> tuple[list[Line], list[dict[str, Json]]]:
    """The lines of retention.csv and the topics of retention.json, once all files hold."""
    texts = checked_files(root, result.path, result.files, (ROWS_FILE, TOPICS_FILE))
    try:
        lines = list(_lines(texts[ROWS_FILE]))
        topics = _topics(texts[TOPICS_FILE])
    except (ValueError, OverflowError, RecursionError) as error:
        raise ResultRejectedError(
            f"The report contains an invalid value: {_why(error)}."
        ) from error
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
            "topic_id": str(document["topic_id"]),
            "document": document,
        }
        for document in documents
    )
    insert_all(session, RetentionRow, rows)
    insert_all(session, RetentionTopic, topics)


def _owner(owners: Mapping[str, tuple[str, str]], topic_id: object) -> dict[str, str]:
    """The owner of a topic. None if its tombstone is not here: then only the operator sees it."""
    org_id, project_id = owners.get(str(topic_id), ("", ""))
    return {"org_id": org_id, "project_id": project_id}


def _lines(text: str) -> Iterator[Line]:
    for cells in csv_lines(text, COLUMNS, ROWS_FILE):
        line = {name: _value(name, cells[name]) for name in COLUMNS}
        # Every row must fit the response schema: the report could not be read otherwise.
        RetentionItem.model_validate(line)
        yield line


def _topics(text: str) -> list[dict[str, Json]]:
    document = json.loads(text, parse_constant=_no_number)
    # Half of a surrogate pair is found here, and not by a reader of the report.
    json.dumps(document, ensure_ascii=False).encode()
    topics = document.get("topics") if isinstance(document, dict) else None
    ids = [each.topic_id for each in REPORTED_TOPICS.validate_python(topics)]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{TOPICS_FILE} lists a topic twice")
    # They are kept as they came.
    return JSON_OBJECTS.validate_python(topics)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _why(error: Exception) -> str:
    """In one line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def _value(name: str, cell: str) -> str | int | datetime | None:
    if name in TEXTS:
        return cell
    if not cell:
        return None
    if name in INSTANTS:
        return datetime.fromisoformat(cell).astimezone(UTC)
    return int(cell)
