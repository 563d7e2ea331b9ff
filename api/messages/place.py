"""Where a topic's messages are, and by which name its nodes know it."""

from sqlalchemy.orm import Session

from api.db.tables.projects import Project
from api.db.tables.streams import Stream
from api.db.tables.topics import Topic
from api.http.errors import UnavailableError
from api.node.addresses import addresses
from api.node.messages import Place
from api.topics.spec import effective


def place_of(session: Session, topic_id: str, bearer: str) -> Place:
    """Where a topic's messages are.

    :raises UnavailableError: its cluster has no node.
    """
    topic = session.get_one(Topic, topic_id)
    project = session.get_one(Project, topic.project_id)
    stream = session.get_one(Stream, topic.stream_id)
    found = addresses(session, topic.cluster_id)
    if not found:
        raise UnavailableError("The topic's cluster has no node yet.", retry_after_seconds=5)
    return Place(
        found[0],
        project.name,
        f"{stream.name}/{topic.name}",
        effective(topic.spec).partitions,
        bearer,
    )
