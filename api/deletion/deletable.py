"""What the kinds of objects that are deleted in steps have in common: what a request begins, the
mark with its operation and its records, and the tombstone.

    DELETE -> running?  the operation that runs already
           -> mark      deleted_at, a new generation, what is inside, operation, audit
    worker -> bury      operations settled, the object above it due, audit; the row stays

What may be deleted at all, and what is inside, is each kind's own business.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, purger, record_change
from api.auth.change import change
from api.auth.guard import demand
from api.auth.permissions import Caller
from api.db.columns import DeletableColumns
from api.deletion.mark import Deletion, demand_if_match, mark, running_delete
from api.http.idempotency import Facts
from api.http.reply import Changed, changed
from api.http.resource import ResourceBody, body_json
from api.reconcile.operations import Target, settle_operations, start_operation
from api.reconcile.queue import enqueue
from api.reconcile.status import ensure_status

Row = TypeVar("Row", bound=DeletableColumns)
Body = TypeVar("Body", bound=ResourceBody)


@dataclass(frozen=True, slots=True)
class Deletable(Generic[Row, Body]):
    """A kind of object that is deleted in steps.

    :param word: the kind, as work, operations and records name it: `topic`, and `topics.delete`.
    :param bodies: what of objects crosses HTTP.
    :param project_of: the project that an object is in.
    """

    word: str
    bodies: Callable[[Session, Sequence[Row]], list[Body]]
    project_of: Callable[[Row], str]

    def running(self, session: Session, row: Row, deletion: Deletion) -> Changed[Body] | None:
        """The answer of a delete that runs already; None if there is something to do: it does not
        run, or not by this force.

        :raises PreconditionRequiredError: no If-Match was sent, and it does not run.
        :raises PreconditionFailedError: it names another revision than the present one.
        """
        if row.deleted_at is None:
            demand_if_match(row, deletion.if_match)
        if unmarked(row, deletion):
            return None
        operation_id = running_delete(session, row.id, f"delete_{self.word}")
        return Changed(self._body(session, row), operation_id)

    def mark(
        self,
        session: Session,
        actor: Actor,
        row: Row,
        deletion: Deletion,
        inside: Callable[[], None],
    ) -> Changed[Body]:
        """Sets the mark of an object, with its operation, its work and its records.

        :param inside: does to what is in it what its mark means.
        """
        before = self._body(session, row)
        ensure_status(session, object_id=row.id, org_id=row.org_id, now=actor.now)
        mark(session, actor, row, deletion, self.word)
        inside()
        target = Target(self.word, row.id, row.org_id, self.project_of(row), row.generation)
        operation = start_operation(session, actor, f"delete_{self.word}", target)
        body = self._body(session, row)
        action = f"{self.word}s.delete"
        record_change(
            session,
            actor,
            Change(row.org_id, action, self.word, row.id, body_json(before), body_json(body)),
        )
        return Changed(body, operation.id)

    def bury(
        self, session: Session, row: Row, now: datetime, above: tuple[str, DeletableColumns] | None
    ) -> None:
        """The last finalizer is off: the row is a tombstone from now on.

        :param above: the object that it was in, and its kind; it may be empty now.
        """
        assert row.purged_at is not None
        settle_operations(session, row.id, row.generation, now)
        if above is not None and above[1].deleted_at is not None:
            kind, parent = above
            enqueue(
                session,
                kind=kind,
                object_id=parent.id,
                org_id=parent.org_id,
                generation=parent.generation,
                now=now,
            )
        last = body_json(self._body(session, row))
        record_change(
            session,
            purger(row.org_id, now),
            Change(row.org_id, f"{self.word}s.purge", self.word, row.id, before=last),
        )

    def _body(self, session: Session, row: Row) -> Body:
        return self.bodies(session, [row])[0]


def unmarked(row: DeletableColumns, deletion: Deletion) -> bool:
    """Whether what is inside an object has no mark, or none by this force."""
    return row.deleted_at is None or deletion.force_reason not in (None, row.force_reason)


def answer_delete(
    request: Request,
    caller: Caller,
    facts: Facts,
    deletion: Deletion,
    remove: Callable[[Session, Actor], Changed[Body]],
    path: str,
) -> JSONResponse:
    """Runs a delete and answers it; by force it is for those who may force."""
    if deletion.force_reason is not None:
        demand(request, caller, "objects:force", str(request.path_params["object_id"]))
    return change(facts, caller, lambda session, actor: changed(remove(session, actor), path))
