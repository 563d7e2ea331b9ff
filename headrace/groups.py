"""What a group is doing, seen from outside: its members, and how far each partition is read.

Reads only; the members themselves are membership.py's. A lag is exact when it was asked for: the
committed offset and the end of the log come from one answer of the partition's primary. Runs on the
I/O loop.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.connection import ATTEMPT_TIMEOUT, CALL_TIMEOUT, DESCRIBE_GROUP, Connection
from headrace.messages import TopicPartition
from headrace.reading import fetch_offsets
from headrace.retry import Deadline
from headrace.wire import stream_pb2 as wire

QUESTIONS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member and the partitions that it reads."""

    member: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group as the node sees it. `state`: EMPTY, STABLE or MOVING."""

    name: str
    number: int
    generation: int
    state: str
    members: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group has read one partition. Offsets count records."""

    topic: str
    partition: int
    committed: int | None
    """The next offset to handle; None: nothing was ever committed here."""
    log_start: int
    log_end: int
    member: str
    """Who reads it now; empty: nobody."""

    @property
    def lag(self) -> int:
        """Records that are there and not handled. Without a commit, all of them."""
        begin = self.log_start if self.committed is None else max(self.committed, self.log_start)
        return max(0, self.log_end - begin)


async def describe_group(connection: Connection, name: str) -> GroupDescription:
    """Members and assignments of a group. Raises NotFound when it never had a member."""
    request = wire.DescribeGroupRequest(project=connection.settings.project, group=name)
    turns = itertools.count()

    async def once(_: Deadline) -> wire.DescribeGroupReply:
        addresses = connection.metadata.addresses()
        address = addresses[next(turns) % len(addresses)]
        return await connection.attempt(
            address, DESCRIBE_GROUP, request, wire.DescribeGroupReply.FromString, ATTEMPT_TIMEOUT
        )

    reply = await connection.repeat(once, CALL_TIMEOUT)
    members = tuple(
        GroupMember(
            member.member,
            tuple(sorted(TopicPartition(a.name, a.partition) for a in member.assigned)),
        )
        for member in reply.members
    )
    return GroupDescription(name, reply.group, reply.generation, reply.state, members)


async def group_lag(
    connection: Connection, name: str, topics: Iterable[str] = ()
) -> list[PartitionLag]:
    """The lag of a group in every partition of `topics`; by default in those that it reads or has
    committed in, among the topics that the key may see."""
    group = await describe_group(connection, name)
    readers = {at: member.member for member in group.members for at in member.partitions}
    wanted = [await connection.metadata.resolve(topic) for topic in topics]
    routes = wanted or await connection.metadata.every_route()
    names = [
        TopicPartition(route.name, index)
        for route in routes
        for index in range(route.partitions_count)
    ]
    room = asyncio.Semaphore(QUESTIONS_AT_ONCE)

    async def ask(at: TopicPartition) -> PartitionLag:
        async with room:
            reply = await fetch_offsets(connection, at, group.number)
        committed = reply.offset if reply.found else None
        member = readers.get(at, "")
        return PartitionLag(*at, committed, reply.log_start, reply.high_watermark, member)

    lags = await asyncio.gather(*(ask(at) for at in names))
    # A partition that was never committed in is behind as well, if the group reads its topic.
    concerned = {at.topic for at in readers} | {n.topic for n in lags if n.committed is not None}
    return [lag for lag in lags if wanted or lag.topic in concerned]
