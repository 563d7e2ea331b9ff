"""The published retention report, limited to what the caller may see. Writes nothing.

A key sees the topics of its organization, or of its project; the operator sees all. Sums are over
just those.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue as Json
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.tables.reports import CurrentRun, ReportRun
from api.db.tables.retention import RetentionRow, RetentionTopic
from api.http.pagination import Filter, Paging, page_of
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
DOCUMENTS_AT_ONCE = 100
TOTALS = ("live_bytes", "live_records", "hold_blocked_bytes")
HORIZONS = ("now", "1h", "24h", "7d")


@dataclass(frozen=True, slots=True)
class RetentionQuery(Filter):
    """Which lines: of a topic, of a cause, with a violation, if named."""

    topic_id: str
    cause: str
    violation: str


def shown_run(session: Session) -> str:
    """The run whose report is shown; "" if none ran yet. A page token is bound to it: it goes on in
    the report that it came from, or not at all."""
    current = session.get(CurrentRun, KIND)
    return current.run_id if current is not None else ""


def retention(
    session: Session, caller: Caller, query: RetentionQuery, page: Paging
) -> RetentionBody:
    """A page of lines, and the sums over every topic that the query names."""
    run_id = shown_run(session)
    request = page.of(session, caller.org_id, "retention", {"run": run_id, **query.members()})
    if not run_id:
        return RetentionBody(summary=_Sums().body(), items=[])
    run = session.get_one(ReportRun, run_id)
    sums = _Sums()
    for document in session.scalars(_documents(caller, query, run.id)):
        sums.add(document)
    lines = page_of(session, _rows(caller, query, run.id), RetentionRow.line, request, _items)
    result = run.result or {}
    return RetentionBody(
        run_id=run.id,
        input_sha256=str(result.get("input_sha256")),
        as_of=str(result.get("as_of")),
        computed_at=run.finished_at,
        summary=sums.body(),
        topic=sums.last if query.topic_id else None,
        items=lines.items,
        next_page_token=lines.next_page_token,
    )


def _items(_session: Session, rows: Sequence[RetentionRow]) -> list[RetentionItem]:
    return [RetentionItem.of(row) for row in rows]


def _rows(caller: Caller, query: RetentionQuery, run_id: str) -> Select[RetentionRow]:
    rows = visible_to(select(RetentionRow), RetentionRow, caller)
    rows = rows.where(RetentionRow.run_id == run_id)
    if query.topic_id:
        rows = rows.where(RetentionRow.topic_id == query.topic_id)
    if query.cause:
        rows = rows.where(RetentionRow.cause == query.cause)
    if query.violation:
        # No code is part of another: they are whole words of one list.
        rows = rows.where(RetentionRow.violation.contains(query.violation, autoescape=True))
    return rows


def _documents(caller: Caller, query: RetentionQuery, run_id: str) -> Select[dict[str, Json]]:
    """What the run says of each topic; there may be many, so few are in memory at once."""
    documents = visible_to(select(RetentionTopic.document), RetentionTopic, caller)
    documents = documents.where(RetentionTopic.run_id == run_id)
    if query.topic_id:
        documents = documents.where(RetentionTopic.topic_id == query.topic_id)
    ordered = documents.order_by(RetentionTopic.topic_id)
    return ordered.execution_options(yield_per=DOCUMENTS_AT_ONCE)


@dataclass(slots=True)
class _Sums:
    """Figures of topics, summed one topic after the other; keys in order of first appearance."""

    topics: int = 0
    last: dict[str, Json] | None = None
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOTALS, 0))
    deleted: dict[str, dict[str, int]] = field(default_factory=dict)
    upcoming: dict[str, dict[str, int]] = field(default_factory=dict)
    ages: dict[str, dict[str, int]] = field(default_factory=dict)
    schedule: dict[str, dict[str, int]] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, document: dict[str, Json]) -> None:
        """Counts what is said of one topic."""
        self.topics += 1
        self.last = document
        for name in TOTALS:
            self.totals[name] += int(str(document[name]))
        for each in _entries(document, "deleted"):
            _add(self.deleted, str(each["cause"]), each, ("trims", "bytes", "records"))
        for each in _entries(document, "ages"):
            _add(self.ages, str(each["bucket"]), each, ("bytes", "records"))
        for each in _entries(document, "schedule"):
            _add(self.schedule, str(each["day"]), each, ("bytes", "records"))
        upcoming = document["upcoming"]
        assert isinstance(upcoming, dict)
        for name in HORIZONS:
            due = upcoming[name]
            assert isinstance(due, dict)
            _add(self.upcoming, name, due, ("bytes", "records"))
        for each in _entries(document, "violations"):
            self.broken[str(each["code"])] += 1

    def body(self) -> RetentionSummary:
        """The sums as they cross HTTP."""
        return RetentionSummary(
            topics=self.topics,
            **self.totals,
            deleted=[
                DeletedSum(cause=cause, **sums) for cause, sums in sorted(self.deleted.items())
            ],
            upcoming=[DueSum(within=name, **sums) for name, sums in self.upcoming.items()],
            ages=[AgeSum(bucket=bucket, **sums) for bucket, sums in self.ages.items()],
            schedule=sorted(
                (DueDay(day=int(day), **sums) for day, sums in self.schedule.items()),
                key=lambda due: due.day,
            ),
            violations=dict(sorted(self.broken.items())),
        )


def _add(
    sums: dict[str, dict[str, int]], key: str, said: Mapping[str, Json], figures: tuple[str, ...]
) -> None:
    found = sums.setdefault(key, dict.fromkeys(figures, 0))
    for figure in figures:
        found[figure] += int(str(said[figure]))


def _entries(document: Mapping[str, Json], member: str) -> Iterator[Mapping[str, Json]]:
    # A run of an earlier release may not say it.
    entries = document.get(member, [])
    assert isinstance(entries, list)
    for each in entries:
        assert isinstance(each, dict)
        yield each
