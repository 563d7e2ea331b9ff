"""The only file that calls nodes: gRPC with a deadline on every call, the node key as bearer.

A cluster answers by whichever of its nodes can be reached: commands go through its metadata log,
so it does not matter which. What a node refuses becomes a :class:`PassFailure` with the node's own
code.
"""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

import grpc

from api.node.circuit_breaker import Silence
from api.node.failure import FailureKind, PassFailure
from api.node.fan_out import Sent, answers
from api.node.fence import Fence
from api.node.positions import Position, Question, ask
from dataplane.wire import node_pb2, node_pb2_grpc
from headrace.wire import stream_pb2, stream_pb2_grpc

DEADLINE_SECONDS: Final = 5.0
# The one call that waits for work: every partition closes its window and publishes it.
FLUSH_SECONDS: Final = 30.0
NO_KEY: Final = "key_none"
OPTIONS: Final = (
    ("grpc.max_receive_message_length", 32 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A proxy of the environment is meant for the world outside, never for a node.
    ("grpc.enable_http_proxy", 0),
)
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


class NodeClients:
    """Channels to nodes, one an address, kept open.

    :param key_file: where the node key is; read at every call, so that it may be replaced.
    """

    def __init__(self, key_file: Path, *, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._key_file = key_file
        self._deadline_seconds = deadline_seconds
        self._channels: dict[str, grpc.Channel] = {}
        self._silence = Silence(deadline_seconds)

    def close(self) -> None:
        """Closes every channel."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

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

    def look(self, addresses: Sequence[str]) -> node_pb2.DescribeReply:
        """Every topic and every group of a cluster."""
        return self._call(addresses, _describe, node_pb2.DescribeRequest(all=True, groups=True))

    def node_status(self, address: str) -> node_pb2.DescribeReply:
        """What a node says of itself."""
        # The key that is named is none: nothing named would be everything.
        return self._call([address], _describe, node_pb2.DescribeRequest(key_ids=[NO_KEY]))

    def positions(self, address: str, questions: Sequence[Question]) -> dict[Question, Position]:
        """How far groups have read, of any organization."""
        metadata = (("authorization", f"Bearer {self.node_key()}"),)
        return ask(self._channel(address), metadata, questions)

    def offsets_at(
        self, address: str, requests: Sequence[stream_pb2.ListOffsetsRequest]
    ) -> list[stream_pb2.ListOffsetsReply | None]:
        """Where times lie in partitions, of any organization; None where no answer came in
        time."""
        metadata = (("authorization", f"Bearer {self.node_key()}"),)
        send = cast(
            "Sent[stream_pb2.ListOffsetsRequest, stream_pb2.ListOffsetsReply]",
            stream_pb2_grpc.StreamStub(self._channel(address)).ListOffsets.future,
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
        """Wishes a hold. It is in force once Describe says that it is confirmed."""
        return self._apply(addresses, node_pb2.ApplyRequest(fence=fence.message(), put_hold=hold))

    def release_hold(
        self, addresses: Sequence[str], fence: Fence, hold_id: str, topic_id: str
    ) -> node_pb2.ApplyReply:
        """Wishes a hold no longer, for ever."""
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
        request = node_pb2.FlushUsageRequest(inventory=inventory)
        return self._call([address], _flush, request, FLUSH_SECONDS).outstanding

    def node_key(self) -> str:
        """The token that the nodes of the cluster accept from the control plane."""
        try:
            return self._key_file.read_text(encoding="ascii").strip()
        except OSError as error:
            raise PassFailure(
                FailureKind.TRANSIENT,
                "NODE_KEY_UNREADABLE",
                f"The node key file cannot be read: {error.strerror}.",
            ) from error
        except UnicodeDecodeError as error:
            raise PassFailure(
                FailureKind.TRANSIENT,
                "NODE_KEY_UNREADABLE",
                "The node key file holds no node key (hr_node_...).",
            ) from error

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
        metadata = (("authorization", f"Bearer {self.node_key()}"),)
        failure = PassFailure(
            FailureKind.UNREACHABLE, "NO_NODES", "The cluster has no registered node."
        )
        for address in addresses:
            if not self._silence.may_ask(address):
                failure = _unreachable(address)
                continue
            began = time.monotonic()
            try:
                method = method_of(self._channel(address))
                timeout = seconds or self._deadline_seconds
                reply = method(request, timeout=timeout, metadata=metadata)
                self._silence.answered(address)
                return reply
            except grpc.RpcError as error:
                call = cast("grpc.Call", error)
                if call.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                    self._silence.answered(address)
                elif seconds is None:
                    self._silence.timed_out(address, began)
                failure = _failure(address, call)
                if failure.kind is not FailureKind.UNREACHABLE:
                    raise failure from error
        raise failure

    def _channel(self, address: str) -> grpc.Channel:
        if address not in self._channels:
            self._channels[address] = grpc.insecure_channel(address, options=OPTIONS)
        return self._channels[address]


def _failure(address: str, error: grpc.Call) -> PassFailure:
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
    return PassFailure(kind, code, message, after=after)


def _unreachable(address: str) -> PassFailure:
    """The text of grpc names sockets and changes from call to call; a status must not."""
    message = f"The node at {address} does not answer."
    return PassFailure(FailureKind.UNREACHABLE, "NODE_UNREACHABLE", message)


def error_detail(error: grpc.Call) -> stream_pb2.Error | None:
    """The typed error inside a status, if the node sent one."""
    for name, value in error.trailing_metadata() or ():
        if name == "grpc-status-details-bin" and isinstance(value, bytes):
            status = stream_pb2.Status.FromString(value)
            for each in status.details:
                if each.type_url.endswith("headrace.stream.v1.Error"):
                    return stream_pb2.Error.FromString(each.value)
    return None
