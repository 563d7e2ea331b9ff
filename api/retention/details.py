"""HTTP for the retention report, topic by topic and day by day: what its pictures are drawn of.

    GET /v1/reports/retention/topics      what the report says of each topic
    GET /v1/reports/retention/deletions   what went on each day (UTC), by cause

A key sees the topics of its organization or project; the operator sees all.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, JsonValue
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from api.auth.guard import Guard
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.retention import RetentionRow, RetentionTopic
from api.http.pagination import PAGE_SIZE_MAX, Page, PageRequest, last_shown, page_of, token_after
from api.http.resource import Int64
from api.http.routing import READ_PROBLEMS, DatabaseOf, IdFilter, PageSize, PageToken, Route
from api.retention.service import shown_run

# Documents of topics that are read at once while some of them are sought.
READ_AT_ONCE: Final = 100

router = APIRouter(prefix="/v1/reports/retention", route_class=Route, tags=["reports"])

Reader = Annotated[Caller, Depends(Guard("retention:read"))]


class TopicReport(BaseModel):
    """What the report that is shown says of a topic: an entry of `topics` in retention.json."""

    topic_id: str
    report: dict[str, JsonValue]


class DayOfDeletions(BaseModel):
    """What went on a day (UTC) for one cause."""

    day: str
    cause: str
    trims: Int64
    bytes: Int64
    records: Int64


class Deletions(BaseModel):
    """Every day on which something went, oldest first; no ``run_id``: no report ran yet."""

    run_id: str | None = None
    days: list[DayOfDeletions]


@router.get("/topics", operation_id="listRetentionTopics", responses=READ_PROBLEMS)
def list_retention_topics(
    caller: Reader,
    database: DatabaseOf,
    broken: Annotated[bool, Query(description="Only topics that break a rule.")] = False,
    largest: Annotated[
        int, Query(ge=0, le=PAGE_SIZE_MAX, description="Only so many, those that hold most.")
    ] = 0,
    page_size: PageSize = 0,
    page_token: PageToken = "",
) -> Page[TopicReport]:
    """What the last retention run says of every topic, in order of their ids; with ``largest`` one
    page of those with the most live bytes, the largest first."""
    with database.read() as session:
        run_id = shown_run(session)
        members = (("list", "retention-topics"), ("run", run_id), ("broken", str(broken)))
        request = PageRequest(caller.org_id, members, page_size, page_token, database.now(session))
        topics = visible_to(select(RetentionTopic), RetentionTopic, caller)
        topics = topics.where(RetentionTopic.run_id == run_id)
        if largest:
            return Page(items=_largest(session, topics, largest, broken=broken))
        if broken:
            items, token = _broken(session, topics, request)
            return Page(items=items, next_page_token=token)
        items, token = page_of(
            session,
            topics,
            RetentionTopic.topic_id,
            request,
            render=lambda rows: [
                TopicReport(topic_id=row.topic_id, report=row.document) for row in rows
            ],
            key_of=lambda row: row.topic_id,
        )
    return Page(items=items, next_page_token=token)


def _broken(
    session: Session, topics: Select[RetentionTopic], request: PageRequest
) -> tuple[list[TopicReport], str | None]:
    """A page of the topics that break a rule, and the token of the next one or None. Only the
    documents know, so they are read one after the other, and few at once."""
    after = last_shown(session, request)
    found: list[TopicReport] = []
    for row in _each(session, topics, after):
        if not row.document.get("violations"):
            continue
        if len(found) == request.limit():
            return found, token_after(session, request, found[-1].topic_id)
        found.append(TopicReport(topic_id=row.topic_id, report=row.document))
    return found, None


def _largest(
    session: Session, topics: Select[RetentionTopic], most: int, *, broken: bool
) -> list[TopicReport]:
    """Those that hold most; of equal ones the older topic."""
    found = heapq.nsmallest(
        most,
        (row for row in _each(session, topics, "") if not broken or row.document.get("violations")),
        key=lambda row: (-int(str(row.document.get("live_bytes", 0))), row.topic_id),
    )
    return [TopicReport(topic_id=row.topic_id, report=row.document) for row in found]


def _each(session: Session, topics: Select[RetentionTopic], after: str) -> Iterator[RetentionTopic]:
    """Every topic behind an id, in order of ids; few are read at once."""
    while True:
        some = session.scalars(
            topics.where(RetentionTopic.topic_id > after)
            .order_by(RetentionTopic.topic_id)
            .limit(READ_AT_ONCE)
        ).all()
        yield from some
        if len(some) < READ_AT_ONCE:
            return
        after = some[-1].topic_id


@router.get("/deletions", operation_id="getRetentionDeletions", responses=READ_PROBLEMS)
def get_retention_deletions(
    caller: Reader, database: DatabaseOf, topic_id: IdFilter = ""
) -> Deletions:
    """What went on each day and why, as the last retention run found it."""
    with database.read() as session:
        run_id = shown_run(session)
        if not run_id:
            return Deletions(days=[])
        query = visible_to(
            select(
                RetentionRow.deleted_at,
                RetentionRow.cause,
                RetentionRow.deleted_bytes,
                RetentionRow.deleted_records,
            ),
            RetentionRow,
            caller,
        )
        query = query.where(RetentionRow.run_id == run_id, RetentionRow.cause != "")
        if topic_id:
            query = query.where(RetentionRow.topic_id == topic_id)
        sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        for moment, cause, size, records in session.execute(
            query.execution_options(yield_per=1000)
        ):
            day = f"{moment.astimezone(UTC):%Y-%m-%d}" if moment is not None else ""
            for place, figure in enumerate((1, size, records)):
                sums[day, cause][place] += figure
        return Deletions(
            run_id=run_id,
            days=[
                DayOfDeletions(day=day, cause=cause, trims=trims, bytes=size, records=records)
                for (day, cause), (trims, size, records) in sorted(sums.items())
            ],
        )
