"""The node's gRPC face, spoken to by ordinary grpcio clients over real sockets."""

import asyncio
import base64
import itertools
import socket
import time

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    PARTITIONS,
    PRODUCE,
    SECRET,
    VIEWER,
    WAIT_S,
    bearer,
    produce,
    raw,
    refusal,
    request,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host


def test_health_says_serving_without_a_key(host: Host, channel: grpc.Channel) -> None:
    assert raw(channel, "/grpc.health.v1.Health/Check")(b"", timeout=WAIT_S) == b"\x08\x01"


def test_a_cold_call_crosses_to_the_host_and_back(host: Host, channel: grpc.Channel) -> None:
    echo = raw(channel, "/headrace.test.Echo/Unary")
    assert echo(b"hello", metadata=bearer(), timeout=WAIT_S) == b"hello"
    assert echo(b"", metadata=bearer(), timeout=WAIT_S) == b""
    large = bytes(range(256)) * 12_000
    assert echo(large, metadata=bearer(), timeout=WAIT_S) == large


def test_a_cold_stream_echoes_every_message_in_order(host: Host, channel: grpc.Channel) -> None:
    call = channel.stream_stream("/headrace.test.Echo/Stream", lambda data: data, lambda data: data)
    sent = [bytes([index]) * (index * 977) for index in range(200)]
    assert list(call(iter(sent), metadata=bearer(), timeout=WAIT_S)) == sent


def test_a_status_of_the_host_reaches_the_client(host: Host, channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        raw(channel, "/headrace.test.Echo/Refuse")(b"", metadata=bearer(), timeout=WAIT_S)
    assert failure.value.code() == grpc.StatusCode.NOT_FOUND
    assert failure.value.details() == "not here"


def test_the_host_is_told_who_calls_and_until_when(host: Host, channel: grpc.Channel) -> None:
    before = time.monotonic_ns()
    raw(channel, "/headrace.test.Echo/Who")(b"", metadata=bearer(VIEWER), timeout=WAIT_S)
    _, path, deadline_ns, frame = host.opened[-1]
    principal, organization, project, verbs, key_id = engine_host.CALLER.unpack_from(frame.body)
    assert path == "/headrace.test.Echo/Who"
    assert (principal, organization, project, verbs) == (17, 1, 0, engine_host.CONSUME)
    assert key_id.rstrip(b"\0").decode() == VIEWER
    assert before < deadline_ns <= time.monotonic_ns() + int(WAIT_S * 1e9) + 1_000_000_000


def test_a_cancelled_cold_call_is_reported_to_the_host_once(
    host: Host, channel: grpc.Channel
) -> None:
    call = raw(channel, "/headrace.test.Echo/Never").future(b"", metadata=bearer())
    host.wait_until(lambda: bool(host.opened) and host.opened[-1][1].endswith("/Never"))
    key = host.opened[-1][0]
    call.cancel()
    host.wait_until(lambda: key in host.cancelled)
    assert host.cancelled.count(key) == 1


def test_a_cold_call_ends_at_its_deadline(host: Host, channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        raw(channel, "/headrace.test.Echo/Never")(b"", metadata=bearer(), timeout=0.2)
    assert failure.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    host.wait_until(lambda: host.opened[-1][0] in host.cancelled)


def test_a_method_nobody_knows_and_a_malformed_message_are_refused(
    host: Host, channel: grpc.Channel
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        raw(channel, "/headrace.stream.v1.Stream/Produce")(
            b"\xff", metadata=bearer(), timeout=WAIT_S
        )
    assert refusal(failure)[1].code == "MALFORMED_REQUEST"


def test_a_message_above_the_limit_is_refused_before_it_is_read(
    host: Host, channel: grpc.Channel
) -> None:
    message = bytes(9 << 20)
    with pytest.raises(grpc.RpcError) as failure:
        raw(channel, "/headrace.stream.v1.Stream/Produce")(
            message, metadata=bearer(), timeout=WAIT_S
        )
    assert refusal(failure)[1].code == "REQUEST_TOO_LARGE"
    assert produce(channel, request(partition=1)).record_count == 1


def test_grpc_compression_is_refused(host: Host, channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request((b"v" * 5000,)), compression=grpc.Compression.Gzip)
    status, error = refusal(failure)
    assert (status, error.code) == (grpc.StatusCode.UNIMPLEMENTED, "COMPRESSION_REFUSED")


def test_metadata_above_the_limit_is_refused(host: Host, channel: grpc.Channel) -> None:
    large = (*bearer(), ("x-large", "v" * 15_900), ("x-more", "v" * 500))
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request(), metadata=large)
    assert failure.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_an_aio_client_speaks_the_same(host: Host) -> None:
    async def run() -> list[int]:
        async with grpc.aio.insecure_channel(host.address, GRPC_OPTIONS) as opened:
            call = opened.unary_unary(
                PRODUCE,
                wire.ProduceRequest.SerializeToString,
                wire.ProduceReply.FromString,
            )
            replies = await asyncio.gather(
                *(
                    call(request(partition=index % PARTITIONS), metadata=bearer(), timeout=WAIT_S)
                    for index in range(300)
                )
            )
            stream = opened.stream_stream(
                "/headrace.stream.v1.Stream/ProduceStream",
                wire.ProduceRequest.SerializeToString,
                wire.ProduceReply.FromString,
            )(metadata=bearer(), timeout=WAIT_S)
            for index in range(100):
                await stream.write(request(request=index))
            await stream.done_writing()
            answered = [reply.request async for reply in stream]
            assert sorted(answered) == list(range(100))
            return [reply.record_count for reply in replies]

    assert asyncio.run(run()) == [1] * 300


def test_garbage_on_the_port_closes_only_that_connection(host: Host, channel: grpc.Channel) -> None:

    for garbage in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64,
    ):
        with socket.create_connection(("127.0.0.1", host.port), timeout=WAIT_S) as peer:
            peer.sendall(garbage)
            while peer.recv(4096):
                pass
    assert produce(channel, request()).record_count == 1


def test_many_connections_are_spread_and_all_served(host: Host) -> None:
    for index in range(12):
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(host.address, options) as opened:
            assert produce(opened, request(partition=index % PARTITIONS)).record_count == 1


def test_the_metrics_name_what_was_refused(host: Host, channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError):
        produce(channel, request(topic=999))
    text = host.engine.metrics()
    assert 'code="TOPIC_NOT_FOUND"' in text
    lines = itertools.groupby(
        line.split("{")[0] for line in text.splitlines() if not line.startswith("#")
    )
    names = [name for name, _ in lines]
    assert len(names) == len(set(names))
    assert base64.b64encode(SECRET.encode()).decode() not in text
