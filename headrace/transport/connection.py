"""Channels to nodes, calls with deadlines and repetition, and ClusterMetadata: names resolved once.

Everything here runs on the I/O loop. A name is resolved by Cluster.Describe to (number,
created_revision, partitions); hot calls carry only those. The routes are read again when a node
answers RETRY_OTHER_NODE or does not answer at all, and a topic when it is TOPIC_RECREATED or
TOPIC_NOT_FOUND; RETRY_SAME_NODE never changes the node.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import grpc
import grpc.aio

from headrace.errors import (
    Closed,
    DeadlineExceeded,
    HeadraceError,
    NotFound,
    TopicNotFound,
    TopicRecreated,
    Unreachable,
)
from headrace.settings import Settings
from headrace.transport.grpc_errors import error_of, error_of_call
from headrace.transport.io_thread import note_transport_used, patient, seen
from headrace.transport.retry import Backoff, Deadline, changes_route, repeatable
from headrace.wire import stream_pb2 as wire

logger = logging.getLogger("headrace")

_STREAM = "/headrace.stream.v1.Stream/"
_CLUSTER = "/headrace.stream.v1.Cluster/"
_GROUPS = "/headrace.stream.v1.Groups/"
DESCRIBE = _CLUSTER + "Describe"
FETCH = _STREAM + "Fetch"
PRODUCE_STREAM = _STREAM + "ProduceStream"
COMMIT_OFFSETS = _STREAM + "CommitOffsets"
FETCH_OFFSETS = _STREAM + "FetchOffsets"
LIST_OFFSETS = _STREAM + "ListOffsets"
GROUP_SESSION = _GROUPS + "Session"
DESCRIBE_GROUP = _GROUPS + "DescribeGroup"
LIST_GROUPS = _GROUPS + "ListGroups"

# One stored batch is at most 8 MiB and a fetch returns at least one whole batch; requests are a
# batch and a few numbers.
_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", 72 << 20),
    ("grpc.max_send_message_length", 16 << 20),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.lookahead_bytes", 8 << 20),
    # A node that restarts should be found within a second; gRPC would wait up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    # Repetition is ours (retry.py); gRPC's own can leave a stream hanging that a restart cut short.
    ("grpc.enable_retries", 0),
)

CALL_TIMEOUT = 30.0
ATTEMPT_TIMEOUT = 10.0


class Request(Protocol):
    """A protobuf message, as far as this module looks at it."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """The bytes on the wire."""


Q = TypeVar("Q", bound=Request)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Route:
    """A topic as hot calls need it."""

    name: str
    number: int
    created_revision: int
    message_bytes_max: int
    codec: str
    primaries: tuple[str, ...]
    """Address of the node that leads partition i."""
    cluster_id: str

    @property
    def partitions_count(self) -> int:
        """How many partitions."""
        return len(self.primaries)

    def primary(self, partition: int) -> str:
        """Where a partition of the topic is led.

        Raises TopicRecreated for one that it does not have: partitions never become fewer, so the
        name now speaks of another topic than when the partition was chosen.
        """
        if partition >= self.partitions_count:
            raise TopicRecreated(
                f"{self.name}[{partition}] no longer exists: the topic was recreated again with "
                f"{self.partitions_count} partitions"
            )
        return self.primaries[partition]


class Connection:
    """Channels by address; one per client. Lives on the I/O loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metadata = ClusterMetadata(self)
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._closed = False
        self._authorization: tuple[tuple[str, str], ...] = (
            (("authorization", f"Bearer {settings.key}"),) if settings.key else ()
        )

    def channel(self, address: str) -> grpc.aio.Channel:
        """The channel to one node, opened at first use. Raises Closed after `close`: a call that
        came too late would wait for nodes, and nothing would close the channel."""
        if self._closed:
            raise Closed("The client is closed")
        found = self._channels.get(address)
        if found is None:
            note_transport_used()
            if self.settings.tls:
                credentials = grpc.ssl_channel_credentials()
                found = grpc.aio.secure_channel(address, credentials, options=_OPTIONS)
            else:
                found = grpc.aio.insecure_channel(address, options=_OPTIONS)
            self._channels[address] = found
        return found

    @property
    def authorization(self) -> tuple[tuple[str, str], ...]:
        """The metadata of every call."""
        return self._authorization

    async def attempt(
        self, address: str, method: str, request: Q, reply: Callable[[bytes], R], timeout: float
    ) -> R:
        """One unary call to one node. Raises a typed error."""
        call = self.channel(address).unary_unary(
            method, request_serializer=_serialized, response_deserializer=reply
        )
        try:
            answer: R = await call(request, timeout=timeout, metadata=self._authorization)
        except grpc.aio.AioRpcError as error:
            raise error_of_call(error, address) from None
        return answer

    async def repeat(
        self,
        once: Callable[[Deadline], Awaitable[R]],
        timeout: float,
        *,
        topic: str | None = None,
    ) -> R:
        """Repeat `once` until it succeeds, fails for good, or the deadline passes. It must be
        idempotent."""
        deadline, backoff = Deadline(timeout), Backoff()
        resolved_anew = False
        while True:
            try:
                return await once(deadline)
            except HeadraceError as error:
                if topic is not None and isinstance(error, NotFound) and not resolved_anew:
                    # The handle may be of an earlier topic of this name: look once more.
                    resolved_anew = True
                    self.metadata.forget(topic)
                    continue
                if not repeatable(error, idempotent=True):
                    raise
                pause = backoff.pause(error.retry_after)
                if pause >= deadline.remaining():
                    raise _too_late(error, backoff.attempts, timeout) from error
                if topic is not None and changes_route(error):
                    self.metadata.forget(topic)
                logger.debug("%s; again in %.0f ms", error.message, pause * 1000)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close every channel."""
        self._closed = True
        await self.metadata.close()
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()


def _serialized(request: Request) -> bytes:
    return request.SerializeToString()


def _too_late(cause: HeadraceError, attempts: int, timeout: float) -> HeadraceError:
    """The last cause, with how often and how long it was tried."""
    tried = f"gave up after {attempts} attempts in {timeout:g} s"
    cls = type(cause) if isinstance(cause, Unreachable) else DeadlineExceeded
    return cls(
        f"{cause.message} ({tried})",
        code=cause.code if cls is not DeadlineExceeded else None,
        hint=cause.hint,
        context=cause.context,
    )


class ClusterMetadata:
    """Topic names to routes. One Describe per name, shared by all who ask at the same time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._routes: dict[str, Route] = {}
        self._asking: dict[str, asyncio.Task[Route]] = {}
        self._roster: tuple[str, ...] = ()
        self.cluster_id = ""

    def forget(self, name: str) -> None:
        """Resolve the name anew at its next use, and every other name of the same topic."""
        found = self._routes.pop(name, None)
        if found is not None:
            others = [n for n, route in self._routes.items() if route.name == found.name]
            for other in others:
                del self._routes[other]

    async def close(self) -> None:
        """Stop asking; waiting callers get Closed (io_thread)."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def known(self, name: str) -> Route | None:
        """The route without asking."""
        return self._routes.get(name)

    async def resolve(self, name: str, timeout: float = CALL_TIMEOUT) -> Route:
        """The route of `topic` or `stream/topic`. Raises TopicNotFound."""
        found = self._routes.get(name)
        if found is not None:
            return found
        task = self._asking.get(name)
        if task is None:
            task = asyncio.ensure_future(self._ask(name, timeout))
            self._asking[name] = task
            task.add_done_callback(lambda _: self._asking.pop(name, None))
            task.add_done_callback(seen)
        # One caller's cancellation must not fail the others who wait for the same name.
        return await asyncio.shield(task)

    async def _ask(self, name: str, timeout: float) -> Route:
        reply = await self.describe([name], timeout)
        for topic in reply.topics:
            if topic.HasField("error"):
                raise _with_name(error_of(topic.error), name)
            route = _route(topic, reply)
            self._routes[name] = self._routes[route.name] = route
            return route
        raise _with_name(TopicNotFound(f'Topic "{name}" does not exist'), name)

    async def every_route(self, timeout: float = CALL_TIMEOUT) -> list[Route]:
        """The routes of every topic that the key may see and that is ready."""
        reply = await self.describe([], timeout)
        ready = [topic for topic in reply.topics if topic.partitions]
        routes = [_route(topic, reply) for topic in ready]
        self._routes |= {route.name: route for route in routes}
        return routes

    async def describe(
        self, topics: list[str], timeout: float = CALL_TIMEOUT
    ) -> wire.DescribeReply:
        """Cluster.Describe from whichever node answers: the roster first, then the seeds."""
        request = wire.DescribeRequest(project=self._connection.settings.project, topics=topics)
        with patient(", ".join(self.addresses()), timeout):
            return await self._describe(request, timeout)

    async def _describe(self, request: wire.DescribeRequest, timeout: float) -> wire.DescribeReply:
        deadline, backoff = Deadline(timeout), Backoff()
        while True:
            last: HeadraceError = Unreachable("No node address is known")
            for address in self.addresses():
                wait = min(ATTEMPT_TIMEOUT, max(deadline.remaining(), 0.05))
                try:
                    reply = await self._connection.attempt(
                        address, DESCRIBE, request, wire.DescribeReply.FromString, wait
                    )
                except HeadraceError as error:
                    if not repeatable(error, idempotent=True):
                        raise
                    last = error
                    continue
                self.cluster_id = reply.cluster_id
                self._roster = tuple(node.address for node in reply.nodes)
                return reply
            pause = backoff.pause(last.retry_after)
            if pause >= deadline.remaining():
                raise _too_late(last, backoff.attempts, timeout) from last
            await asyncio.sleep(pause)

    def addresses(self) -> list[str]:
        """Where a call that any node answers may go, in this order."""
        seeds = [a for a in self._connection.settings.bootstrap if a not in self._roster]
        random.shuffle(seeds)
        return [*self._roster, *seeds]


def _with_name(error: HeadraceError, name: str) -> HeadraceError:
    error.context["topic"] = name
    if isinstance(error, TopicNotFound) and not error.hint:
        error.hint = f"Create it: headrace topic create {name}"
    return error


def _route(topic: wire.Topic, reply: wire.DescribeReply) -> Route:
    nodes = {node.id: node.address for node in reply.nodes}
    primaries = {p.index: nodes.get(p.primary, "") for p in topic.partitions}
    if not primaries or sorted(primaries) != list(range(len(primaries))):
        raise Unreachable(
            f'Topic "{topic.name}" has no partitions yet',
            code="TOPIC_NOT_READY",
            hint="It was created a moment ago: wait until it is ready.",
        )
    missing = [index for index, address in primaries.items() if not address]
    if missing:
        raise Unreachable(f"{topic.name}[{missing[0]}] has no primary now")
    return Route(
        name=topic.name,
        number=topic.number,
        created_revision=topic.created_revision,
        message_bytes_max=topic.message_bytes_max or 1 << 20,
        codec=topic.codec or "none",
        primaries=tuple(primaries[i] for i in range(len(primaries))),
        cluster_id=reply.cluster_id,
    )
