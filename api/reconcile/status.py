"""The status of an object: made with it, read with it, written only by a pass that holds its
lease."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.database import CHANGED
from api.db.tables.work import ResourceStatus
from api.http.resource import ConditionBody
from api.reconcile.conditions import Condition, differs, merge, unknown


def create_status(
    session: Session, *, object_id: str, org_id: str, types: Iterable[str], now: datetime
) -> None:
    """The status of a new object: every condition Unknown, nothing observed."""
    session.add(
        ResourceStatus(
            object_id=object_id,
            org_id=org_id,
            observed_generation=0,
            conditions=unknown(types, 0, now),
            detail={},
            updated_at=now,
        )
    )


def ensure_status(session: Session, *, object_id: str, org_id: str, now: datetime) -> None:
    """The status of an object that needed none until now."""
    if session.get(ResourceStatus, object_id) is None:
        create_status(session, object_id=object_id, org_id=org_id, types=(), now=now)
        session.flush()


def add_condition(
    session: Session, object_id: str, condition: Condition, generation: int, now: datetime
) -> None:
    """Puts one condition beside those that an object has, in the transaction that caused it."""
    row = session.get_one(ResourceStatus, object_id, with_for_update=True)
    row.conditions = merge(row.conditions, [condition], generation, now)
    row.updated_at = now
    _publish(session, object_id)


def statuses(session: Session, object_ids: Sequence[str]) -> Mapping[str, ResourceStatus]:
    """The statuses of several objects by id."""
    rows = session.scalars(select(ResourceStatus).where(ResourceStatus.object_id.in_(object_ids)))
    return {row.object_id: row for row in rows}


def write_status(
    session: Session,
    object_id: str,
    *,
    observed_generation: int,
    conditions: list[Json],
    detail: dict[str, Json],
    now: datetime,
) -> bool:
    """Stores what a pass found; answers whether that was news."""
    row = session.get(ResourceStatus, object_id)
    if row is None:
        return False
    before: dict[str, Json] = {
        "conditions": row.conditions,
        "detail": row.detail,
        "observed_generation": row.observed_generation,
    }
    after: dict[str, Json] = {
        "conditions": conditions,
        "detail": detail,
        "observed_generation": observed_generation,
    }
    if not differs(before, after):
        return False
    row.observed_generation = observed_generation
    row.conditions = conditions
    row.detail = detail
    row.updated_at = now
    _publish(session, object_id)
    return True


def plain_status(status: ResourceStatus | None) -> dict[str, object]:
    """The member of a body whose object needs no status until it shall go."""
    if status is None:
        return {}
    return {
        "status": {
            "conditions": condition_bodies(status),
            "observed_generation": max(1, status.observed_generation),
        }
    }


def condition_bodies(status: ResourceStatus | None) -> list[ConditionBody]:
    """The conditions as they are shown."""
    if status is None:
        return []
    return [ConditionBody.model_validate(item) for item in status.conditions]


def _publish(session: Session, object_id: str) -> None:
    """Wakes those who wait for the object, when this transaction commits."""
    session.info.setdefault(CHANGED, set()).add(object_id)
