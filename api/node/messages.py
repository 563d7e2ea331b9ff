"""Reads and writes messages at the cluster's nodes, with the caller's own key.

The node checks the key by itself, as it does for every client: this module grants nothing, and
cannot reach what the key cannot. Every call has a deadline and every answer a bound. The pool owns
the connections.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar, cast

import grpc

from api.db.database import EPOCH, microseconds
from api.http.errors import (
    ConflictError,
    DomainError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    RateLimitedError,
    UnavailableError,
)
from api.node.call_limit import CALLS_MAX, RETRY_SECONDS, NodeBusyError
from api.node.client import error_detail
from api.node.pool import CircuitOpenError, NodePool
from headrace.wire import stream_pb2, stream_pb2_grpc

DEADLINE_SECONDS: Final = 5.0
FIRST_US: Final = microseconds(datetime.min.replace(tzinfo=UTC))
LAST_US: Final = microseconds(datetime.max.replace(tzinfo=UTC))
REFUSALS: Final[dict[grpc.StatusCode, type[DomainError]]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    # What was never written: asking again finds no more.
    grpc.StatusCode.OUT_OF_RANGE: InvalidRequestError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.PERMISSION_DENIED: ForbiddenError,
    grpc.StatusCode.FAILED_PRECONDITION: ConflictError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: RateLimitedError,
}

Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class Place:
    """A topic as the nodes know it, and who asks for it (``bearer``: the field Authorization)."""

    address: str
    project: str
    topic: str
    partitions: int
    bearer: str = field(repr=False)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What travels with every call."""
        return (("authorization", self.bearer),)

    def fetch(
        self, partition: int, offset: int, *, messages: int, size_bytes: int, wait_ms: int = 0
    ) -> stream_pb2.FetchMessagesRequest:
        """The question for some messages of a partition."""
        return stream_pb2.FetchMessagesRequest(
            project=self.project,
            topic=self.topic,
            partition=partition,
            offset=offset,
            messages_max=messages,
            bytes_max=size_bytes,
            wait_ms_max=wait_ms,
        )


class NodeCalls:
    """The calls of one request to a node, with the key of the caller."""

    def __init__(self, pool: NodePool, address: str, bearer: str) -> None:
        self._pool = pool
        self._address = address
        self._metadata = (("authorization", bearer),)

    def _call(
        self, method_of: Callable[[grpc.Channel], Callable[..., Reply]], request: object
    ) -> Reply:
        self._pool.refresh(self._address)
        with refusals(), self._pool.calling(self._address, DEADLINE_SECONDS) as connection:
            method = method_of(connection.calls)
            return method(request, timeout=DEADLINE_SECONDS, metadata=self._metadata)


class NodeReader(NodeCalls):
    """The messages of one topic."""

    def __init__(self, pool: NodePool, place: Place) -> None:
        super().__init__(pool, place.address, place.bearer)
        self.place = place

    def fetch(
        self, partition: int, offset: int, *, messages: int, size_bytes: int
    ) -> stream_pb2.FetchMessagesReply:
        """Some messages of a partition, at once."""
        request = self.place.fetch(partition, offset, messages=messages, size_bytes=size_bytes)
        reply = self._call(lambda to: stream_pb2_grpc.StreamStub(to).FetchMessages, request)
        return cast("stream_pb2.FetchMessagesReply", reply)

    def offset_at(self, partition: int, moment: datetime) -> int:
        """The first offset that was appended at or after a moment; the end if there is none."""
        topic = self._described()
        request = stream_pb2.ListOffsetsRequest(
            topic=topic.number,
            created_revision=topic.created_revision,
            partition=partition,
            time_us=microseconds(moment),
        )
        reply = self._call(lambda to: stream_pb2_grpc.StreamStub(to).ListOffsets, request)
        return cast("stream_pb2.ListOffsetsReply", reply).offset

    def publish(
        self, partition: int | None, message: stream_pb2.Message
    ) -> stream_pb2.PublishReply:
        """Stores one message, at least once."""
        request = stream_pb2.PublishRequest(
            project=self.place.project,
            topic=self.place.topic,
            partition=partition,
            messages=[message],
        )
        reply = self._call(lambda to: stream_pb2_grpc.StreamStub(to).Publish, request)
        return cast("stream_pb2.PublishReply", reply)

    def _described(self) -> stream_pb2.Topic:
        request = stream_pb2.DescribeRequest(project=self.place.project, topics=[self.place.topic])
        reply = self._call(lambda to: stream_pb2_grpc.ClusterStub(to).Describe, request)
        topic = cast("stream_pb2.DescribeReply", reply).topics[0]
        if topic.HasField("error"):
            raise NotFoundError(topic.error.message, code=topic.error.code, hint=topic.error.hint)
        return topic


