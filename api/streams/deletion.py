"""The rules of deleting streams: empty, or with everything in it in one transaction."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth.audit_chain import Actor
from api.db.locks import locked
from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.deletion.deletable import Deletable, unmarked
from api.deletion.mark import Deletion, child, refuse_children, take_off
from api.http.reply import Changed
from api.streams.schemas import StreamBody
from api.streams.service import stream_bodies
from api.topics.deletion import check_topics, mark_topic
from api.topics.retention_plan import loss_of

FINALIZER: Final = "topics"
STREAM: Final[Deletable[Stream, StreamBody]] = Deletable(
    "stream", stream_bodies, lambda row: row.project_id
)


def delete_stream(
    session: Session, actor: Actor, *, stream_id: str, deletion: Deletion
) -> Changed[StreamBody]:
    """Marks a stream, and with ``cascade`` its topics."""
    row = locked(session, Stream, stream_id)
    running = STREAM.running(session, row, deletion)
    if running is not None:
        return running
    staying = [each for each in topics_of(session, row, held=True) if each.deleted_at is None]
    if not deletion.cascade:
        refuse_children(row, "stream", [child("topic", each) for each in staying])
    check_topics(session, row.org_id, staying, deletion)
    return replace(mark_stream(session, actor, row, deletion), plan=loss_of(session, staying))


def mark_stream(
    session: Session, actor: Actor, row: Stream, deletion: Deletion
) -> Changed[StreamBody]:
    """Sets the mark of a stream and of every topic in it that has none, or none by this force."""

    def mark_topics() -> None:
        for topic in topics_of(session, row, held=True):
            if unmarked(topic, deletion):
                mark_topic(session, actor, topic, deletion)

    return STREAM.mark(session, actor, row, deletion, mark_topics)


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
    STREAM.bury(session, row, now, ("project", session.get_one(Project, row.project_id)))
