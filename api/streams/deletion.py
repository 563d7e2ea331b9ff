"""The rules of deleting streams: empty, or with everything in it in one transaction."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor, Change, purger, record_change
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.deletion.mark import (
    Deletion,
    child,
    demand_if_match,
    locked,
    mark,
    refuse_children,
    running_delete,
    take_off,
)
from api.http.reply import Changed
from api.http.resource import body_json
from api.reconcile.operations import Target, settle_operations, start_operation
from api.reconcile.queue import enqueue
from api.reconcile.status import ensure_status
from api.streams.schemas import StreamBody
from api.streams.service import stream_bodies
from api.topics.change_plan import loss_of
from api.topics.deletion import check_topics, mark_topic

FINALIZER: Final = "topics"
DELETE: Final = "delete_stream"


def delete_stream(
    session: Session, actor: Actor, *, stream_id: str, deletion: Deletion
) -> Changed[StreamBody]:
    """Marks a stream, and with ``cascade`` its topics."""
    row = locked(session, Stream, stream_id)
    if row.deleted_at is not None and deletion.force_reason in (None, row.force_reason):
        return Changed(_body(session, row), running_delete(session, row.id, DELETE))
    if row.deleted_at is None:
        demand_if_match(row, deletion.if_match)
    staying = [each for each in topics_of(session, row, held=True) if each.deleted_at is None]
    if not deletion.cascade:
        refuse_children(row, "stream", [child("topic", each) for each in staying])
    check_topics(session, row.org_id, staying, deletion)
    return replace(mark_stream(session, actor, row, deletion), plan=loss_of(session, staying))


def mark_stream(
    session: Session, actor: Actor, row: Stream, deletion: Deletion
) -> Changed[StreamBody]:
    """Sets the mark of a stream and of every topic in it that has none, or none by this force."""
    before = _body(session, row)
    ensure_status(session, object_id=row.id, org_id=row.org_id, now=actor.now)
    mark(session, actor, row, deletion, "stream")
    for topic in topics_of(session, row, held=True):
        if topic.deleted_at is None or deletion.force_reason not in (None, topic.force_reason):
            mark_topic(session, actor, topic, deletion)
    target = Target("stream", row.id, row.org_id, row.project_id, row.generation)
    operation = start_operation(session, actor, DELETE, target)
    body = _body(session, row)
    record_change(
        session,
        actor,
        Change(row.org_id, "streams.delete", "stream", row.id, body_json(before), body_json(body)),
    )
    return Changed(body, operation.id)


def topics_of(session: Session, row: Stream, *, held: bool = False) -> list[Topic]:
    """The topics that are not gone, in order of creation; ``held`` until the transaction ends."""
    query = select(Topic).where(Topic.stream_id == row.id, Topic.purged_at.is_(None))
    query = query.order_by(Topic.id)
    if held:
        query = query.with_for_update().execution_options(populate_existing=True)
    return list(session.scalars(query))


def bury_stream(session: Session, stream_id: str, now: datetime) -> None:
    """Nothing is in the stream any more: the row becomes its tombstone."""
    row = locked(session, Stream, stream_id)
    if row.purged_at is not None or topics_of(session, row) or not take_off(row, FINALIZER, now):
        return
    settle_operations(session, row.id, row.generation, now)
    project = session.get_one(Project, row.project_id)
    if project.deleted_at is not None:
        enqueue(
            session,
            kind="project",
            object_id=project.id,
            org_id=project.org_id,
            generation=project.generation,
            now=now,
        )
    last = body_json(_body(session, row))
    record_change(
        session,
        purger(row.org_id, now),
        Change(row.org_id, "streams.purge", "stream", row.id, before=last),
    )


def _body(session: Session, row: Stream) -> StreamBody:
    return stream_bodies(session, [row])[0]
