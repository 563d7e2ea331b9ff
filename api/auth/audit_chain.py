"""Records what was changed or refused, in the transaction that did it; the only writer of the
chain.

Each organization has a chain: a row's hash covers the row and the hash before it, so that a row
that is edited or removed later shows.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.auth.permissions import Caller
from api.auth.scope import of_organization
from api.db.identifiers import new_id
from api.db.tables.audit import AuditEvent, OutboxEvent
from api.http.resource import format_instant


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes something, when, and in which request."""

    caller: Caller
    request_id: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object. ``action`` is ``kind.verb``; the bodies hold no secret."""

    org_id: str
    action: str
    target_kind: str
    target_id: str
    before: Mapping[str, Json] | None = None
    after: Mapping[str, Json] | None = None


def purger(org_id: str, now: datetime) -> Actor:
    """The worker that found an object gone, as it stands in the record."""
    return Actor(Caller("reconciler", org_id, role=None), "reconciler", now)


def record_change(session: Session, actor: Actor, change: Change) -> None:
    """Writes the audit row and the outbox row of a change."""
    _append(session, actor, change, outcome="DONE")
    session.add(
        OutboxEvent(
            org_id=change.org_id,
            occurred_at=actor.now,
            kind=change.action,
            target_kind=change.target_kind,
            target_id=change.target_id,
            payload=dict(change.after or {}),
        )
    )


def record_refusal(session: Session, actor: Actor, change: Change) -> None:
    """Writes the audit row of a request that the caller's role did not allow."""
    _append(session, actor, change, outcome="DENIED")


def link_hash(previous_hash: str, members: Mapping[str, Json]) -> str:
    """The hash of a link: over the previous hash and the canonical JSON of the row's members."""
    text = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous_hash}\n{text}".encode()).hexdigest()


def hashed_members(row: AuditEvent) -> dict[str, Json]:
    """What a link's hash covers."""
    return {
        "id": row.id,
        "org_id": row.org_id,
        "sequence": row.sequence,
        "occurred_at": format_instant(row.occurred_at),
        "principal_id": row.principal_id,
        "action": row.action,
        "outcome": row.outcome,
        "target_kind": row.target_kind,
        "target_id": row.target_id,
        "request_id": row.request_id,
        "before": row.before,
        "after": row.after,
    }


def _append(session: Session, actor: Actor, change: Change, *, outcome: str) -> None:
    if session.get_bind().dialect.name == "postgresql":
        # Two links that are made at the same time must not follow the same one. SQLite has one
        # writer anyway.
        number = int.from_bytes(hashlib.sha256(change.org_id.encode()).digest()[:8], signed=True)
        session.execute(select(func.pg_advisory_xact_lock(number)))
    chain = of_organization(select(AuditEvent), AuditEvent, change.org_id)
    last = session.scalars(chain.order_by(AuditEvent.sequence.desc()).limit(1)).first()
    row = AuditEvent(
        id=new_id("aud"),
        org_id=change.org_id,
        sequence=last.sequence + 1 if last else 1,
        occurred_at=actor.now,
        principal_id=actor.caller.principal_id,
        action=change.action,
        outcome=outcome,
        target_kind=change.target_kind,
        target_id=change.target_id,
        request_id=actor.request_id,
        before=dict(change.before) if change.before is not None else None,
        after=dict(change.after) if change.after is not None else None,
        previous_hash=last.hash if last else "",
    )
    row.hash = link_hash(row.previous_hash, hashed_members(row))
    session.add(row)
    session.flush()
