"""What the retention report that is shown says, to whoever may see it. Writes nothing.

A key sees the topics of its organization, or of its project; the operator sees all. Sums are over
just those.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue as Json
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from api.access.permissions import Caller
from api.pagination import PageRequest, page_of
from api.reports.models import CurrentRun, ReportRun
from api.retention.models import RetentionRow, RetentionTopic
from api.retention.schemas import (
    AgeSum,
    DeletedSum,
    DueDay,
    DueSum,
    RetentionBody,
    RetentionItem,
    RetentionSummary,
)

KIND = "retention"


@dataclass(frozen=True, slots=True)
class RetentionQuery:
    """Which lines: of a topic, of a cause, with a violation, if named."""

    topic_id: str
    cause: str
    violation: str

    def members(self) -> tuple[tuple[str, str], ...]:
        """What a page token is bound to."""
        names = ("topic_id", "cause", "violation")
        return tuple((name, getattr(self, name)) for name in names)


def shown_run(session: Session) -> str:
    """The run whose report is shown; "" if none ran yet. A page token is bound to it: it goes on in
    the report that it came from, or not at all."""
    current = session.get(CurrentRun, KIND)
    return current.run_id if current is not None else ""


def retention(
    session: Session, caller: Caller, query: RetentionQuery, page: PageRequest
) -> RetentionBody:
    """A page of lines, and the sums over every topic that the query names."""
    run_id = shown_run(session)
    if not run_id:
        return RetentionBody(summary=_summary([]), items=[])
    run = session.get_one(ReportRun, run_id)
    topics = list(session.scalars(_topics(caller, query, run.id)))
    items, token = page_of(
        session,
        _rows(caller, query, run.id),
        RetentionRow.line,
        page,
        render=lambda rows: [RetentionItem.of(row) for row in rows],
        key_of=lambda row: row.line,
    )
    result = run.result or {}
    return RetentionBody(
        run_id=run.id,
        input_sha256=str(result.get("input_sha256")),
        as_of=str(result.get("as_of")),
        computed_at=run.finished_at,
        summary=_summary([row.document for row in topics]),
        topic=topics[0].document if query.topic_id and topics else None,
        items=items,
        next_page_token=token,
    )


def _rows(caller: Caller, query: RetentionQuery, run_id: str) -> Select[RetentionRow]:
    rows = select(RetentionRow).where(RetentionRow.run_id == run_id)
    if not caller.operator:
        rows = rows.where(RetentionRow.org_id == caller.org_id)
    if caller.project_id is not None:
        rows = rows.where(RetentionRow.project_id == caller.project_id)
    if query.topic_id:
        rows = rows.where(RetentionRow.topic_id == query.topic_id)
    if query.cause:
        rows = rows.where(RetentionRow.cause == query.cause)
    if query.violation:
        # No code is part of another: they are whole words of one list.
        rows = rows.where(RetentionRow.violation.contains(query.violation, autoescape=True))
    return rows


def _topics(caller: Caller, query: RetentionQuery, run_id: str) -> Select[RetentionTopic]:
    topics = select(RetentionTopic).where(RetentionTopic.run_id == run_id)
    if not caller.operator:
        topics = topics.where(RetentionTopic.org_id == caller.org_id)
    if caller.project_id is not None:
        topics = topics.where(RetentionTopic.project_id == caller.project_id)
    if query.topic_id:
        topics = topics.where(RetentionTopic.topic_id == query.topic_id)
    return topics.order_by(RetentionTopic.topic_id)


def _summary(documents: list[dict[str, Json]]) -> RetentionSummary:
    deleted = _sums(documents, "deleted", "cause", ("trims", "bytes", "records"))
    ages = _sums(documents, "ages", "bucket", ("bytes", "records"))
    schedule = _sums(documents, "schedule", "day", ("bytes", "records"))
    broken: dict[str, int] = defaultdict(int)
    for found in _entries(documents, "violations"):
        broken[str(found["code"])] += 1
    return RetentionSummary(
        topics=len(documents),
        live_bytes=_total(documents, "live_bytes"),
        live_records=_total(documents, "live_records"),
        hold_blocked_bytes=_total(documents, "hold_blocked_bytes"),
        deleted=[DeletedSum(cause=cause, **sums) for cause, sums in sorted(deleted.items())],
        upcoming=[DueSum(within=name, **sums) for name, sums in _due(documents).items()],
        ages=[AgeSum(bucket=bucket, **sums) for bucket, sums in ages.items()],
        schedule=sorted(
            (DueDay(day=int(day), **sums) for day, sums in schedule.items()),
            key=lambda due: due.day,
        ),
        violations=dict(sorted(broken.items())),
    )


def _due(documents: list[dict[str, Json]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for document in documents:
        upcoming = document["upcoming"]
        assert isinstance(upcoming, dict)
        for name in ("now", "1h", "24h", "7d"):
            due = upcoming[name]
            assert isinstance(due, dict)
            sums = found.setdefault(name, {"bytes": 0, "records": 0})
            for figure in sums:
                sums[figure] += int(str(due[figure]))
    return found


def _sums(
    documents: list[dict[str, Json]], member: str, key: str, figures: tuple[str, ...]
) -> dict[str, dict[str, int]]:
    """Figures of a list of each document, summed by a key, in order of first appearance."""
    found: dict[str, dict[str, int]] = {}
    for each in _entries(documents, member):
        sums = found.setdefault(str(each[key]), dict.fromkeys(figures, 0))
        for figure in figures:
            sums[figure] += int(str(each[figure]))
    return found


def _entries(documents: list[dict[str, Json]], member: str) -> Iterable[Mapping[str, Json]]:
    for document in documents:
        # A run of an earlier release may not say it.
        entries = document.get(member, [])
        assert isinstance(entries, list)
        for each in entries:
            assert isinstance(each, dict)
            yield each


def _total(documents: list[dict[str, Json]], member: str) -> int:
    return sum(int(str(document[member])) for document in documents)
