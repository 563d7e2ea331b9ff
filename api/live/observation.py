"""One observation of the clusters, and the rates between two of them. Pure, except :func:`observe`.

An observation covers every organization, since it is made with the node key, once for all readers.
So it leaves this package only through :func:`live_body`, which selects what a caller may see.
Refuses to guess: a partition that does not answer keeps its last figure, a group that was not asked
has none.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import select

from api.auth.permissions import Caller
from api.db.database import Database
from api.db.tables.clusters import Cluster
from api.live.schemas import BusyBody, LagBody, LiveBody, PointBody
from api.node.addresses import addresses
from api.node.client import NodeClient
from api.node.failure import NodeFailure
from api.node.positions import Position, PositionQuery, lag_of
from dataplane.wire import node_pb2

# Each is a call to a node, every two seconds or so.
QUERIES_MAX: Final = 512
BUSIEST: Final = 5
ANSWERED: Final = ("READY", "SEALED")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose something is."""

    org_id: str
    project_id: str

    def seen_by(self, caller: Caller) -> bool:
        """Whether a caller may know of it."""
        return self.org_id == caller.org_id and caller.project_id in (None, self.project_id)


@dataclass(frozen=True, slots=True)
class TopicObservation:
    """A topic's sums over its partitions: what it stores, and what was ever appended."""

    scope: Scope
    name: str
    stored_bytes: int
    ever_bytes: int
    ever_records: int


@dataclass(frozen=True, slots=True)
class GroupObservation:
    """A group; ``lag`` in records, None if it is unknown; ``reads``: it has members."""

    scope: Scope
    name: str
    reads: bool
    lag: int | None
    topic_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """What all clusters that answered reported at a moment. ``seconds``: a clock that never jumps;
    ``unknown``: topics that are there and have no figure, for a partition never answered."""

    at: datetime
    seconds: float
    topics: Mapping[str, TopicObservation]
    groups: tuple[GroupObservation, ...]
    fetched: Mapping[str, tuple[int, int]]  # node -> (when it started, bytes since)
    warnings: tuple[str, ...]
    silent: int
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sums:
    """The rates between two observations: bytes and records into all topics of a scope, bytes out
    of all nodes. What is kept of a point: there are as many scopes as projects, and not as topics.
    ``partial``: some cluster was silent at one of the two, and what it has is not in it."""

    at: datetime
    into: Mapping[Scope, tuple[int, int]]
    out_bytes: int | None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """The latest rates: the sums, and bytes and records into each topic."""

    sums: Sums
    topics: Mapping[str, tuple[int, int]]


def observe(database: Database, nodes: NodeClient, before: Observation | None) -> Observation:
    """Asks every cluster once."""
    with database.read() as session:
        clusters = session.scalars(select(Cluster.id).order_by(Cluster.id)).all()
        places = [addresses(session, each) for each in clusters]
    topics: dict[str, TopicObservation] = {}
    groups: list[GroupObservation] = []
    fetched: dict[str, tuple[int, int]] = {}
    warnings: list[str] = []
    unknown: set[str] = set()
    silent = 0
    for place in filter(None, places):
        try:
            reply = nodes.describe_all(place)
            asked = position_queries(reply)
            known = nodes.positions(place[0], [each for some in asked.values() for each in some])
        except NodeFailure:
            silent += 1
            continue
        kept = before.topics if before is not None else {}
        measured = dict(_topics(reply.topics, kept))
        topics.update(measured)
        unknown.update(each.topic_id for each in reply.topics if each.topic_id not in measured)
        groups.extend(_groups(reply.groups, asked, known))
        fetched[reply.node_id] = (reply.node.started_us, reply.node.fetched_bytes)
        warnings.extend(filter(None, [reply.node.warning]))
    return Observation(
        datetime.now(UTC),
        time.monotonic(),
        topics,
        tuple(groups),
        fetched,
        tuple(warnings),
        silent,
        frozenset(unknown),
    )


def position_queries(reply: node_pb2.DescribeReply) -> dict[int, list[PositionQuery]]:
    """What to ask for the lag of which group, by its number; small groups are never left out for
    the sake of a large one."""
    topics = {each.topic_id: each for each in reply.topics}
    wanted: dict[int, list[PositionQuery]] = {}
    for group in reply.groups:
        if group.topic_ids and all(each in topics for each in group.topic_ids):
            wanted[group.group] = [
                PositionQuery(group.group, topic.number, topic.created_revision, partition.index)
                for topic in (topics[each] for each in group.topic_ids)
                for partition in topic.partitions
            ]
    found: dict[int, list[PositionQuery]] = {}
    left = QUERIES_MAX
    for number in sorted(wanted, key=lambda each: (len(wanted[each]), each)):
        if len(wanted[number]) > left:
            break
        found[number] = wanted[number]
        left -= len(wanted[number])
    return found


