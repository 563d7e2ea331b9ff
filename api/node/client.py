"""What the control plane asks nodes with its own key: gRPC with a deadline on every call.

A cluster answers by whichever of its nodes can be reached: commands go through its metadata log,
so it does not matter which. What a node refuses becomes a :class:`NodeFailure` with the node's own
code.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, Protocol, TypeVar, cast

import grpc

from api.node.call_limit import CALLS_MAX, RETRY_SECONDS, NodeBusyError
from api.node.failure import FailureKind, NodeFailure
from api.node.fan_out import Send, answers
from api.node.fence import Fence
from api.node.pool import CircuitOpenError, Connection, NodePool
from api.node.positions import Position, PositionQuery, ask
from dataplane.wire import node_pb2, node_pb2_grpc
from headrace.wire import stream_pb2, stream_pb2_grpc

DEADLINE_SECONDS: Final = 5.0
# The one call that waits for work: every partition closes its window and publishes it.
FLUSH_SECONDS: Final = 30.0
NO_KEY: Final = "key_none"
# What a request gets, and never a worker: the node has as many calls under way as it may have.
NODE_BUSY: Final = "NODE_BUSY"
KINDS: Final[dict[grpc.StatusCode, FailureKind]] = {
    grpc.StatusCode.UNAVAILABLE: FailureKind.UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: FailureKind.UNREACHABLE,
    grpc.StatusCode.ABORTED: FailureKind.CONFLICT,
    grpc.StatusCode.INVALID_ARGUMENT: FailureKind.INVALID,
    grpc.StatusCode.FAILED_PRECONDITION: FailureKind.INVALID,
    grpc.StatusCode.ALREADY_EXISTS: FailureKind.INVALID,
    grpc.StatusCode.RESOURCE_EXHAUSTED: FailureKind.THROTTLED,
}

Request = TypeVar("Request", contravariant=True)
Reply = TypeVar("Reply", covariant=True)


class _Method(Protocol[Request, Reply]):
    def __call__(
        self, request: Request, /, *, timeout: float, metadata: Sequence[tuple[str, str]]
    ) -> Reply: ...


def _describe(channel: grpc.Channel) -> _Method[node_pb2.DescribeRequest, node_pb2.DescribeReply]:
    return cast(
        "_Method[node_pb2.DescribeRequest, node_pb2.DescribeReply]",
        node_pb2_grpc.AdminStub(channel).Describe,
    )


def _flush(
    channel: grpc.Channel,
) -> _Method[node_pb2.FlushUsageRequest, node_pb2.FlushUsageReply]:
    return cast(
        "_Method[node_pb2.FlushUsageRequest, node_pb2.FlushUsageReply]",
        node_pb2_grpc.AdminStub(channel).FlushUsage,
    )


def _purge(channel: grpc.Channel) -> _Method[node_pb2.PurgeRequest, node_pb2.PurgeReply]:
    return cast(
        "_Method[node_pb2.PurgeRequest, node_pb2.PurgeReply]",
        node_pb2_grpc.AdminStub(channel).Purge,
    )


def _apply(channel: grpc.Channel) -> _Method[node_pb2.ApplyRequest, node_pb2.ApplyReply]:
    return cast(
        "_Method[node_pb2.ApplyRequest, node_pb2.ApplyReply]",
        node_pb2_grpc.AdminStub(channel).Apply,
    )


class NodeClient:
    """Calls to nodes over the connections of a pool.

    :param deadline_seconds: how long an ordinary call may take.
    :param limited: whether its calls count towards the limit of calls to a node: those of requests
        do, and those of a worker do not, which has a thread of its own.
    """

    def __init__(
        self, pool: NodePool, *, deadline_seconds: float = DEADLINE_SECONDS, limited: bool = True
    ) -> None:
        self._pool = pool
        self._deadline_seconds = deadline_seconds
        self._limited = limited

    def describe(
        self,
        addresses: Sequence[str],
        *,
        topic_ids: Sequence[str] = (),
        key_ids: Sequence[str] = (),
    ) -> node_pb2.DescribeReply:
        """What the cluster holds of some objects."""
        request = node_pb2.DescribeRequest(topic_ids=topic_ids, key_ids=key_ids)
        return self._call(addresses, _describe, request)

    def describe_all(self, addresses: Sequence[str]) -> node_pb2.DescribeReply:
        """Every topic and every group of a cluster."""
        return self._call(addresses, _describe, node_pb2.DescribeRequest(all=True, groups=True))

    def node_status(self, address: str) -> node_pb2.DescribeReply:
        """What a node says of itself."""
        # The key that is named is none: nothing named would be everything.
        return self._call([address], _describe, node_pb2.DescribeRequest(key_ids=[NO_KEY]))

    def positions(
        self, address: str, queries: Sequence[PositionQuery]
    ) -> dict[PositionQuery, Position]:
        """How far groups have read, of any organization."""
        metadata = self._metadata()
        with self._lease(address) as connection:
            return ask(connection.calls, metadata, queries)

    def offsets_at(
        self, address: str, requests: Sequence[stream_pb2.ListOffsetsRequest]
    ) -> list[stream_pb2.ListOffsetsReply | None]:
        """Where times lie in partitions, of any organization; None where no answer came in
        time."""
        metadata = self._metadata()
        with self._lease(address) as connection:
            send = cast(
                "Send[stream_pb2.ListOffsetsRequest, stream_pb2.ListOffsetsReply]",
                stream_pb2_grpc.StreamStub(connection.calls).ListOffsets.future,
            )
            return answers(send, metadata, requests)

    def put_topic(
        self, addresses: Sequence[str], fence: Fence, topic: node_pb2.PutTopic
    ) -> node_pb2.ApplyReply:
        """Makes a topic be as described."""
        return self._apply(addresses, node_pb2.ApplyRequest(fence=fence.message(), put_topic=topic))

    def delete_topic(
        self, addresses: Sequence[str], fence: Fence, topic_id: str, force_reason: str
    ) -> node_pb2.ApplyReply:
        """Makes a topic go. It is asked again until the reply says ``deleted``."""
        command = node_pb2.DeleteTopic(topic_id=topic_id, force_reason=force_reason)
        request = node_pb2.ApplyRequest(fence=fence.message(), delete_topic=command)
        return self._apply(addresses, request)

    def put_key(
        self, addresses: Sequence[str], fence: Fence, key: node_pb2.PutKey
    ) -> node_pb2.ApplyReply:
        """Makes a key known."""
        return self._apply(addresses, node_pb2.ApplyRequest(fence=fence.message(), put_key=key))

    def revoke_key(
        self, addresses: Sequence[str], fence: Fence, key_id: str
    ) -> node_pb2.ApplyReply:
        """Makes a key forgotten."""
        revoke = node_pb2.RevokeKey(key_id=key_id)
        return self._apply(
            addresses, node_pb2.ApplyRequest(fence=fence.message(), revoke_key=revoke)
        )

    def put_hold(
        self, addresses: Sequence[str], fence: Fence, hold: node_pb2.PutHold
    ) -> node_pb2.ApplyReply:
        """Places a legal hold. It is in effect once Describe reports it as confirmed."""
        return self._apply(addresses, node_pb2.ApplyRequest(fence=fence.message(), put_hold=hold))

    def release_hold(
        self, addresses: Sequence[str], fence: Fence, hold_id: str, topic_id: str
    ) -> node_pb2.ApplyReply:
        """Releases a legal hold for good."""
        command = node_pb2.ReleaseHold(hold_id=hold_id, topic_id=topic_id)
        request = node_pb2.ApplyRequest(fence=fence.message(), release_hold=command)
        return self._apply(addresses, request)

    def purge(
        self, addresses: Sequence[str], request: node_pb2.PurgeRequest
    ) -> node_pb2.PurgeReply:
        """Moves the beginnings of partitions up; each answers for itself."""
        return self._call(addresses, _purge, request)

    def flush_usage(self, address: str, *, inventory: bool = False) -> int:
        """Closes the open metering windows of one node; how many are still not in `_usage`.
        inventory: also how every partition stands, into `_retention`."""
        # A call this long is never the probe of the circuit breaker. A short one before it is: it
        # closes the circuit of a node that answers again, and finds a silent node in its own time.
        self.node_status(address)
        request = node_pb2.FlushUsageRequest(inventory=inventory)
        return self._call([address], _flush, request, FLUSH_SECONDS).outstanding

    def node_key(self) -> str:
        """The token that the nodes of the cluster accept from the control plane."""
        return self._pool.node_key()

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.node_key()}"),)

    @contextmanager
    def _lease(self, address: str) -> Iterator[Connection]:
        try:
            with self._pool.lease(address, limited=self._limited) as connection:
                yield connection
        except NodeBusyError as error:
            raise _busy(address) from error

    def _apply(
        self, addresses: Sequence[str], request: node_pb2.ApplyRequest
    ) -> node_pb2.ApplyReply:
        return self._call(addresses, _apply, request)

    def _call(
        self,
        addresses: Sequence[str],
        method_of: Callable[[grpc.Channel], _Method[Request, Reply]],
        request: Request,
        seconds: float | None = None,
    ) -> Reply:
        metadata = self._metadata()
        timeout = seconds or self._deadline_seconds
        failure = NodeFailure(
            FailureKind.UNREACHABLE, "NO_NODES", "The cluster has no registered node."
        )
        for address in addresses:
            self._pool.refresh(address)
            try:
                with self._pool.calling(
                    address, timeout, counts=seconds is None, limited=self._limited
                ) as connection:
                    method = method_of(connection.calls)
                    return method(request, timeout=timeout, metadata=metadata)
            except CircuitOpenError:
                failure = _unreachable(address)
            except NodeBusyError:
                failure = _busy(address)
            except grpc.RpcError as error:
                failure = _failure(address, cast("grpc.Call", error))
                if failure.kind is not FailureKind.UNREACHABLE:
                    raise failure from error
        raise failure


def _failure(address: str, error: grpc.Call) -> NodeFailure:
    status = error.code()
    detail = error_detail(error)
    kind = KINDS.get(status, FailureKind.TRANSIENT)
    if kind is FailureKind.UNREACHABLE and detail is None:
        return _unreachable(address)
    code = detail.code if detail is not None else status.name
    message = detail.message if detail is not None else str(error.details())
    after = (
        timedelta(milliseconds=detail.retry_after_ms) if detail and detail.retry_after_ms else None
    )
    return NodeFailure(kind, code, message, after=after)


def _unreachable(address: str) -> NodeFailure:
    """The text of grpc names sockets and changes from call to call; a status must not."""
    message = f"The node at {address} does not answer."
    return NodeFailure(FailureKind.UNREACHABLE, "NODE_UNREACHABLE", message)


def _busy(address: str) -> NodeFailure:
    message = f"{CALLS_MAX} calls to the node at {address} are in progress, the maximum."
    after = timedelta(seconds=RETRY_SECONDS)
    return NodeFailure(FailureKind.THROTTLED, NODE_BUSY, message, after=after)


def error_detail(error: grpc.Call) -> stream_pb2.Error | None:
    """The typed error inside a status, if the node sent one."""
    for name, value in error.trailing_metadata() or ():
        if name == "grpc-status-details-bin" and isinstance(value, bytes):
            status = stream_pb2.Status.FromString(value)
            for each in status.details:
                if each.type_url.endswith("headrace.stream.v1.Error"):
                    return stream_pb2.Error.FromString(each.value)
    return None
