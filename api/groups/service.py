"""Which groups a page shows, and what is known of each. Bounded whatever is asked: in groups,
partitions and queries."""

from collections.abc import Mapping, Sequence
from typing import Final

from api.groups.schemas import (
    GroupBody,
    GroupDetail,
    GroupMemberBody,
    PlaceBody,
    PositionBody,
)
from api.node.groups import GroupReader, Place
from api.node.pool import NodePool
from api.node.positions import Position, PositionQuery, lag_of
from headrace.wire import stream_pb2

# What the node gives at most on a page.
PAGE_MAX: Final = 200
# Each is a call to the node: groups beyond them stay without a lag.
QUERIES_MAX: Final = 1024
SEPARATOR: Final = "|"


def list_page(
    nodes: NodePool, places: Sequence[Place], after: str, most: int, *, lag: bool
) -> tuple[list[GroupBody], str]:
    """Groups in order of cluster and name, and where the next page begins; "" at the end.

    :param after: what the page before answered; "" for the first one.
    """
    begin_at, _, name = after.partition(SEPARATOR)
    for place in places:
        if place.cluster_id < begin_at:
            continue
        reader = GroupReader(nodes, place)
        reply = reader.page(name if place.cluster_id == begin_at else "", min(most, PAGE_MAX))
        if not reply.groups:
            continue
        bodies = _bodies(reader, reply.groups, lag=lag)
        later = any(each.cluster_id > place.cluster_id for each in places)
        last = reply.groups[-1].name
        return bodies, f"{place.cluster_id}{SEPARATOR}{last}" if reply.next or later else ""
    return [], ""


def detail(nodes: NodePool, places: Sequence[Place], name: str) -> GroupDetail | None:
    """One group as its cluster sees it now; None if no cluster has it."""
    for place in places:
        reader = GroupReader(nodes, place)
        found = reader.described(name)
        if found is not None:
            return _detail(reader, name, found)
    return None


def _bodies(
    reader: GroupReader, rows: Sequence[stream_pb2.GroupRow], *, lag: bool
) -> list[GroupBody]:
    asked = _queries(reader.topics(), rows) if lag else {}
    known = reader.positions([each for some in asked.values() for each in some])
    return [
        GroupBody(
            name=row.name,
            project_id=reader.place.project_id,
            cluster_id=reader.place.cluster_id,
            state=row.state,
            generation=row.generation,
            members=row.members,
            partitions=row.partitions,
            topics=list(row.topics),
            lag=_lag_of_row(row, known, asked.get(row.name, ())),
        )
        for row in rows
    ]


def _queries(
    topics: Mapping[str, stream_pb2.Topic], rows: Sequence[stream_pb2.GroupRow]
) -> dict[str, list[PositionQuery]]:
    """The queries for each group. A group whose topics are not all known has no lag; one without
    members is asked about every topic, for it may have committed in any. Groups with members come
    first."""
    found: dict[str, list[PositionQuery]] = {}
    left = QUERIES_MAX
    for row in sorted(rows, key=lambda row: not row.topics):
        if any(name not in topics for name in row.topics):
            continue
        names = row.topics or topics
        wanted = [each for name in names for each in _of_topic(row.group, topics[name])]
        if len(wanted) <= left:
            found[row.name] = wanted
            left -= len(wanted)
    return found


def _lag_of_row(
    row: stream_pb2.GroupRow, known: dict[PositionQuery, Position], asked: Sequence[PositionQuery]
) -> int | None:
    """Of what its members read; where there are none, of every topic that it has committed in. Then
    one partition that does not answer leaves open which topics those are."""
    if row.topics or any(each not in known for each in asked):
        return lag_of(known, asked)
    concerned = {each.topic for each in asked if known[each].committed is not None}
    return lag_of(known, [each for each in asked if each.topic in concerned])


def _of_topic(group: int, topic: stream_pb2.Topic) -> list[PositionQuery]:
    return [
        PositionQuery(group, topic.number, topic.created_revision, partition.index)
        for partition in topic.partitions
    ]


def _detail(reader: GroupReader, name: str, found: stream_pb2.DescribeGroupReply) -> GroupDetail:
    topics = reader.topics()
    readers = {
        (held.name, held.partition): member.member
        for member in found.members
        for held in member.assigned
    }
    read = {topic for topic, _ in readers}
    # Topics that are read come first: if there are too many, the others are left out.
    ordered = sorted(topics.values(), key=lambda topic: (topic.name not in read, topic.name))
    asked = [(topic, each) for topic in ordered for each in _of_topic(found.group, topic)]
    known = reader.positions([query for _, query in asked[:QUERIES_MAX]])
    concerned = read | {
        topic.name
        for topic, query in asked
        if query in known and known[query].committed is not None
    }
    shown = [(topic, query) for topic, query in asked if topic.name in concerned]
    return GroupDetail(
        name=name,
        project_id=reader.place.project_id,
        cluster_id=reader.place.cluster_id,
        state=found.state,
        generation=found.generation,
        members=len(found.members),
        partitions=len(readers),
        topics=sorted(concerned),
        lag=lag_of(known, [query for _, query in shown]),
        readers=[
            GroupMemberBody(
                member=member.member,
                partitions=[
                    PlaceBody(topic=held.name, partition=held.partition)
                    for held in sorted(member.assigned, key=lambda a: (a.name, a.partition))
                ],
            )
            for member in found.members
        ],
        positions=[_position(topic, query, known.get(query), readers) for topic, query in shown],
        complete=len(asked) <= QUERIES_MAX,
    )


def _position(
    topic: stream_pb2.Topic,
    query: PositionQuery,
    known: Position | None,
    readers: Mapping[tuple[str, int], str],
) -> PositionBody:
    body = PositionBody(
        topic=topic.name,
        topic_id=topic.id,
        partition=query.partition,
        member=readers.get((topic.name, query.partition)),
    )
    if known is not None:
        body.committed = known.committed
        body.start_offset = known.start_offset
        body.end_offset = known.end_offset
        body.lag = known.lag
    return body
