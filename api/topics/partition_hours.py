"""When a topic had how many partitions: what partition time is billed from.

A span is written in the transaction that makes, grows or deletes the topic, so that the bill can be
drawn from requests alone, whatever the nodes were doing. It begins when the request was stored and
ends when the deletion was requested: the time that the removal takes costs nothing.
"""

from datetime import datetime

from sqlalchemy import update
from sqlalchemy.orm import Session

from api.db.tables.topics import Topic, TopicSpan
from api.topics.spec import effective


def begin_span(session: Session, row: Topic, now: datetime) -> None:
    """The topic has its present number of partitions from now on; what it had before ends."""
    end_span(session, row.id, now)
    session.add(
        TopicSpan(
            topic_id=row.id,
            generation=row.generation,
            org_id=row.org_id,
            project_id=row.project_id,
            cluster_id=row.cluster_id,
            partitions=effective(row.spec).partitions,
            started_at=now,
        )
    )
    session.flush()


def end_span(session: Session, topic_id: str, now: datetime) -> None:
    """Whatever runs ends now."""
    session.execute(
        update(TopicSpan)
        .where(TopicSpan.topic_id == topic_id, TopicSpan.ended_at.is_(None))
        .values(ended_at=now)
    )
