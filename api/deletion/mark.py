"""Deletion, as far as it is the same for topics, streams and projects.

A DELETE sets a mark, and workers carry it out. The mark is never taken back, and nothing can be
made inside what is marked. What is protected stays, what has children stays unless ``cascade`` says
that they go too, and one request that would delete much of an organization is refused until it
names how much (the breaker). This module refuses to know any kind of object: its callers say which
rows a request means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from fastapi import Depends, Query
from pydantic import JsonValue as Json
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.db.columns import DeletableColumns
from api.db.tables.operations import Operation
from api.http.errors import (
    ConflictError,
    InvalidRequestError,
    PreconditionRequiredError,
    Violation,
)
from api.http.resource import (
    BLANK_PATTERN,
    SEEN_SCHEMA,
    UNSEEN_PATTERN,
    etag,
    revision_wanted,
)
from api.http.routing import IfMatch
from api.reconcile.conditions import Condition
from api.reconcile.queue import enqueue
from api.reconcile.status import add_condition
from api.telemetry import redact

BREAKER_OBJECTS_MIN: Final = 5
BREAKER_SHARE: Final = 10
CHILDREN_SHOWN_MAX: Final = 100
REASON_CHARACTERS_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class Deletion:
    """How an object shall go. ``force_reason`` gives up what partitions that cannot answer hold."""

    if_match: str | None = None
    cascade: bool = False
    force_reason: str | None = None
    confirmed: int = 0


def deletion_of(
    if_match: IfMatch = None,
    cascade: Annotated[bool, Query(description="Also delete everything inside.")] = False,
    force: Annotated[
        bool,
        Query(description="Delete even if partitions do not respond. Owners only; needs a reason."),
    ] = False,
    reason: Annotated[
        str,
        Query(
            max_length=REASON_CHARACTERS_MAX,
            description="Reason for the forced deletion; it is audited.",
            json_schema_extra={"pattern": SEEN_SCHEMA},
        ),
    ] = "",
    confirm_deletions: Annotated[
        int, Query(ge=0, description="Number of topics to delete, if DELETION_BREAKER requires it.")
    ] = 0,
) -> Deletion:
    """The options of a request."""
    if force != bool(BLANK_PATTERN.sub("", reason)):
        fault = "force needs a reason" if force else "a reason is for force=true only"
        raise InvalidRequestError(
            f"{fault[0].upper()}{fault[1:]}.",
            hint="Send force=true&reason=TICKET-1:+disk+lost, or neither.",
            violations=[Violation("?reason", "FORCE_AND_REASON", fault)],
        )
    if UNSEEN_PATTERN.search(reason):
        raise InvalidRequestError(
            "The reason holds characters that cannot be printed.",
            violations=[Violation("?reason", "BAD_FORMAT", "one line of printable text")],
        )
    return Deletion(if_match, cascade, redact(reason.strip()) or None, confirm_deletions)


DeletionOf = Annotated[Deletion, Depends(deletion_of)]


def demand_if_match(row: DeletableColumns, if_match: str | None) -> None:
    """What is deleted was looked at first.

    :raises PreconditionRequiredError: no If-Match was sent.
    :raises PreconditionFailedError: it names another revision than the present one.
    """
    if if_match is None:
        raise PreconditionRequiredError(
            f"Deleting {row.name} deletes all its data, so it requires If-Match.",
            hint=f'Read it, then send If-Match: "{etag(row.revision)}".',
        )
    revision_wanted(if_match, row.revision)


def refuse_deleting(row: DeletableColumns, kind: str) -> None:
    """Nothing changes, and nothing is made, in what is being deleted.

    :raises ConflictError: BEING_DELETED.
    """
    if row.deleted_at is not None:
        raise ConflictError(
            f"The {kind} {row.name} is being deleted.",
            code="BEING_DELETED",
            hint=f"`headrace explain {row.id}` shows its progress. The name is free after the "
            "deletion.",
            existing_id=row.id,
        )


def refuse_children(row: DeletableColumns, kind: str, children: Sequence[Json]) -> None:
    """What still holds something goes only together with it.

    :raises ConflictError: CHILDREN_EXIST, with the first hundred of them.
    """
    if children:
        held = "1 object" if len(children) == 1 else f"{len(children)} objects"
        raise ConflictError(
            f"The {kind} {row.name} contains {held}.",
            code="CHILDREN_EXIST",
            hint="Delete them first, or send cascade=true to delete them too, with all their data.",
            children=list(children[:CHILDREN_SHOWN_MAX]),
            children_count=len(children),
        )


def child(kind: str, row: DeletableColumns) -> dict[str, Json]:
    """How a child is named in a refusal."""
    return {"kind": kind, "id": row.id, "name": row.name}


def breaker_limit(objects: int) -> int:
    """How many of an organization's topics may be on their way out without a confirmation."""
    return max(BREAKER_OBJECTS_MIN, objects // BREAKER_SHARE)


def mark(
    session: Session, actor: Actor, row: DeletableColumns, deletion: Deletion, kind: str
) -> None:
    """Sets the mark: a new generation and a new revision, work, and the condition Deleting."""
    if row.deleted_at is None:
        row.deleted_at = actor.now
        row.deleted_by = actor.caller.principal_id
    row.deletion_confirmed = row.deletion_confirmed or deletion.confirmed > 0
    row.force_reason = deletion.force_reason or row.force_reason
    row.updated_at = actor.now
    row.generation += 1
    row.revision += 1
    session.flush()
    enqueue(
        session,
        kind=kind,
        object_id=row.id,
        org_id=row.org_id,
        generation=row.generation,
        now=actor.now,
    )
    add_condition(
        session,
        row.id,
        Condition("Deleting", "True", "Requested", "waiting for a worker"),
        row.generation,
        actor.now,
    )


def running_delete(session: Session, object_id: str, kind: str) -> str | None:
    """The receipt of the delete that runs."""
    query = select(Operation.id).where(Operation.target_id == object_id, Operation.kind == kind)
    return session.scalars(query.order_by(Operation.id.desc()).limit(1)).first()


def take_off(row: DeletableColumns, finalizer: str, now: datetime) -> bool:
    """Takes a finalizer off; once none is left the object is gone, and its name is free."""
    assert row.deleted_at is not None
    row.finalizers = [each for each in row.finalizers if each != finalizer]
    if not row.finalizers:
        row.purged_at = now
    return row.purged_at is not None
