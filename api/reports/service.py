"""The rules of report runs; the only writer of their tables.

A run is queued here, started by a worker, reads its inputs, and hands in its result with the token
of that start. A result counts only while the run is RUNNING; its files are checked against their
digests before the transaction that loads their rows begins, for they are large and others wait for
it. A run that started before the one that is shown is kept, and is not shown.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.database import Database
from api.db.identifiers import new_id
from api.db.tables.api_keys import ApiKey
from api.db.tables.clusters import Cluster
from api.db.tables.organizations import Organization
from api.db.tables.projects import Project
from api.db.tables.reports import CurrentRun, ReportRun
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic, TopicSpan
from api.db.tables.usage import Price, PriceBook
from api.http.errors import ConflictError, ResultRejectedError
from api.http.pagination import Page, Paging, page_of
from api.http.resource import body_json
from api.invoices.service import load_invoices
from api.jobs.inputs import (
    DatedPriceBook,
    NamedKey,
    NamedObject,
    NamedOrganization,
    NamedProject,
    NamedSpan,
    NamedStream,
    NamedTopic,
    PriceBody,
    PriceBookBody,
    ReportInputs,
)
from api.jobs.result import ReportResult
from api.reconcile.operations import Target, start_operation
from api.reconcile.queue import enqueue
from api.reports.schemas import ReportRunBody, ReportRunCreate, ReportRunFilter
from api.retention.inputs import retention_inputs
from api.retention.loader import load_retention, read_retention
from api.retention.schemas import RetentionInputs, RetentionResult
from api.usage.loader import USAGE_FILE, load_usage, read_result

RUN_DEADLINE: Final = timedelta(hours=1)
# In the result of a run that is not shown: the run that is, which started after it.
SUPERSEDED: Final = "superseded_by"


@dataclass(frozen=True, slots=True)
class Checked:
    """Files that hold, of a start of a run, and what puts their rows in place."""

    started_at: datetime | None
    load: Callable[[Session, ReportRun], None]


def queue_run(session: Session, actor: Actor, command: ReportRunCreate) -> tuple[ReportRun, str]:
    """A run that a worker will start, and its operation's id."""
    row = ReportRun(
        id=new_id("run"),
        org_id=actor.caller.org_id,
        kind=command.kind,
        state="QUEUED",
        created_at=actor.now,
        created_by=actor.caller.principal_id,
    )
    session.add(row)
    session.flush()
    target = Target("report", row.id, row.org_id, None, 1)
    operation = start_operation(session, actor, "run_report", target, RUN_DEADLINE)
    enqueue(
        session, kind="report", object_id=row.id, org_id=row.org_id, generation=1, now=actor.now
    )
    record_change(
        session,
        actor,
        Change(
            row.org_id,
            "reports.create",
            "report_run",
            row.id,
            after=body_json(ReportRunBody.of(row)),
        ),
    )
    return row, operation.id


def inputs_of(session: Session, run: ReportRun) -> ReportInputs:
    """Names and prices for a run, in order of id, without anything that changes from run to run."""
    streams = {row.id: row for row in session.scalars(select(Stream).order_by(Stream.id))}
    as_of = run.started_at or run.created_at
    books = _price_books(session, as_of)
    newest = books[-1].model_dump(exclude={"effective_from"})
    return ReportInputs(
        kind=run.kind,
        as_of=as_of,
        organizations=[
            NamedOrganization(id=row.id, name=row.name, created_at=row.created_at)
            for row in session.scalars(select(Organization).order_by(Organization.id))
        ],
        projects=[
            NamedProject(id=row.id, name=row.name, organization_id=row.org_id)
            for row in session.scalars(select(Project).order_by(Project.id))
        ],
        clusters=[
            NamedObject(id=row.id, name=row.name)
            for row in session.scalars(select(Cluster).order_by(Cluster.id))
        ],
        streams=[
            NamedStream(
                id=row.id,
                name=row.name,
                organization_id=row.org_id,
                project_id=row.project_id,
                cluster_id=row.cluster_id,
            )
            for row in streams.values()
        ],
        topics=[
            NamedTopic(
                id=row.id,
                name=row.name,
                organization_id=row.org_id,
                project_id=row.project_id,
                cluster_id=row.cluster_id,
                stream_id=row.stream_id,
            )
            for row in session.scalars(select(Topic).order_by(Topic.id))
        ],
        topic_lifecycle=_lifecycle(session),
        api_keys=[
            NamedKey(id=row.id, name=row.name, organization_id=row.org_id, role=row.role)
            for row in session.scalars(select(ApiKey).order_by(ApiKey.id))
        ],
        price_book=PriceBookBody(**newest),
        price_books=books,
    )


def report_inputs(session: Session, run_id: str, now: datetime) -> RetentionInputs | ReportInputs:
    """What a run of its kind needs."""
    run = session.get_one(ReportRun, run_id)
    names = inputs_of(session, run)
    return retention_inputs(session, names, now) if run.kind == "retention" else names


def check_result(
    database: Database, *, run_id: str, result: ReportResult | RetentionResult, root: Path
) -> Checked | None:
    """Checks the files, in no transaction; reads none, and gives None, if the run takes no result.

    :raises ResultRejectedError: a file is not that of the manifest, or does not add up.
    """
    with database.read() as session:
        run = session.get_one(ReportRun, run_id)
        started_at = run.started_at
        if run.state != "RUNNING" or run.kind != result.kind:
            return None
    if isinstance(result, RetentionResult):
        lines, topics = read_retention(root, result)
        return Checked(started_at, lambda session, run: load_retention(session, run, lines, topics))
    files = read_result(root, result)

    def load(session: Session, run: ReportRun) -> None:
        load_usage(session, run, files[USAGE_FILE])
        load_invoices(session, run, result, files)

    return Checked(started_at, load)


