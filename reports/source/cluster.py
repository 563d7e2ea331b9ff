"""One reader of one cluster: topics, bounds and stored batches, over unary gRPC calls.

Owns the channels of a Spark worker, repeating by error kind until a deadline, and the promise that
a range is delivered whole, in order and once, or not at all. Refuses to look at records: that is
`columns.py`.

Unary calls with long messages, not streams: a stream cannot be stopped by the memory of its reader,
a request of `FETCH_BYTES` can.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

import grpc
import grpc.aio

from headrace.codec import Batch, CodecError, batches, partition_seed
from headrace.errors import HeadraceError, NotHere, Retryable
from headrace.transport.grpc_errors import error_of, error_of_call
from headrace.transport.retry import Backoff, Deadline, changes_route, repeatable
from headrace.wire import stream_pb2, stream_pb2_grpc
from reports.errors import SourceError

FETCH_BYTES = 4 << 20
# A reply holds at least one batch whatever was asked for; batches end at 8 MiB, so 32 leaves room.
RECEIVE_BYTES_MAX = 32 << 20
CALL_SECONDS = 30.0
DEADLINE_SECONDS = 120.0
WAIT_MS = 1_000

Message = TypeVar("Message")
Message_co = TypeVar("Message_co", covariant=True)


class Call(Protocol[Message_co]):
    """A unary method of a stub."""

    def __call__(
        self,
        request: object,
        /,
        *,
        timeout: float,
        metadata: tuple[tuple[str, str], ...],
    ) -> Message_co: ...


@dataclass(frozen=True, slots=True)
class Access:
    """Where the cluster is and who asks. The key stays out of repr, plans and messages."""

    bootstrap: tuple[str, ...]
    key: str = field(repr=False)
    tls: bool = False
    project: str = ""
    deadline_seconds: float = DEADLINE_SECONDS


@dataclass(frozen=True, slots=True)
class Handle:
    """One revision of a topic.

    Numbers are never reused, a deleted one answers TOPIC_RECREATED.
    """

    name: str
    topic_id: str
    number: int
    created_revision: int
    partitions: int
    cluster_id: str = ""
    """Of the cluster that answered; "" is a handle that nothing is read with."""

    def seed(self, partition: int) -> int:
        """What its stored batches are bound to (codec.partition_seed)."""
        return partition_seed(self.cluster_id, self.number, self.created_revision, partition)


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets [start, end) of one partition. Leads: the log begins here, perhaps inside a batch."""

    handle: Handle
    partition: int
    start: int
    end: int
    leads: bool = False


