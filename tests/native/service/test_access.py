"""Who may do what over gRPC: keys, roles, organizations, topic handles."""

import queue
import time
from collections.abc import Iterator

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from tests.support.clients.grpc_client import (
    EDITOR,
    EXPIRED,
    PARTITIONS,
    SCOPED,
    SECRET,
    STRANGER,
    SYSTEM_TOPIC,
    TOPIC,
    VIEWER,
    WAIT_S,
    bearer,
    high_watermark,
    metric,
    produce,
    raw,
    refusal,
    request,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, grant_row, token


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "MISSING_CREDENTIALS"),
        ("Bearer nonsense", "INVALID_CREDENTIALS"),
        (f"Bearer {token(EDITOR, 'w' * 43)}", "INVALID_CREDENTIALS"),
        (f"Bearer {token('nobody0001', SECRET)}", "INVALID_CREDENTIALS"),
        (f"Bearer {token(EXPIRED, SECRET)}", "EXPIRED_CREDENTIALS"),
    ],
)
def test_a_wrong_key_is_refused_by_name(
    host: Host, channel: grpc.Channel, value: str | None, code: str
) -> None:
    metadata = () if value is None else (("authorization", value),)
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request(), metadata=metadata)
    status, error = refusal(failure)
    assert (status, error.code) == (grpc.StatusCode.UNAUTHENTICATED, code)
    assert SECRET not in str(error)


def test_a_revoked_key_stops_working_on_an_open_connection(
    host: Host, channel: grpc.Channel
) -> None:
    host.submit(grant_row("shortlived", SECRET, principal=30))
    produce(channel, request(), metadata=bearer("shortlived"))
    host.submit(grant_row("shortlived", SECRET, gone=True))
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request(), metadata=bearer("shortlived"))
    assert refusal(failure)[1].code == "INVALID_CREDENTIALS"


@pytest.mark.parametrize(
    ("key", "changes", "status", "code"),
    [
        (VIEWER, {}, "PERMISSION_DENIED", "PERMISSION_DENIED"),
        (SCOPED, {}, "PERMISSION_DENIED", "PERMISSION_DENIED"),
        (STRANGER, {}, "NOT_FOUND", "TOPIC_NOT_FOUND"),
        (EDITOR, {"topic": 999}, "NOT_FOUND", "TOPIC_NOT_FOUND"),
        (EDITOR, {"created_revision": 6}, "FAILED_PRECONDITION", "TOPIC_RECREATED"),
        (EDITOR, {"partition": PARTITIONS}, "NOT_FOUND", "PARTITION_NOT_FOUND"),
        (EDITOR, {"topic": SYSTEM_TOPIC}, "PERMISSION_DENIED", "SYSTEM_TOPIC"),
        (EDITOR, {"topic": 0}, "NOT_FOUND", "TOPIC_NOT_FOUND"),
    ],
)
def test_a_topic_handle_is_judged_before_anything_is_stored(
    host: Host, channel: grpc.Channel, key: str, changes: dict[str, int], status: str, code: str
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request((b"v",), **changes), metadata=bearer(key))
    found, error = refusal(failure)
    assert (found.name, error.code) == (status, code)


def test_only_the_node_key_calls_node_methods_and_it_consumes_everything(
    host: Host, channel: grpc.Channel
) -> None:
    node = (("authorization", f"Bearer {engine_host.ADMIN_TOKEN}"),)
    admin = raw(channel, "/headrace.node.v1.Admin/Describe")
    assert admin(b"x", metadata=node, timeout=WAIT_S) == b"x"
    with pytest.raises(grpc.RpcError) as failure:
        admin(b"x", metadata=bearer(), timeout=WAIT_S)
    assert refusal(failure)[1].code == "PERMISSION_DENIED"
    call = raw(channel, "/headrace.stream.v1.Stream/Fetch")
    message = wire.FetchRequest(topic=SYSTEM_TOPIC, created_revision=7).SerializeToString()
    reply = wire.FetchReply.FromString(call(message, metadata=node, timeout=WAIT_S))
    assert reply.status == wire.EMPTY


def produce_stream(
    channel: grpc.Channel,
) -> "grpc.StreamStreamMultiCallable[wire.ProduceRequest, wire.ProduceReply]":
    return channel.stream_stream(
        "/headrace.stream.v1.Stream/ProduceStream",
        wire.ProduceRequest.SerializeToString,
        wire.ProduceReply.FromString,
    )