class NodeFollower:
    """Waits for the messages of one topic, in the event loop."""

    def __init__(self, pool: NodePool, place: Place) -> None:
        self.place = place
        self._pool = pool

    async def fetch(
        self, partition: int, offset: int, *, messages: int, size_bytes: int, wait_ms: int
    ) -> stream_pb2.FetchMessagesReply:
        """Some messages of a partition, as soon as there are any."""
        request = self.place.fetch(
            partition, offset, messages=messages, size_bytes=size_bytes, wait_ms=wait_ms
        )
        seconds = DEADLINE_SECONDS + wait_ms / 1000
        # It holds no thread, and tails have a limit of their own.
        calling = self._pool.calling(self.place.address, seconds, limited=False)
        with refusals(), calling as connection:
            call = stream_pb2_grpc.StreamStub(connection.waits).FetchMessages.future(
                request, timeout=seconds, metadata=self.place.metadata
            )
            return cast("stream_pb2.FetchMessagesReply", await _answer(call))


async def _answer(call: "grpc.Future[Reply]") -> Reply:
    """The answer of a call that was sent. The call ends with its task."""
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()

    def wake(_call: object) -> None:
        # The loop may have ended first: then nothing waits in it any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(answered.set)

    call.add_done_callback(wake)
    try:
        await answered.wait()
    finally:
        call.cancel()
    return call.result()


@contextmanager
def refusals() -> Iterator[None]:
    """What a node says no to, as errors of this API."""
    try:
        yield
    except grpc.RpcError as error:
        raise refusal(cast("grpc.Call", error)) from error
    except NodeBusyError as error:
        raise UnavailableError(
            f"{CALLS_MAX} calls of this API to the node are in progress, the maximum: the node "
            "answers slowly or not at all. This request was not sent to it.",
            code="NODE_BUSY",
            hint="Repeat the request after the seconds in Retry-After. If the error persists, see "
            "`headrace explain` of the node.",
            retry_after_seconds=RETRY_SECONDS,
        ) from error
    except (CircuitOpenError, grpc.FutureCancelledError) as error:
        raise _unanswered(None) from error


def refusal(error: grpc.Call) -> DomainError:
    """A node's no. What it says of a key that this API knows is a matter of moments: the key is on
    its way."""
    status, detail = error.code(), error_detail(error)
    if status is grpc.StatusCode.UNAUTHENTICATED:
        return UnavailableError(
            "The node does not know this key.",
            hint="It learns a new key within a second or two; ask again. One that was revoked it "
            "has forgotten.",
            retry_after_seconds=1,
        )
    if detail is None or status not in REFUSALS:
        return _unanswered(detail)
    return REFUSALS[status](detail.message, code=detail.code, hint=detail.hint)


def _unanswered(detail: stream_pb2.Error | None) -> UnavailableError:
    return UnavailableError(
        detail.message if detail else "The node does not answer.",
        hint=detail.hint if detail else "`headrace explain` of the node says more.",
        retry_after_seconds=1,
    )


def instant(time_us: int) -> datetime:
    """A time of the wire: microseconds since 1970, UTC. Producers may say any; what the calendar
    has no day for is its first or last moment."""
    return EPOCH + timedelta(microseconds=min(max(time_us, FIRST_US), LAST_US))
