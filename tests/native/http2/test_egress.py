"""Egress is what the kernel took whole: not what was read from the log, queued, or begun."""

import struct
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    ROWS,
    TOPIC,
    WAIT_S,
    bearer,
    metric,
    produce,
    request,
)
from tests.support.clients.http2_peer import (
    DATA,
    END_STREAM,
    WINDOW_UPDATE,
    Peer,
    call_headers,
    frame,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host
from tests.support.processes.platform import wait_until

FETCH = "/headrace.stream.v1.Stream/Fetch"
CONSUME = "/headrace.stream.v1.Stream/Consume"
SENT = "headrace_metered_egress_bytes_total"
UNSENT = "headrace_metered_egress_unsent_bytes_total"
WINDOW = 65_535  # of a client that says nothing
MORE = 200_000
MIB = 1 << 20


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Host]:
    """A node with 4 MiB in one partition, in batches of 1 MiB."""
    with Host(engine_host.config(tmp_path / "node")) as running:
        running.submit(*ROWS)
        with grpc.insecure_channel(running.address, GRPC_OPTIONS) as opened:
            for index in range(4):
                produce(opened, request((bytes([index]) * MIB,)))
        yield running


def call(stream: int, message: bytes, path: str = FETCH) -> bytes:
    body = struct.pack(">BI", 0, len(message)) + message
    return call_headers(stream, path=path) + frame(DATA, END_STREAM, stream, body)


def fetch_request(offset: int = 0, bytes_max: int = MIB) -> bytes:
    wanted = wire.FetchRequest(topic=TOPIC, created_revision=7, offset=offset, bytes_max=bytes_max)
    return wanted.SerializeToString()


def batches_of(host: Host, offset: int = 0) -> int:
    """Bytes of the batches that such a fetch brings, by a client that takes them."""
    with grpc.insecure_channel(host.address, GRPC_OPTIONS) as opened:
        reply = stubs.StreamStub(opened).Fetch(
            wire.FetchRequest.FromString(fetch_request(offset)),
            metadata=bearer(),
            timeout=WAIT_S,
        )
    return len(reply.batches)


def test_what_was_taken_whole_is_paid_for_once(filled: Host) -> None:
    sizes = [batches_of(filled, offset) for offset in range(4)]
    assert min(sizes) > MIB
    wait_until(lambda: metric(filled, SENT) == sum(sizes), "the kernel took all")
    assert metric(filled, UNSENT) == 0


def test_a_reply_that_was_only_begun_is_nobodys_to_pay(filled: Host) -> None:
    with Peer(filled) as peer:
        peer.greet()
        for stream in (1, 3):
            peer.send(call(stream, fetch_request()))
        # All that the connection's window lets through: a part of the first.
        taken = 0
        while taken < WINDOW:
            header = peer.take(9)
            body = peer.take(int.from_bytes(header[:3], "big"))
            taken += len(body) if header[3] == DATA else 0
        assert metric(filled, SENT) == 0
    wait_until(lambda: metric(filled, UNSENT) > 2 * MIB, "both are given up")
    assert metric(filled, SENT) == 0


def test_a_reply_is_paid_for_when_its_last_byte_left_and_not_before(filled: Host) -> None:
    with Peer(filled) as peer:
        peer.greet()
        peer.send(call(1, fetch_request()))
        size, granted = 0, WINDOW
        while size <= MIB:
            header = peer.take(9)
            body = peer.take(int.from_bytes(header[:3], "big"))
            if header[3] == DATA:
                size += len(body)
            if size == granted:
                assert metric(filled, SENT) == 0
                granted += MORE
                for stream in (0, 1):
                    peer.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", MORE)))
        wait_until(lambda: metric(filled, SENT) > MIB, "all of it left")
        assert metric(filled, SENT) < size
    assert metric(filled, UNSENT) == 0


def test_pushed_replies_that_a_dead_reader_never_got_are_nobodys_to_pay(filled: Host) -> None:
    begin = wire.ConsumeBegin(topic=TOPIC, created_revision=7, credit=1 << 30)
    message = wire.ConsumeRequest(begin=begin).SerializeToString()
    with Peer(filled) as peer:
        peer.greet()
        peer.send(call(1, message, CONSUME))
        assert peer.until(DATA) == 1
    wait_until(lambda: metric(filled, UNSENT) > MIB, "they are given up")
    assert metric(filled, SENT) == 0
    assert metric(filled, "headrace_metered_requests_total") == 4 + 1
