"""What groups are doing, seen from outside: their members, and how far each partition is read.

Reads only; the members themselves are session.py's. A lag is exact when it was asked for: the
committed offset and the end of the log come from one answer of the partition's primary. Runs on the
I/O loop.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from headrace.consumer.fetcher import fetch_offsets
from headrace.errors import NotFound
from headrace.messages import TopicPartition
from headrace.transport.connection import (
    ATTEMPT_TIMEOUT,
    CALL_TIMEOUT,
    DESCRIBE_GROUP,
    LIST_GROUPS,
    Connection,
    Request,
)
from headrace.transport.retry import Deadline
from headrace.wire import stream_pb2 as wire

QUESTIONS_AT_ONCE = 32
R = TypeVar("R")


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
class GroupSummary:
    """A group as one line of a list. `state`: EMPTY, STABLE or MOVING."""

    name: str
    number: int
    generation: int
    state: str
    members: int
    partitions: int
    """How many its members share."""
    topics: tuple[str, ...]
    """What its members read."""
    lag: int | None = None
    """Records of those topics that are stored and not handled; None: not asked for, or the group
    has no members, so that its topics are unknown."""


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
    """The member that reads it now; empty: none."""

    @property
    def lag(self) -> int:
        """Records that are there and not handled. Without a commit, all of them."""
        begin = self.log_start if self.committed is None else max(self.committed, self.log_start)
        return max(0, self.log_end - begin)


async def describe_group(connection: Connection, name: str) -> GroupDescription:
    """Members and assignments of a group. Raises NotFound when it never had a member."""
    request = wire.DescribeGroupRequest(project=connection.settings.project, group=name)
    reply = await _asked(connection, DESCRIBE_GROUP, request, wire.DescribeGroupReply.FromString)
    members = tuple(
        GroupMember(
            member.member,
            tuple(sorted(TopicPartition(a.name, a.partition) for a in member.assigned)),
        )
        for member in reply.members
    )
    return GroupDescription(name, reply.group, reply.generation, reply.state, members)


async def _asked(
    connection: Connection, method: str, request: Request, parse: Callable[[bytes], R]
) -> R:
    """The answer of any node: each knows every group."""
    turns = itertools.count()

    async def once(_: Deadline) -> R:
        addresses = connection.metadata.addresses()
        address = addresses[next(turns) % len(addresses)]
        return await connection.attempt(address, method, request, parse, ATTEMPT_TIMEOUT)

    return await connection.repeat(once, CALL_TIMEOUT)


async def list_groups(connection: Connection, *, lag: bool = False) -> list[GroupSummary]:
    """Every group of the project that ever had a member, by name. `lag`: ask for it too, in every
    partition of the topics that a group's members read."""
    found: list[GroupSummary] = []
    request = wire.ListGroupsRequest(project=connection.settings.project)
    while True:
        page = await _asked(connection, LIST_GROUPS, request, wire.ListGroupsReply.FromString)
        found += [
            GroupSummary(
                row.name,
                row.group,
                row.generation,
                row.state,
                row.members,
                row.partitions,
                tuple(row.topics),
            )
            for row in page.groups
        ]
        if not page.next:
            break
        request.after = page.next
    if not lag:
        return found
    room = asyncio.Semaphore(QUESTIONS_AT_ONCE)
    lags = await asyncio.gather(*(_lag_of(connection, group, room) for group in found))
    return [replace(group, lag=lag_of) for group, lag_of in zip(found, lags, strict=True)]


async def _lag_of(
    connection: Connection, group: GroupSummary, room: asyncio.Semaphore
) -> int | None:
    if not group.topics:
        return None
    try:
        routes = [await connection.metadata.resolve(topic) for topic in group.topics]
        places = [
            TopicPartition(route.name, index)
            for route in routes
            for index in range(route.partitions_count)
        ]
        asked = (_ask(connection, at, group.number, room) for at in places)
        return sum(each.lag for each in await asyncio.gather(*asked))
    except NotFound:
        return None  # A topic of it is gone by now: what is left of the sum would say too little.


async def _ask(
    connection: Connection, at: TopicPartition, group: int, room: asyncio.Semaphore
) -> PartitionLag:
    async with room:
        reply = await fetch_offsets(connection, at, group)
    committed = reply.offset if reply.found else None
    return PartitionLag(*at, committed, reply.log_start, reply.high_watermark, "")


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
        return replace(await _ask(connection, at, group.number, room), member=readers.get(at, ""))

    lags = await asyncio.gather(*(ask(at) for at in names))
    # A partition that was never committed in is behind as well, if the group reads its topic.
    concerned = {at.topic for at in readers} | {n.topic for n in lags if n.committed is not None}
    return [lag for lag in lags if wanted or lag.topic in concerned]
