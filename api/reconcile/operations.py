"""Operations, from the change that starts one to the pass that settles it.

A change makes an operation in its own transaction. It has SUCCEEDED once a pass saw its generation
Ready, is SUPERSEDED once a newer generation replaces an unfinished one, and has FAILED at its
deadline or when the work itself is a job that failed. None of these is ever taken back. A purge is
no state that a newer one could replace: it is carried out or refused, whatever is requested after
it, and only that settles it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.db.identifiers import new_id
from api.db.tables.operations import Operation

DEADLINE: Final = timedelta(minutes=10)
PURGE: Final = "delete_topic_records"


@dataclass(frozen=True, slots=True)
class Target:
    """What an operation is about."""

    kind: str
    object_id: str
    org_id: str
    project_id: str | None
    generation: int


def start_operation(
    session: Session, actor: Actor, kind: str, target: Target, deadline: timedelta = DEADLINE
) -> Operation:
    """A receipt for a change; older unfinished ones of the same object are superseded, but for
    purges."""
    unfinished = select(Operation).where(
        Operation.target_id == target.object_id,
        Operation.kind != PURGE,
        Operation.succeeded_at.is_(None),
        Operation.failed_at.is_(None),
        Operation.superseded_at.is_(None),
    )
    for older in session.scalars(unfinished):
        older.superseded_at = actor.now
    operation = Operation(
        id=new_id("op"),
        org_id=target.org_id,
        project_id=target.project_id,
        kind=kind,
        target_kind=target.kind,
        target_id=target.object_id,
        target_generation=target.generation,
        created_at=actor.now,
        created_by=actor.caller.principal_id,
        deadline_at=actor.now + deadline,
    )
    session.add(operation)
    return operation


def settle_operations(
    session: Session, object_id: str, generation: int, now: datetime, *, kind: str = ""
) -> None:
    """Marks what a Ready generation fulfils: all but purges, or only those of a kind."""
    of_kind = Operation.kind == kind if kind else Operation.kind != PURGE
    for operation in session.scalars(
        select(Operation).where(
            Operation.target_id == object_id,
            of_kind,
            Operation.target_generation <= generation,
            Operation.succeeded_at.is_(None),
            Operation.failed_at.is_(None),
            Operation.superseded_at.is_(None),
            Operation.deadline_at > now,
        )
    ):
        operation.succeeded_at = now


def fail_operations(
    session: Session,
    object_id: str,
    error: dict[str, Json],
    now: datetime,
    *,
    kind: str = "",
    generation: int | None = None,
) -> None:
    """Marks the unfinished operations of an object as failed; only those of a kind, and up to a
    generation, if these are named. What failed before keeps its own error."""
    only = (Operation.kind == kind,) if kind else ()
    if generation is not None:
        only = (*only, Operation.target_generation <= generation)
    for operation in session.scalars(
        select(Operation).where(
            Operation.target_id == object_id,
            Operation.succeeded_at.is_(None),
            Operation.failed_at.is_(None),
            Operation.superseded_at.is_(None),
            *only,
        )
    ):
        operation.failed_at = now
        operation.error = error
