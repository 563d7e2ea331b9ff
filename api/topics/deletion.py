"""The rules of deleting topics: the mark, the breaker, and the tombstone.

The order is the node's: writes are refused, every partition is sealed, its last metering window is
published, and only then is the topic gone there. The row stays as the tombstone, so that a report
of that time still has its names, and what was last seen of its partitions stays with it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.auth.scope import of_organization
from api.db.locks import locked
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.deletion.deletable import Deletable
from api.deletion.mark import Deletion, breaker_limit, take_off
from api.http.errors import ConflictError
from api.http.reply import Changed
from api.reconcile.operations import PURGE, settle_operations
from api.topics.holds import refuse_held
from api.topics.management import refuse_unreconciled
from api.topics.partition_hours import end_span
from api.topics.retention_plan import loss_of
from api.topics.schemas import TopicBody
from api.topics.service import topic_bodies
from api.topics.spec import effective

FINALIZER: Final = "data-plane"
TOPIC: Final[Deletable[Topic, TopicBody]] = Deletable(
    "topic", topic_bodies, lambda row: row.project_id
)


def delete_topic(
    session: Session, actor: Actor, *, topic_id: str, deletion: Deletion
) -> Changed[TopicBody]:
    """Marks a topic. Marking it again changes nothing, unless it is by force now."""
    row = locked(session, Topic, topic_id)
    running = TOPIC.running(session, row, deletion)
    if running is not None:
        return running
    if row.deleted_at is not None:
        return mark_topic(session, actor, row, deletion)
    check_topics(session, row.org_id, [row], deletion)
    return replace(mark_topic(session, actor, row, deletion), plan=loss_of(session, [row]))


def check_topics(session: Session, org_id: str, rows: Sequence[Topic], deletion: Deletion) -> None:
    """Whether topics may be marked together: none is held, paused, unmanaged or protected, and they
    are not too many.

    :raises ConflictError: TOPIC_HELD names the holds, TOPIC_PAUSED, TOPIC_UNMANAGED and
        DELETION_PROTECTED the topics, and DELETION_BREAKER says how many go.
    """
    refuse_held(session, rows)
    refuse_unreconciled(rows, "deleted")
    protected = [row for row in rows if effective(row.spec).deletion_protection]
    if protected:
        names = ", ".join(row.name for row in protected[:10])
        raise ConflictError(
            f"Protected against deletion: {names}.",
            code="DELETION_PROTECTED",
            hint="To delete it, set spec.deletion_protection to false first.",
            protected=[row.id for row in protected[:100]],
        )
    going, objects = deletion_counts(session, org_id)
    going += len(rows)
    limit = breaker_limit(objects)
    if going > limit and deletion.confirmed != going:
        raise ConflictError(
            f"{going} of the {objects} topics of the organization would be in deletion; "
            f"at most {limit} are permitted without confirmation.",
            code="DELETION_BREAKER",
            hint=f"To confirm, send confirm_deletions={going} too.",
            deletions=going,
            limit=limit,
        )


def mark_topic(
    session: Session, actor: Actor, row: Topic, deletion: Deletion
) -> Changed[TopicBody]:
    """Sets the mark of one topic, with its operation, its work and its records."""
    return TOPIC.mark(session, actor, row, deletion, lambda: end_span(session, row.id, actor.now))


def deletion_counts(
    session: Session, org_id: str, *, unconfirmed_only: bool = False
) -> tuple[int, int]:
    """How many topics of an organization are on their way out, and how many there are."""
    here = of_organization(select(func.count()).select_from(Topic), Topic, org_id)
    here = here.where(Topic.purged_at.is_(None))
    going = here.where(Topic.deleted_at.is_not(None))
    if unconfirmed_only:
        going = going.where(Topic.deletion_confirmed.is_(False))
    return session.scalar(going) or 0, session.scalar(here) or 0


def bury_topic(session: Session, topic_id: str, now: datetime) -> None:
    """The cluster holds nothing of the topic any more: the row becomes its tombstone."""
    row = locked(session, Topic, topic_id)
    if row.purged_at is not None or not take_off(row, FINALIZER, now):
        return
    # What should have gone of it went with it.
    settle_operations(session, row.id, row.generation, now, kind=PURGE)
    TOPIC.bury(session, row, now, ("stream", session.get_one(Stream, row.stream_id)))