class ClusterReader:
    """Reads one cluster. Use as a context manager; one per worker, not shared between threads."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._channels: dict[str, grpc.Channel] = {}
        self._routes: dict[tuple[int, int], str] = {}
        self._metadata = (("authorization", f"Bearer {access.key}"),)
        self.cluster_id = ""
        """As the last `topics` was answered."""

    def __enter__(self) -> "ClusterReader":
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def topics(self, *names: str) -> list[Handle]:
        """The topics of these names, or every topic the key may see.

        TOPIC_NOT_FOUND names the first missing one.
        """
        reply = self._describe(names)
        self.cluster_id = reply.cluster_id
        for topic in reply.topics:
            if topic.error.code:
                missing = error_of(topic.error)
                raise SourceError(missing.code, missing.message, missing.hint)
        return sorted(
            (
                Handle(
                    topic.name,
                    topic.id,
                    topic.number,
                    topic.created_revision,
                    len(topic.partitions),
                    reply.cluster_id,
                )
                for topic in reply.topics
            ),
            key=lambda handle: handle.number,
        )

    def is_deleted(self, handle: Handle, failure: SourceError) -> bool:
        """Whether a read failed because the topic was deleted; the cluster itself says so."""
        if failure.code not in ("TOPIC_NOT_FOUND", "TOPIC_RECREATED"):
            return False
        revision = (handle.number, handle.created_revision)
        return all((each.number, each.created_revision) != revision for each in self.topics())

    def bounds(self, handle: Handle, partition: int) -> tuple[int, int]:
        """(log start, high watermark) of a partition: what may be read now."""
        reply = self._fetch(Range(handle, partition, 0, 0), offset=0, bytes_max=1, wait_ms=0)
        return reply.log_start, reply.high_watermark

    def replies(self, wanted: Range, *, skip_truncated: bool) -> Iterator[list[Batch]]:
        """The stored batches that cover `wanted`, in order, one list a reply. The first may begin
        below it, the last end above.

        skip_truncated: go on at the log's start when retention overtakes the read, instead of
        LOG_TRUNCATED.
        """
        offset = wanted.start
        while offset < wanted.end:
            reply = self._fetch(wanted, offset=offset, bytes_max=FETCH_BYTES, wait_ms=WAIT_MS)
            if reply.status == stream_pb2.TRUNCATED:
                if not skip_truncated:
                    raise _truncated(wanted, offset, reply.log_start)
                offset = max(offset + 1, reply.log_start)
                continue
            found = _walked(reply, wanted)
            reached = found[-1].base_offset + found[-1].last_offset_delta + 1 if found else 0
            if reached <= offset:
                raise _stalled(wanted, offset, reply.high_watermark)
            yield found
            offset = reached

    def groups(self, project: str) -> list[stream_pb2.GroupRow]:
        """Every group of a project (its id) that ever had a member, by name."""
        found: list[stream_pb2.GroupRow] = []
        after = ""
        while True:
            request = stream_pb2.ListGroupsRequest(project=project, after=after)

            def page(request: stream_pb2.ListGroupsRequest = request) -> stream_pb2.ListGroupsReply:
                address = self._seed()
                method: Call[stream_pb2.ListGroupsReply] = stream_pb2_grpc.GroupsStub(
                    self._channel(address)
                ).ListGroups
                return self._call(method, request, address)

            reply = self._repeat(page)
            found += reply.groups
            after = reply.next
            if not after:
                return found

    def committed(self, handle: Handle, partition: int, group: int) -> int | None:
        """The next offset that a group reads; None: it never committed there."""
        request = stream_pb2.FetchOffsetsRequest(
            topic=handle.number,
            created_revision=handle.created_revision,
            partition=partition,
            group=group,
        )

        def ask() -> stream_pb2.FetchOffsetsReply:
            address = self._routes.get((handle.number, partition)) or self._seed()
            method: Call[stream_pb2.FetchOffsetsReply] = stream_pb2_grpc.StreamStub(
                self._channel(address)
            ).FetchOffsets
            return self._call(method, request, address)

        reply = self._repeat(ask, reroute=lambda: self._describe(()))
        return reply.offset if reply.found else None

    def _describe(self, names: tuple[str, ...]) -> stream_pb2.DescribeReply:
        request = stream_pb2.DescribeRequest(project=self._access.project, topics=names)

        def describe() -> stream_pb2.DescribeReply:
            address = self._seed()
            method: Call[stream_pb2.DescribeReply] = stream_pb2_grpc.ClusterStub(
                self._channel(address)
            ).Describe
            return self._call(method, request, address)

        reply = self._repeat(describe)
        addresses = {node.id: node.address for node in reply.nodes}
        for topic in reply.topics:
            for partition in topic.partitions:
                address = addresses.get(partition.primary)
                if address:
                    self._routes[topic.number, partition.index] = address
        return reply

    def _fetch(
        self, wanted: Range, *, offset: int, bytes_max: int, wait_ms: int
    ) -> stream_pb2.FetchReply:
        request = stream_pb2.FetchRequest(
            topic=wanted.handle.number,
            created_revision=wanted.handle.created_revision,
            partition=wanted.partition,
            offset=offset,
            bytes_max=bytes_max,
            wait_ms_max=wait_ms,
        )

        def fetch() -> stream_pb2.FetchReply:
            address = self._routes.get((wanted.handle.number, wanted.partition)) or self._seed()
            stub = stream_pb2_grpc.StreamStub(self._channel(address))
            return _checked(self._call(stub.Fetch, request, address), wanted)

        return self._repeat(fetch, reroute=lambda: self._describe(()))

    def _seed(self) -> str:
        return random.choice(self._access.bootstrap)

    def _repeat(
        self, attempt: Callable[[], Message], reroute: Callable[[], object] | None = None
    ) -> Message:
        """Run `attempt` until it answers, fails for good, or the deadline passes."""
        deadline = Deadline(self._access.deadline_seconds)
        backoff = Backoff()
        while True:
            try:
                return attempt()
            except HeadraceError as error:
                pause = backoff.pause(error.retry_after)
                if not repeatable(error, idempotent=True) or deadline.remaining() <= pause:
                    raise SourceError(error.code, error.message, error.hint) from None
                time.sleep(pause)
                if changes_route(error) and reroute is not None:
                    self._routes.clear()
                    reroute()

    def _call(self, method: Call[Message], request: object, address: str) -> Message:
        try:
            return method(request, timeout=CALL_SECONDS, metadata=self._metadata)
        except grpc.RpcError as failure:
            # The sync and the async error answer the same questions; only their classes differ.
            raise error_of_call(cast(grpc.aio.AioRpcError, failure), address) from None

    def _channel(self, address: str) -> grpc.Channel:
        if address not in self._channels:
            options = [
                ("grpc.max_receive_message_length", RECEIVE_BYTES_MAX),
                ("grpc.enable_retries", 0),
            ]
            self._channels[address] = (
                grpc.secure_channel(address, grpc.ssl_channel_credentials(), options)
                if self._access.tls
                else grpc.insecure_channel(address, options)
            )
        return self._channels[address]


def _checked(reply: stream_pb2.FetchReply, wanted: Range) -> stream_pb2.FetchReply:
    """The statuses inside a reply that are failures: another node, later, or never."""
    if reply.status == stream_pb2.NOT_PRIMARY:
        raise NotHere("Another node leads the partition.")
    if reply.status == stream_pb2.REBUILDING:
        raise Retryable("The partition is being rebuilt.")
    if reply.status == stream_pb2.CORRUPT:
        raise SourceError(
            "LOG_CORRUPT",
            f"{_place(wanted)}: stored bytes fail their checksum and are not served.",
            "Nothing can be billed from this partition until the operator has repaired it.",
        )
    return reply


def _walked(reply: stream_pb2.FetchReply, wanted: Range) -> list[Batch]:
    """The batches of a reply that begin below the end of the range, each checked by its CRCs."""
    stored = batches(reply.batches, wanted.handle.seed(wanted.partition))
    try:
        return [batch for batch in stored if batch.base_offset < wanted.end]
    except CodecError as damage:
        raise SourceError(
            "LOG_CORRUPT",
            f"{_place(wanted)}: what the node sent is not what was stored: {damage}.",
            "Run again; if it stays, the node's disk or memory is bad.",
        ) from None


def _truncated(wanted: Range, offset: int, log_start: int) -> SourceError:
    return SourceError(
        "LOG_TRUNCATED",
        f"{_place(wanted)}: retention removed offsets {offset} to {log_start - 1} during the read.",
        "Load again: planning starts at what is left. Or set the option truncated=skip.",
    )


def _stalled(wanted: Range, offset: int, high_watermark: int) -> SourceError:
    return SourceError(
        "LOG_STALLED",
        f"{_place(wanted)}: no batch at offset {offset} below the high watermark {high_watermark}.",
        "The node lost committed records or is confused: see its log, then run again.",
    )


def _place(wanted: Range) -> str:
    return f"{wanted.handle.name or wanted.handle.number}[{wanted.partition}]"
