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

from api.auth.audit_chain import Actor, Change, purger, record_change
from api.auth.scope import of_organization
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.deletion.mark import (
    Deletion,
    breaker_limit,
    demand_if_match,
    locked,
    mark,
    running_delete,
    take_off,
)
from api.http.errors import ConflictError
from api.http.reply import Changed
from api.http.resource import body_json
from api.reconcile.operations import PURGE, Target, settle_operations, start_operation
from api.reconcile.queue import enqueue
from api.topics.change_plan import loss_of
from api.topics.holds import refuse_held
from api.topics.management import refuse_left_alone
from api.topics.partition_hours import end_span
from api.topics.schemas import TopicBody
from api.topics.service import topic_bodies
from api.topics.spec import effective

FINALIZER: Final = "data-plane"
DELETE: Final = "delete_topic"


def delete_topic(
    session: Session, actor: Actor, *, topic_id: str, deletion: Deletion
) -> Changed[TopicBody]:
    """Marks a topic. Marking it again changes nothing, unless it is by force now."""
    row = locked(session, Topic, topic_id)
    if row.deleted_at is not None:
        if deletion.force_reason in (None, row.force_reason):
            return Changed(_body(session, row), running_delete(session, row.id, DELETE))
        return mark_topic(session, actor, row, deletion)
    demand_if_match(row, deletion.if_match)
    check_topics(session, row.org_id, [row], deletion)
    return replace(mark_topic(session, actor, row, deletion), plan=loss_of(session, [row]))


def check_topics(session: Session, org_id: str, rows: Sequence[Topic], deletion: Deletion) -> None:
    """Whether topics may be marked together: none is held, left alone or protected, and they are
    not too many.

    :raises ConflictError: TOPIC_HELD names the holds, TOPIC_PAUSED, TOPIC_UNMANAGED and
        DELETION_PROTECTED the topics, and DELETION_BREAKER says how many go.
    """
    refuse_held(session, rows)
    refuse_left_alone(rows, "deleted")
    protected = [row for row in rows if effective(row.spec).deletion_protection]
    if protected:
        names = ", ".join(row.name for row in protected[:10])
        raise ConflictError(
            f"Protected against deletion: {names}.",
            code="DELETION_PROTECTED",
            hint="Set spec.deletion_protection to false first, if it really shall go.",
            protected=[row.id for row in protected[:100]],
        )
    going, objects = deletion_counts(session, org_id)
    going += len(rows)
    limit = breaker_limit(objects)
    if going > limit and deletion.confirmed != going:
        raise ConflictError(
            f"{going} of the {objects} topics of the organization would be on their way out; "
            f"without a confirmation {limit} may be.",
            code="DELETION_BREAKER",
            hint=f"If that is what you want, send confirm_deletions={going} too.",
            deletions=going,
            limit=limit,
        )


def mark_topic(
    session: Session, actor: Actor, row: Topic, deletion: Deletion
) -> Changed[TopicBody]:
    """Sets the mark of one topic, with its operation, its work and its records."""
    before = _body(session, row)
    mark(session, actor, row, deletion, "topic")
    end_span(session, row.id, actor.now)
    target = Target("topic", row.id, row.org_id, row.project_id, row.generation)
    operation = start_operation(session, actor, DELETE, target)
    body = _body(session, row)
    record_change(
        session,
        actor,
        Change(row.org_id, "topics.delete", "topic", row.id, body_json(before), body_json(body)),
    )
    return Changed(body, operation.id)


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
    settle_operations(session, row.id, row.generation, now)
    # What should have gone of it went with it.
    settle_operations(session, row.id, row.generation, now, kind=PURGE)
    stream = session.get_one(Stream, row.stream_id)
    if stream.deleted_at is not None:
        enqueue(
            session,
            kind="stream",
            object_id=stream.id,
            org_id=stream.org_id,
            generation=stream.generation,
            now=now,
        )
    last = body_json(_body(session, row))
    record_change(
        session,
        purger(row.org_id, now),
        Change(row.org_id, "topics.purge", "topic", row.id, before=last),
    )


def _body(session: Session, row: Topic) -> TopicBody:
    return topic_bodies(session, [row])[0]