def publish_result(
    session: Session,
    actor: Actor,
    *,
    run_id: str,
    result: ReportResult | RetentionResult,
    checked: Checked | None,
) -> ReportRun:
    """Loads the rows of files that were checked and shows them: all of it or nothing.

    What is shown is of the run that started last, for it knows most: of a run that started before
    it nothing is loaded, and its result says so in ``superseded_by``.

    The run is held, so that its worker does not fail it meanwhile; and what is shown, so that of
    two runs of a kind that publish at once the later one removes the rows of the other.
    """
    run = session.get_one(ReportRun, run_id, with_for_update=True)
    manifest = body_json(result)
    if run.state == "SUCCEEDED" and _manifest(run) == manifest:
        return run
    if run.state != "RUNNING":
        raise ConflictError(f"The run is {run.state}; it takes no result now.")
    if result.kind != run.kind:
        raise ResultRejectedError(f"The result is of kind {result.kind}, the run {run.kind}.")
    if checked is None or checked.started_at != run.started_at:
        raise ConflictError("The run was started anew; it takes the result of that start only.")
    newer = _show(session, run, checked, actor.now)
    if newer is not None:
        manifest = {**manifest, SUPERSEDED: newer}
    run.state = "SUCCEEDED"
    run.finished_at = actor.now
    run.result = manifest
    session.flush()
    record_change(
        session,
        actor,
        Change(run.org_id, "reports.publish", "report_run", run.id, after=manifest),
    )
    return run


def _show(session: Session, run: ReportRun, checked: Checked, now: datetime) -> str | None:
    """Puts a run in place of the one that is shown; if that one started later, its id instead."""
    shown = _shown(session, run, now)
    before = session.get_one(ReportRun, shown.run_id).started_at
    if before is not None and run.started_at is not None and run.started_at < before:
        return shown.run_id
    checked.load(session, run)
    shown.run_id = run.id
    shown.updated_at = now
    return None


def _shown(session: Session, run: ReportRun, now: datetime) -> CurrentRun:
    """What is shown of the kind, held; the run itself if nothing was yet. Of two runs that would
    both be the first, one waits here for the other, and then finds it."""
    shown = session.get(CurrentRun, run.kind, with_for_update=True)
    if shown is None:
        with suppress(IntegrityError), session.begin_nested():
            session.add(CurrentRun(kind=run.kind, run_id=run.id, updated_at=now))
        shown = session.get_one(CurrentRun, run.kind, with_for_update=True)
    return shown


def _manifest(run: ReportRun) -> dict[str, Json]:
    """What the job of the run published."""
    return {name: value for name, value in (run.result or {}).items() if name != SUPERSEDED}


def run_page(
    session: Session, caller: Caller, which: ReportRunFilter, page: Paging
) -> Page[ReportRunBody]:
    """The runs that a caller sees."""
    query = visible_to(select(ReportRun), ReportRun, caller)
    request = page.of(
        session,
        caller.org_id,
        "report-runs",
        which.members(),
        newest_first=which.newest_first,
    )
    return page_of(session, query, ReportRun.id, request, _bodies)


def read_run(session: Session, run_id: str) -> ReportRunBody:
    """Returns a report run."""
    return ReportRunBody.of(session.get_one(ReportRun, run_id))


def _bodies(_session: Session, rows: Sequence[ReportRun]) -> list[ReportRunBody]:
    return [ReportRunBody.of(row) for row in rows]


def run_owner(session: Session, object_id: str) -> Owner | None:
    """Whose a run is; its own token sees it too."""
    row = session.get(ReportRun, object_id)
    return Owner(row.org_id, run_id=row.id) if row else None


def _lifecycle(session: Session) -> list[NamedSpan]:
    query = select(TopicSpan).order_by(TopicSpan.topic_id, TopicSpan.generation)
    return [
        NamedSpan(
            topic_id=row.topic_id,
            organization_id=row.org_id,
            project_id=row.project_id,
            cluster_id=row.cluster_id,
            generation=row.generation,
            partitions=row.partitions,
            started_at=row.started_at,
            until=row.ended_at,
        )
        for row in session.scalars(query)
    ]


def _price_books(session: Session, as_of: datetime) -> list[DatedPriceBook]:
    """Every version that began by then, in that order; one that is announced for later did not."""
    order = (PriceBook.effective_from, PriceBook.version)
    query = select(PriceBook).where(PriceBook.effective_from <= as_of).order_by(*order)
    books = list(session.scalars(query))
    if not books:
        raise ConflictError(
            "There is no price book, so nothing can be rated.", code="NO_PRICE_BOOK"
        )
    prices: dict[str, list[PriceBody]] = {book.version: [] for book in books}
    for row in session.scalars(select(Price).order_by(Price.version, Price.meter)):
        if row.version in prices:
            prices[row.version].append(
                PriceBody(
                    meter=row.meter,
                    unit=row.unit,
                    unit_quantity=row.unit_quantity,
                    unit_price=row.unit_price,
                )
            )
    return [
        DatedPriceBook(
            version=book.version,
            currency=book.currency,
            monthly_minimum=book.monthly_minimum,
            prices=prices[book.version],
            effective_from=book.effective_from,
        )
        for book in books
    ]
