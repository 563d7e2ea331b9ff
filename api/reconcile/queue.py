"""The queue of due objects in SQL: enqueue, claim with a lease, renew, finish.

The same lease columns serve both databases. On SQLite correctness comes from BEGIN IMMEDIATE and
the lease token; on PostgreSQL the claim also skips rows that another worker is claiming. No
transaction is open while the work is done: a claim commits, and what its holder does later counts
only while the claim is held, which one comparison decides: see ``_held``.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from api.db.database import WAKE
from api.db.tables.work import Work

LEASE: Final = timedelta(seconds=30)
USER_PRIORITY: Final = 10


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease on an object. Every effect of the holder carries ``lease_token``."""

    kind: str
    object_id: str
    org_id: str
    lease_owner: str
    lease_token: int
    attempts: int
    requested_generation: int


def enqueue(
    session: Session,
    *,
    kind: str,
    object_id: str,
    org_id: str,
    generation: int,
    now: datetime,
    priority: int = USER_PRIORITY,
) -> None:
    """Makes an object due now, in the transaction that changed it. A new generation forgets the
    failures of the last one.

    The row is locked: a worker that finishes at this moment would otherwise put off what was just
    asked for. Callers do this before they touch the status and the operations of the object, which
    is the order in which workers lock; the object's own row comes before all of them.
    """
    session.flush()
    row = session.get(Work, (kind, object_id), with_for_update=True)
    if row is None:
        session.add(
            Work(
                kind=kind,
                object_id=object_id,
                org_id=org_id,
                priority=priority,
                run_after=now,
                requested_generation=generation,
                enqueued_at=now,
            )
        )
    else:
        if generation > row.requested_generation:
            row.attempts = 0
        row.requested_generation = max(generation, row.requested_generation)
        row.run_after = min(row.run_after, now)
        row.priority = max(row.priority, priority)
        row.dirty = True
        row.enqueued_at = now
    session.info[WAKE] = True


def claim(
    session: Session,
    *,
    kinds: Sequence[str],
    owner: str,
    now: datetime,
    limit: int = 1,
    in_flight_max: int | None = None,
) -> list[Claim]:
    """Leases the most urgent due objects that no worker holds.

    :param in_flight_max: an organization that holds so many leases of these kinds has to wait, so
        that one with much to do does not keep every worker from the others.
    """
    due = (
        select(Work)
        .where(
            Work.kind.in_(kinds),
            Work.run_after <= now,
            or_(Work.lease_until.is_(None), Work.lease_until <= now),
        )
        .where(*([] if in_flight_max is None else [_may_claim(kinds, now, in_flight_max)]))
        .order_by(Work.priority.desc(), Work.run_after)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    claims = []
    for row in session.scalars(due).all():
        row.lease_owner = owner
        row.lease_token += 1
        row.lease_until = now + LEASE
        row.dirty = False
        claims.append(
            Claim(
                row.kind,
                row.object_id,
                row.org_id,
                owner,
                row.lease_token,
                row.attempts,
                row.requested_generation,
            )
        )
    return claims


def _may_claim(kinds: Sequence[str], now: datetime, in_flight_max: int) -> ColumnElement[bool]:
    busy = (
        select(Work.org_id)
        .where(Work.lease_until > now, Work.kind.in_(kinds))
        .group_by(Work.org_id)
        .having(func.count() >= in_flight_max)
    )
    return Work.org_id.not_in(busy)


def renew(session: Session, item: Claim, now: datetime) -> bool:
    """Extends a lease; False if the claim is no longer held."""
    row = _held(session, item, now)
    if row is None:
        return False
    row.lease_until = now + LEASE
    return True


def holds(session: Session, item: Claim, now: datetime) -> bool:
    """Whether the claim is still held; if so, until this transaction ends. A pass asks this in
    every transaction in which it writes before it is finished."""
    return _held(session, item, now) is not None


def finish(
    session: Session,
    item: Claim,
    *,
    now: datetime,
    after: timedelta,
    attempts: int,
    error: str | None,
    final: bool = False,
) -> bool:
    """Gives a lease back. False: it was lost, and the caller must discard what it found.

    The object is due again after ``after``, or at once if it changed meanwhile.

    :param final: remove the object from the queue, unless it changed meanwhile.
    """
    row = _held(session, item, now)
    if row is None:
        return False
    changed = row.dirty
    if final and not changed:
        session.delete(row)
        return True
    row.lease_owner = None
    row.lease_until = None
    row.attempts = 0 if changed else attempts
    row.run_after = now if changed else now + after
    row.priority = row.priority if changed else 0
    row.last_error = error[:1024] if error else None
    if changed:
        session.info[WAKE] = True
    return True


def spread_all(session: Session, now: datetime, spread: timedelta, dice: random.Random) -> None:
    """Makes every object due within ``spread``: what a start does, to find what it missed."""
    later = select(Work).where(Work.run_after > now).with_for_update(skip_locked=True)
    for row in session.scalars(later):
        row.run_after = min(row.run_after, now + spread * dice.random())


def _held(session: Session, item: Claim, now: datetime) -> Work | None:
    """The object's row, locked, if this very claim is still held: the row has its token and its
    owner, and its time is not over.

    A finished claim leaves its token in the row, but no owner. A row that was removed and made
    again counts its tokens from the beginning, but has another owner. Without the time, a worker
    that was stopped for longer than its lease would take it again.
    """
    row = session.get(Work, (item.kind, item.object_id), with_for_update=True)
    if row is None or row.lease_until is None:
        return None
    held = (row.lease_owner, row.lease_token) == (item.lease_owner, item.lease_token)
    return row if held and row.lease_until > now else None
