"""The figures of a topic's partitions as they are now: one bounded question to its node.

A pass of the reconciler looks at a topic when something changed; offsets and bytes move with every
record. A reader of one topic may ask for the current figures. Refuses to fail a read: if a node
does not answer in time, the last observation stays, with its time. For a paused topic no node is
asked.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy.orm import Session

from api.db.database import Database
from api.db.tables.topics import Topic
from api.node.addresses import addresses
from api.node.client import NodeClient
from api.node.failure import NodeFailure
from api.node.pool import NodePool
from api.topics.purge import Figures
from api.topics.schemas import PartitionBody, TopicBody
from api.topics.service import topic_bodies
from dataplane.wire import node_pb2

DEADLINE_SECONDS: Final = 1.0


def read_topic(database: Database, nodes: NodePool, topic_id: str, *, live: bool) -> TopicBody:
    """A topic's body, with the figures of now if they were asked for and can be had."""
    return _looked_at(database, nodes, topic_id, live=live)[0]


def figures_of(database: Database, nodes: NodePool, topic_id: str) -> Figures:
    """The figures of a topic, of now if they can be had."""
    body, current = _looked_at(database, nodes, topic_id, live=True)
    return Figures(body.status.partitions, current)


def enliven(database: Database, nodes: NodePool, bodies: Sequence[TopicBody]) -> None:
    """Puts the figures of now into bodies: one question to each cluster for all of them."""
    with database.read() as session:
        now = database.now(session)
        places = {
            cluster: list(addresses(session, cluster))
            for cluster in {body.cluster_id for body in bodies}
        }
    for cluster, found_at in places.items():
        wanted = {
            body.id: body
            for body in bodies
            if body.cluster_id == cluster and not body.status.effective.paused
        }
        if not wanted:
            continue
        for found in _described(nodes, found_at, list(wanted)):
            wanted[found.topic_id].status.partitions = [
                _partition(each, now) for each in found.partitions
            ]


def _looked_at(
    database: Database, nodes: NodePool, topic_id: str, *, live: bool
) -> tuple[TopicBody, bool]:
    """A topic's body, and whether its figures are of now."""
    with database.read() as session:
        body, places, now = _read(session, database, topic_id)
    if not live or body.status.effective.paused:
        return body, False
    described = _described(nodes, places, [topic_id])
    for found in described:
        body.status.partitions = [_partition(each, now) for each in found.partitions]
    return body, bool(described)


def _read(
    session: Session, database: Database, topic_id: str
) -> tuple[TopicBody, list[str], datetime]:
    row = session.get_one(Topic, topic_id)
    places = addresses(session, row.cluster_id)
    return topic_bodies(session, [row])[0], list(places), database.now(session)


def _described(
    nodes: NodePool, places: list[str], topic_ids: Sequence[str]
) -> list[node_pb2.TopicStatus]:
    """What a cluster says of some topics; nothing if it does not answer in time."""
    try:
        reply = NodeClient(nodes, deadline_seconds=DEADLINE_SECONDS).describe(
            places[:1], topic_ids=topic_ids
        )
    except NodeFailure:
        return []
    return [each for each in reply.topics if each.topic_id in topic_ids]


def _partition(found: node_pb2.PartitionStatus, now: datetime) -> PartitionBody:
    return PartitionBody(
        index=found.index,
        primary=found.primary,
        replicas=list(found.replicas),
        start_offset=found.log_start,
        end_offset=found.log_end,
        bytes=found.bytes,
        state=found.state,
        reason=found.reason,
        observed_at=now,
    )
