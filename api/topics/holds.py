"""What legal holds mean for their topic: nothing that is held is deleted, and they are looked at
again when the topic changed."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.db.database import Database
from api.db.tables.holds import KEEPING, LegalHold
from api.db.tables.topics import Topic
from api.http.errors import ConflictError
from api.reconcile.queue import enqueue

KIND: Final = "hold"
NAMED_MAX: Final = 100


def refuse_held(session: Session, topics: Sequence[Topic]) -> None:
    """Refuses to delete topics under a legal hold, for every caller.

    :raises ConflictError: TOPIC_HELD, with the first hundred holds.
    """
    query = select(LegalHold).where(
        LegalHold.topic_id.in_([each.id for each in topics]), LegalHold.state.in_(KEEPING)
    )
    rows = session.scalars(query.order_by(LegalHold.id)).all()
    if rows:
        names = {each.id: each.name for each in topics}
        first = rows[0]
        more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
        raise ConflictError(
            f"The topic {names[first.topic_id]} is under the legal hold {first.id} "
            f"(case {first.case_id}){more}.",
            code="TOPIC_HELD",
            hint="Release the holds first, if their cases permit it. force=true does not override "
            "a legal hold.",
            holds=[row.id for row in rows[:NAMED_MAX]],
        )


def wake_holds(database: Database, topic_id: str) -> None:
    """The topic was sent to the cluster again. If it has more partitions now, a hold on all of them
    is in force only once these have it too: it is reconciled now, not at the next resync."""
    active = select(LegalHold).where(
        LegalHold.topic_id == topic_id,
        LegalHold.partition.is_(None),
        LegalHold.release_wished_at.is_(None),
    )
    with database.read() as session:
        if session.scalars(active.limit(1)).first() is None:
            return
    with database.write() as session:
        now = database.now(session)
        for row in session.scalars(active.order_by(LegalHold.id)).all():
            enqueue(
                session,
                kind=KIND,
                object_id=row.id,
                org_id=row.org_id,
                generation=row.revision,
                now=now,
            )
