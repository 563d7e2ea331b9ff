"""The published retention report by topic and by day: the data of its charts. A key sees the
topics of its organization or project; the operator sees all."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Final

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.retention import RetentionRow, RetentionTopic
from api.http.pagination import Page, PageRequest, Paging, last_shown, page_of, token_after
from api.retention.schemas import DayOfDeletions, Deletions, TopicReport
from api.retention.service import shown_run

# Documents of topics that are read at once while some of them are sought.
READ_AT_ONCE: Final = 100


def topic_report_page(
    session: Session, caller: Caller, page: Paging, *, broken: bool, largest: int
) -> Page[TopicReport]:
    """What the report says of every topic that a caller sees, in order of their ids.

    :param broken: only of those that break a rule.
    :param largest: if not 0, one page of so many of those with the most live bytes.
    """
    run_id = shown_run(session)
    members = {"run": run_id, "broken": broken}
    request = page.of(session, caller.org_id, "retention-topics", members)
    topics = visible_to(select(RetentionTopic), RetentionTopic, caller)
    topics = topics.where(RetentionTopic.run_id == run_id)
    if largest:
        return Page(items=_largest(session, topics, largest, broken=broken))
    if broken:
        return _broken(session, topics, request)
    return page_of(session, topics, RetentionTopic.topic_id, request, _bodies)


def deletions(session: Session, caller: Caller, topic_id: str) -> Deletions:
    """What went on each day and why, of the topics that a caller sees, or of one of them."""
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
    for moment, cause, size, records in session.execute(query.execution_options(yield_per=1000)):
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


def _bodies(_session: Session, rows: Sequence[RetentionTopic]) -> list[TopicReport]:
    return [TopicReport(topic_id=row.topic_id, report=row.document) for row in rows]


def _broken(
    session: Session, topics: Select[RetentionTopic], request: PageRequest
) -> Page[TopicReport]:
    """A page of the topics that break a rule. Only the documents know, so they are read one after
    the other, and few at once."""
    after = last_shown(session, request)
    found: list[TopicReport] = []
    for row in _each(session, topics, after):
        if not row.document.get("violations"):
            continue
        if len(found) == request.limit():
            token = token_after(session, request, found[-1].topic_id)
            return Page(items=found, next_page_token=token)
        found.append(TopicReport(topic_id=row.topic_id, report=row.document))
    return Page(items=found)


def _largest(
    session: Session, topics: Select[RetentionTopic], most: int, *, broken: bool
) -> list[TopicReport]:
    """Those that hold most; of equal ones the older topic."""
    found = heapq.nsmallest(
        most,
        (row for row in _each(session, topics, "") if not broken or row.document.get("violations")),
        key=lambda row: (-int(str(row.document.get("live_bytes", 0))), row.topic_id),
    )
    return _bodies(session, found)


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