def point_between(before: Observation, now: Observation) -> Point:
    """The rates since the observation before. A topic that did not exist then has grown from
    nothing; one that no cluster reported, now or then, has no rate."""
    seconds = max(now.seconds - before.seconds, 0.001)
    topics: dict[str, tuple[int, int]] = {}
    into: dict[Scope, tuple[int, int]] = {}
    for topic_id, topic in now.topics.items():
        then = before.topics.get(topic_id)
        if then is None and (before.silent or topic_id in before.unknown):
            continue  # It may have been there all the time.
        grown = topic.ever_bytes - (then.ever_bytes if then else 0)
        records = topic.ever_records - (then.ever_records if then else 0)
        rate = (round(max(0, grown) / seconds), round(max(0, records) / seconds))
        topics[topic_id] = rate
        size, count = into.get(topic.scope, (0, 0))
        into[topic.scope] = (size + rate[0], count + rate[1])
    out = [
        fetched - before.fetched[node][1]
        for node, (started, fetched) in now.fetched.items()
        if node in before.fetched and before.fetched[node][0] == started
    ]
    # A node that began anew counts from 0: what it gave in between is unknown, and so is the sum.
    complete = bool(out) and len(out) == len(now.fetched) and not now.silent
    partial = before.silent + now.silent > 0
    sums = Sums(now.at, into, round(sum(out) / seconds) if complete else None, partial)
    return Point(sums, topics)


def point_body(sums: Sums, caller: Caller) -> PointBody:
    """A caller's part of a point."""
    own = [rates for scope, rates in sums.into.items() if scope.seen_by(caller)]
    is_unknown = sums.partial and not own
    return PointBody(
        at=sums.at,
        in_bytes=None if is_unknown else sum(each[0] for each in own),
        in_records=None if is_unknown else sum(each[1] for each in own),
        out_bytes=sums.out_bytes if caller.operator and caller.project_id is None else None,
    )


def live_body(now: Observation, point: Point | None, caller: Caller) -> LiveBody:
    """A caller's part of an observation; without a point it is the first one, and has no rates."""
    topics = {key: each for key, each in now.topics.items() if each.scope.seen_by(caller)}
    groups = [each for each in now.groups if each.scope.seen_by(caller)]
    behind = [each for each in groups if each.lag is not None]
    worst = max(behind, key=lambda each: (each.lag or 0, each.name), default=None)
    rates = {key: point.topics[key][0] for key in topics if key in point.topics} if point else {}
    busiest = sorted(rates, key=lambda key: (-rates[key], topics[key].name))[:BUSIEST]
    operator = caller.operator and caller.project_id is None
    return LiveBody(
        now=point_body(point.sums, caller) if point is not None else PointBody(at=now.at),
        stored_bytes=sum(each.stored_bytes for each in topics.values()),
        topics=len(topics),
        groups=len(groups),
        groups_unknown=sum(each.reads and each.lag is None for each in groups),
        worst_lag=(
            LagBody(
                group=worst.name,
                project_id=worst.scope.project_id,
                records=worst.lag or 0,
                seconds=_seconds_behind(worst, point),
            )
            if worst is not None
            else None
        ),
        busiest=[
            BusyBody(topic_id=key, name=topics[key].name, in_bytes=rates[key]) for key in busiest
        ],
        silent=now.silent,
        warnings=list(now.warnings) if operator else [],
    )


def _seconds_behind(group: GroupObservation, point: Point | None) -> int | None:
    """In how many seconds its topics grow by its lag, as fast as they do now."""
    if point is None or group.lag is None:
        return None
    rates = [point.topics[each][1] for each in group.topic_ids if each in point.topics]
    return round(group.lag / sum(rates)) if sum(rates) > 0 else None


def _topics(
    found: Iterable[node_pb2.TopicStatus], kept: Mapping[str, TopicObservation]
) -> Iterable[tuple[str, TopicObservation]]:
    for topic in found:
        spec = topic.spec
        if any(each.state not in ANSWERED for each in topic.partitions):
            if topic.topic_id in kept:
                yield topic.topic_id, kept[topic.topic_id]
            continue
        yield (
            topic.topic_id,
            TopicObservation(
                Scope(spec.organization_id, spec.project_id),
                f"{spec.stream}/{spec.topic}",
                sum(each.bytes for each in topic.partitions),
                sum(each.cumulative_bytes for each in topic.partitions),
                sum(each.high_watermark for each in topic.partitions),
            ),
        )


def _groups(
    found: Iterable[node_pb2.GroupStatus],
    asked: Mapping[int, list[PositionQuery]],
    known: dict[PositionQuery, Position],
) -> Iterable[GroupObservation]:
    for group in found:
        yield GroupObservation(
            Scope(group.organization_id, group.project_id),
            group.name,
            group.state != "EMPTY",
            lag_of(known, asked.get(group.group, [])),
            tuple(group.topic_ids),
        )