class Requests:
    """Requests one at a time, when they are asked to leave."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[wire.ProduceRequest | None] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[wire.ProduceRequest]:
        return iter(self.queue.get, None)


def test_a_revoked_key_stops_at_the_next_message_of_an_open_stream(
    host: Host, channel: grpc.Channel
) -> None:
    host.submit(grant_row("shortlived", SECRET, principal=30))
    requests = Requests()
    call = produce_stream(channel)(iter(requests), metadata=bearer("shortlived"), timeout=WAIT_S)
    requests.queue.put(request())
    assert not next(call).HasField("error")
    host.submit(grant_row(VIEWER, SECRET, principal=17, verbs=engine_host.CONSUME))
    requests.queue.put(request())
    assert not next(call).HasField("error")
    host.submit(grant_row("shortlived", SECRET, gone=True))
    requests.queue.put(request())
    with pytest.raises(grpc.RpcError) as failure:
        next(call)
    requests.queue.put(None)
    status, error = refusal(failure)
    assert (status, error.code) == (grpc.StatusCode.UNAUTHENTICATED, "INVALID_CREDENTIALS")


def test_a_key_that_lost_its_role_produces_no_more_on_an_open_stream(
    host: Host, channel: grpc.Channel
) -> None:
    host.submit(grant_row("shortlived", SECRET, principal=30))
    requests = Requests()
    call = produce_stream(channel)(iter(requests), metadata=bearer("shortlived"), timeout=WAIT_S)
    requests.queue.put(request())
    assert not next(call).HasField("error")
    host.submit(grant_row("shortlived", SECRET, principal=30, verbs=engine_host.CONSUME))
    requests.queue.put(request())
    assert next(call).error.code == "PERMISSION_DENIED"
    requests.queue.put(None)


def test_an_expired_key_stops_at_the_next_message_of_an_open_stream(
    host: Host, channel: grpc.Channel
) -> None:
    expires_at_us = time.time_ns() // 1000 + 700_000
    host.submit(grant_row("shortlived", SECRET, principal=30, expires_at_us=expires_at_us))
    requests = Requests()
    call = produce_stream(channel)(iter(requests), metadata=bearer("shortlived"), timeout=WAIT_S)
    requests.queue.put(request())
    assert not next(call).HasField("error")
    # It was not read, nothing of it stored: no reply, and the stream ends.
    while time.time_ns() // 1000 <= expires_at_us:
        pass
    requests.queue.put(request())
    with pytest.raises(grpc.RpcError) as failure:
        next(call)
    requests.queue.put(None)
    assert refusal(failure)[1].code == "EXPIRED_CREDENTIALS"


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_session_at_the_host_ends_when_its_key_does(
    host: Host, channel: grpc.Channel, how: str
) -> None:
    expires_at_us = time.time_ns() // 1000 + 500_000 if how == "expired" else 0
    host.submit(grant_row("shortlived", SECRET, principal=30, expires_at_us=expires_at_us))
    opened = len(host.opened)
    call = raw(channel, "/headrace.test.Echo/Never").future(
        b"", metadata=bearer("shortlived"), timeout=WAIT_S
    )
    host.wait_until(lambda: len(host.opened) > opened)
    key = host.opened[-1][0]
    if how == "revoked":
        host.submit(grant_row("shortlived", SECRET, gone=True))
    with pytest.raises(grpc.RpcError) as failure:
        call.result()
    status, error = refusal(failure)
    wanted = "EXPIRED_CREDENTIALS" if how == "expired" else "INVALID_CREDENTIALS"
    assert (status, error.code) == (grpc.StatusCode.UNAUTHENTICATED, wanted)
    host.wait_until(lambda: key in host.cancelled)


def test_a_waiting_fetch_ends_when_its_key_is_revoked(host: Host, channel: grpc.Channel) -> None:
    host.submit(grant_row("shortlived", SECRET, principal=30))
    message = wire.FetchRequest(
        topic=TOPIC,
        created_revision=7,
        partition=5,
        offset=high_watermark(channel, 5),
        wait_ms_max=60_000,
    )
    waits = metric(host, "headrace_fetch_waits_total")
    call = raw(channel, "/headrace.stream.v1.Stream/Fetch").future(
        message.SerializeToString(), metadata=bearer("shortlived"), timeout=WAIT_S
    )
    while metric(host, "headrace_fetch_waits_total") == waits:
        assert not call.done()
    host.submit(grant_row("shortlived", SECRET, gone=True))
    with pytest.raises(grpc.RpcError) as failure:
        call.result()
    assert refusal(failure)[1].code == "INVALID_CREDENTIALS"
