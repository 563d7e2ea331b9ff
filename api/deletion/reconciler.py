"""Streams and projects that shall go: once nothing is in them any more, they are gone.

What is inside has been marked with them and goes by itself; this only looks whether it has. It
needs no node, so that a parent never hangs on anything but its children.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy.orm import Session

from api.db.database import Database
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.deletion.mark import locked
from api.node.failure import FailureKind, PassFailure
from api.projects.deletion import bury_project, keys_known, streams_of
from api.reconcile.backoff import poll_after
from api.reconcile.conditions import Condition
from api.reconcile.outcome import Again, Found, Outcome, Settled
from api.reconcile.queue import Claim, holds
from api.streams.deletion import bury_stream, topics_of

STREAM: Final = "stream"
PROJECT: Final = "project"
NAMED_MAX: Final = 5


class ParentReconciler:
    """Looks at one stream or project that shall go."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def generation(self, object_id: str) -> int:
        """The generation a failed pass has looked at."""
        with self._database.read() as session:
            return _row(session, object_id).generation

    def reconcile(self, item: Claim) -> Outcome:
        """One pass."""
        with self._database.read() as session:
            row = _row(session, item.object_id)
            if row.purged_at is not None or row.deleted_at is None:
                return Settled(Found(row.generation), final=True)
            inside = _inside(session, row)
            age = self._database.now(session) - row.deleted_at
        if inside:
            message = _waiting_for(inside)
            condition = Condition("Deleting", "True", "ChildrenRemain", message)
            return Again(Found(row.generation, (condition,)), poll_after(age), message)
        with self._database.write() as session:
            locked(session, type(row), item.object_id)
            if not holds(session, item, self._database.now(session)):
                raise PassFailure(FailureKind.CONFLICT, "LEASE_LOST", "Another worker buries it.")
            bury = bury_stream if item.kind == STREAM else bury_project
            bury(session, item.object_id, self._database.now(session))
        condition = Condition("Deleting", "False", "Deleted", "nothing is left in it")
        return Settled(Found(row.generation, (condition,), ready=True), final=True)


def _row(session: Session, object_id: str) -> Stream | Project:
    stream = session.get(Stream, object_id)
    return stream if stream is not None else session.get_one(Project, object_id)


def _inside(session: Session, row: Stream | Project) -> list[str]:
    """What is not gone yet, in words."""
    if isinstance(row, Stream):
        return [f"topic {each.name}" for each in topics_of(session, row)]
    streams = [f"stream {each.name}" for each in streams_of(session, row)]
    return streams + [f"key {each.name}" for each in keys_known(session, row)]


def _waiting_for(inside: Sequence[str]) -> str:
    names = ", ".join(inside[:NAMED_MAX])
    more = f" and {len(inside) - NAMED_MAX} more" if len(inside) > NAMED_MAX else ""
    return f"waits until these are gone: {names}{more}"
