"""What happened to an object and what will, as steps in order of time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.database import meta_value
from api.db.tables.audit import AuditEvent
from api.db.tables.holds import LegalHold
from api.db.tables.work import ResourceStatus, Work
from api.explain.schemas import Step
from api.http.resource import ConditionBody, format_instant
from api.reconcile.commands import DETAIL

EVENTS_MAX: Final = 20
HOLDS_MAX: Final = 20


def requests(session: Session, object_id: str) -> list[Step]:
    """What was asked of the object, by whom; the latest of it."""
    query = select(AuditEvent).where(
        AuditEvent.target_id == object_id, AuditEvent.outcome == "DONE"
    )
    rows = session.scalars(query.order_by(AuditEvent.sequence.desc()).limit(EVENTS_MAX)).all()
    return [
        Step(
            at=row.occurred_at,
            what=row.action,
            why=f"by {row.principal_id} in request {row.request_id}",
            next=_after(row.after),
        )
        for row in reversed(rows)
    ]


def commands(status: ResourceStatus | None) -> list[Step]:
    """What passes sent to clusters, with the fence of it and the answer to it."""
    entries = status.detail.get(DETAIL) if status is not None else None
    return [
        Step(
            at=datetime.fromisoformat(str(entry["at"])),
            what=f"{entry['what']} with fence {entry['fence']}",
            why=str(entry["why"]),
            next=f"the cluster answered: {entry['answer']}",
        )
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
    ]


def holding(session: Session, topic_id: str) -> list[Step]:
    """The latest legal holds on a topic that are not released."""
    query = select(LegalHold).where(LegalHold.topic_id == topic_id, LegalHold.state != "RELEASED")
    rows = session.scalars(query.order_by(LegalHold.id.desc()).limit(HOLDS_MAX)).all()
    return [
        Step(
            at=row.created_at,
            what=f"legal hold {row.id} for case {row.case_id}",
            why=f"by {row.created_by}: {row.reason}",
            next=f"{row.state}: held records are not trimmed, purged or deleted",
        )
        for row in reversed(rows)
    ]


def turns(conditions: Sequence[ConditionBody]) -> list[Step]:
    """The last transition of each condition."""
    return [
        Step(
            at=each.last_transition_at,
            what=f"{each.type} became {each.status}",
            why=f"{each.reason}: {each.message}" if each.message else each.reason,
            next="",
        )
        for each in conditions
    ]


def outlook(session: Session, work: Work | None, now: datetime) -> list[Step]:
    """The next attempt of a worker and its reason; or the attempt in progress."""
    if work is None:
        return []
    fence = f"{meta_value(session, 'db_epoch')}.{work.requested_generation}.{work.lease_token + 1}"
    failures = f" after {work.attempts} failed attempts" if work.attempts else ""
    if work.lease_until is not None and work.lease_until > now:
        return [
            Step(
                at=now,
                what=f"worker {work.lease_owner} is reconciling it",
                why=work.last_error or "reconciliation was due",
                next="the worker renews its lease; otherwise the lease expires at "
                f"{format_instant(work.lease_until)}",
            )
        ]
    why = work.last_error or ("the spec changed" if work.dirty else "periodic check for drift")
    return [
        Step(
            at=max(work.run_after, now),
            what=f"the next attempt{failures}",
            why=why,
            next=f"its commands carry fence {fence}",
        )
    ]


def in_order(steps: Sequence[Step]) -> list[Step]:
    """By time; what happened at one moment stays in the order it was given in."""
    return sorted(steps, key=lambda step: step.at)


def _after(after: dict[str, Json] | None) -> str:
    generation = after.get("generation") if after else None
    return f"generation {generation}" if generation is not None else ""
