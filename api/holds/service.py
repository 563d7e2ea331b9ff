"""The rules of legal holds; with the reconciler the only writer of their table.

A hold protects records of a topic: nothing deletes what is held, not even by force.
It is never changed, only released, and a released one stays released. Owners alone make and release
holds. This module refuses to say that a hold is in force: that is the cluster's word.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, record_change
from api.auth.guard import Owner
from api.auth.permissions import Caller
from api.auth.scope import visible_to
from api.db.identifiers import new_id
from api.db.tables.holds import KEEPING, LegalHold
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.deletion.mark import refuse_deleting, running_delete
from api.holds.schemas import LegalHoldBody, LegalHoldCreate, LegalHoldFilter
from api.http.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PreconditionRequiredError,
    Violation,
)
from api.http.pagination import Page, Paging, page_of
from api.http.resource import body_json, etag, revision_wanted
from api.reconcile.operations import Target, start_operation
from api.reconcile.queue import enqueue
from api.reconcile.status import create_status, statuses
from api.telemetry import redact
from api.topics.spec import effective

CONDITIONS: Final = ("Held", "Ready", "Reachable", "Stalled")
CREATE: Final = "create_legal_hold"
RELEASE: Final = "release_legal_hold"
# What a cluster remembers of a topic, the released ones too.
HOLDS_OF_TOPIC_MAX: Final = 256
NAMED_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class HoldChange:
    """A hold after a change, the operation that makes it so if there is anything to do, and for a
    dry run what the change does beyond the hold."""

    body: LegalHoldBody
    operation_id: str | None
    plan: dict[str, Json] | None = None


def create_hold(session: Session, actor: Actor, command: LegalHoldCreate) -> HoldChange:
    """Stores a hold, with its status, its operation and its work."""
    topic = _topic(session, actor, command.topic_id)
    _check_place(topic, command)
    _check_room(session, topic, command)
    row = LegalHold(
        id=new_id("hold"),
        org_id=topic.org_id,
        project_id=topic.project_id,
        topic_id=topic.id,
        partition=command.partition,
        from_offset=command.from_offset,
        case_id=command.case_id,
        reason=redact(command.reason),
        state="PROPAGATING",
        created_at=actor.now,
        created_by=actor.caller.principal_id,
        revision=1,
    )
    session.add(row)
    session.flush()
    create_status(session, object_id=row.id, org_id=row.org_id, types=CONDITIONS, now=actor.now)
    return _changed(session, actor, row, CREATE, before=None)


def release_hold(
    session: Session, actor: Actor, *, hold_id: str, if_match: str | None
) -> HoldChange:
    """Stores that a hold shall be released. Released already, or about to be: nothing changes.

    :raises PreconditionRequiredError: no If-Match was sent.
    :raises PreconditionFailedError: it names another revision than the present one.
    """
    query = visible_to(select(LegalHold), LegalHold, actor.caller).where(LegalHold.id == hold_id)
    query = query.with_for_update()
    row = session.scalars(query.execution_options(populate_existing=True)).one()
    before = hold_bodies(session, [row])[0]
    if row.release_wished_at is not None:
        releasing = row.state != "RELEASED"
        return HoldChange(before, running_delete(session, row.id, RELEASE) if releasing else None)
    if if_match is None:
        raise PreconditionRequiredError(
            "A release cannot be undone, and the records may then be deleted, so it requires "
            "If-Match.",
            hint=f'Read the hold, then send If-Match: "{etag(row.revision)}".',
        )
    revision_wanted(if_match, row.revision)
    row.state = "RELEASING"
    row.release_wished_at = actor.now
    row.released_by = actor.caller.principal_id
    row.revision += 1
    session.flush()
    plan = _loss(session, row, before)
    changed = _changed(session, actor, row, RELEASE, before=body_json(before))
    return HoldChange(changed.body, changed.operation_id, plan)


def hold_bodies(session: Session, rows: Sequence[LegalHold]) -> list[LegalHoldBody]:
    """The bodies of rows, in their order."""
    found = statuses(session, [row.id for row in rows])
    query = (
        select(Topic.id, Stream.name, Topic.name)
        .join(Stream, Stream.id == Topic.stream_id)
        .where(Topic.id.in_({row.topic_id for row in rows}))
    )
    names = {topic_id: f"{stream}/{name}" for topic_id, stream, name in session.execute(query)}
    return [LegalHoldBody.of(row, names[row.topic_id], found.get(row.id)) for row in rows]


def hold_page(
    session: Session, caller: Caller, which: LegalHoldFilter, page: Paging
) -> Page[LegalHoldBody]:
    """The holds that a caller sees, oldest first."""
    query = visible_to(select(LegalHold), LegalHold, caller).filter_by(**which.given())
    request = page.of(session, caller.org_id, "legal-holds", which.members())
    return page_of(session, query, LegalHold.id, request, hold_bodies)


def read_hold(session: Session, hold_id: str) -> LegalHoldBody:
    """One hold."""
    return hold_bodies(session, [session.get_one(LegalHold, hold_id)])[0]


def hold_owner(session: Session, object_id: str) -> Owner | None:
    """Whose a hold is."""
    row = session.get(LegalHold, object_id)
    return Owner(row.org_id, row.project_id) if row else None


def _topic(session: Session, actor: Actor, topic_id: str) -> Topic:
    """The topic that shall be held, so that no deletion can slip in between."""
    query = visible_to(select(Topic), Topic, actor.caller)
    query = query.where(Topic.id == topic_id, Topic.purged_at.is_(None)).with_for_update()
    row = session.scalars(query.execution_options(populate_existing=True)).first()
    if row is None:
        raise NotFoundError(
            f"The topic {topic_id} does not exist, or this key has no access to it.",
            code="TOPIC_NOT_FOUND",
        )
    refuse_deleting(row, "topic")
    return row


def _check_place(topic: Topic, command: LegalHoldCreate) -> None:
    partitions = effective(topic.spec).partitions
    if command.partition is not None and command.partition >= partitions:
        raise InvalidRequestError(
            f"The topic {topic.name} has no partition {command.partition}: it has {partitions}.",
            hint="Omit partition to hold all partitions, including those added later.",
            violations=[
                Violation(
                    "#/partition",
                    "NO_SUCH_PARTITION",
                    "below the count of partitions",
                    limit=str(partitions - 1),
                    actual=str(command.partition),
                )
            ],
        )
    if command.from_offset is not None and command.partition is None and partitions > 1:
        raise InvalidRequestError(
            "from_offset applies to one partition, but the topic has several.",
            hint="Send partition too, or create one hold per partition. Omit from_offset to hold "
            "all records.",
            violations=[Violation("#/from_offset", "NEEDS_PARTITION", "which partition's")],
        )


def _check_room(session: Session, topic: Topic, command: LegalHoldCreate) -> None:
    same = select(LegalHold.id).where(
        LegalHold.topic_id == topic.id,
        LegalHold.case_id == command.case_id,
        LegalHold.release_wished_at.is_(None),
        LegalHold.partition.is_not_distinct_from(command.partition),
        LegalHold.from_offset.is_not_distinct_from(command.from_offset),
    )
    existing = session.scalars(same.limit(1)).first()
    if existing is not None:
        raise ConflictError(
            f"Case {command.case_id} already has a hold on these records.",
            code="HOLD_EXISTS",
            existing_id=existing,
        )
    counted = select(func.count()).select_from(LegalHold).where(LegalHold.topic_id == topic.id)
    if (session.scalar(counted) or 0) >= HOLDS_OF_TOPIC_MAX:
        raise ConflictError(
            f"The topic {topic.name} has had {HOLDS_OF_TOPIC_MAX} holds, "
            "the most that a cluster keeps for a topic.",
            code="TOO_MANY_HOLDS",
            hint="Rely on an active hold: one on all partitions keeps the records for every case.",
        )


def _loss(session: Session, row: LegalHold, before: LegalHoldBody) -> dict[str, Json]:
    """The plan of a release: what policies would have taken, as far as it was seen, and whether
    another hold keeps it all the same."""
    others = select(LegalHold.id).where(
        LegalHold.topic_id == row.topic_id, LegalHold.id != row.id, LegalHold.state.in_(KEEPING)
    )
    kept = session.scalars(others.order_by(LegalHold.id).limit(NAMED_MAX)).all()
    warnings: list[Json] = []
    if kept:
        warnings.append(f"The topic is still under these legal holds: {', '.join(kept)}.")
    size = sum(each.held_bytes for each in before.status.partitions)
    return {"data_loss": {"bytes": str(size)}, "warnings": warnings}


def _changed(
    session: Session, actor: Actor, row: LegalHold, kind: str, *, before: dict[str, Json] | None
) -> HoldChange:
    target = Target("hold", row.id, row.org_id, row.project_id, row.revision)
    enqueue(
        session,
        kind="hold",
        object_id=row.id,
        org_id=row.org_id,
        generation=row.revision,
        now=actor.now,
    )
    operation = start_operation(session, actor, kind, target)
    body = hold_bodies(session, [row])[0]
    action = "holds.create" if before is None else "holds.release"
    record_change(
        session, actor, Change(row.org_id, action, "legal_hold", row.id, before, body_json(body))
    )
    return HoldChange(body, operation.id)
