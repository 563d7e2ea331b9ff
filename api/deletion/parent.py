"""Objects that hold others and shall go: once nothing is in them any more, they are gone.

What is inside has been marked with them and goes by itself; this only looks whether it has. It
needs no node, so that a parent never hangs on anything but its children.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from sqlalchemy.orm import Session

from api.db.columns import DeletableColumns
from api.db.database import Database
from api.db.locks import locked
from api.node.failure import FailureKind, NodeFailure
from api.reconcile.backoff import poll_after
from api.reconcile.conditions import Condition
from api.reconcile.outcome import Converged, Observation, Outcome, RequeueAfter
from api.reconcile.queue import Claim, holds

NAMED_MAX: Final = 5

Row = TypeVar("Row", bound=DeletableColumns)


@dataclass(frozen=True, slots=True)
class Parent(Generic[Row]):
    """A kind of object that holds others.

    :param inside: what is not gone yet, in words.
    :param bury: makes the row, once it is empty, its tombstone.
    """

    model: type[Row]
    inside: Callable[[Session, Row], list[str]]
    bury: Callable[[Session, str, datetime], None]


class ParentReconciler(Generic[Row]):
    """Looks at one object that shall go once it is empty."""

    def __init__(self, database: Database, parent: Parent[Row]) -> None:
        self._database = database
        self._parent = parent

    def generation(self, object_id: str) -> int:
        """The generation a failed pass has looked at."""
        with self._database.read() as session:
            return session.get_one(self._parent.model, object_id).generation

    def reconcile(self, item: Claim) -> Outcome:
        """One pass."""
        with self._database.read() as session:
            row = session.get_one(self._parent.model, item.object_id)
            if row.purged_at is not None or row.deleted_at is None:
                return Converged(Observation(row.generation), final=True)
            inside = self._parent.inside(session, row)
            age = self._database.now(session) - row.deleted_at
        if inside:
            message = _waiting_for(inside)
            condition = Condition("Deleting", "True", "ChildrenRemain", message)
            return RequeueAfter(Observation(row.generation, (condition,)), poll_after(age), message)
        with self._database.write() as session:
            locked(session, self._parent.model, item.object_id)
            if not holds(session, item, self._database.now(session)):
                raise NodeFailure(
                    FailureKind.CONFLICT, "LEASE_LOST", "Another worker completes the deletion."
                )
            self._parent.bury(session, item.object_id, self._database.now(session))
        condition = Condition("Deleting", "False", "Deleted", "it contains no objects")
        return Converged(Observation(row.generation, (condition,), ready=True), final=True)


def _waiting_for(inside: Sequence[str]) -> str:
    names = ", ".join(inside[:NAMED_MAX])
    more = f" and {len(inside) - NAMED_MAX} more" if len(inside) > NAMED_MAX else ""
    return f"waits until these are gone: {names}{more}"
