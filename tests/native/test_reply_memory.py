"""Unary replies that nobody reads: their memory is bounded, and other readers go on."""

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support import engine_host
from tests.support.engine_host import Host
from tests.support.grpc_client import (
    EDITOR,
    GRPC_OPTIONS,
    ROWS,
    TOPIC,
    VIEWER,
    WAIT_S,
    bearer,
    metric,
    produce,
    refusal,
    request,
)
from tests.support.http2_peer import DATA, END_STREAM, Peer, call_headers, frame
from tests.support.messages_client import EVENTS, NAMED_ROWS
from tests.support.platform import wait_until

POOL_BYTES = 64 << 20
BATCHES = 24
FETCH = "/headrace.stream.v1.Stream/Fetch"
FETCH_MESSAGES = "/headrace.stream.v1.Stream/FetchMessages"
HOLDS = "headrace_fetch_holds_total"
EXHAUSTED = 'code="MEMORY_EXHAUSTED"'


@pytest.fixture(params=[1, 3])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """A node with 24 MiB in a partition of each topic, and a pool of 64 MiB a shard."""
    settings = engine_host.config(tmp_path / "node", memory_bytes=POOL_BYTES, shards=request.param)
    with Host(settings) as running:
        running.submit(*ROWS, *NAMED_ROWS)
        with grpc.insecure_channel(running.address, GRPC_OPTIONS) as opened:
            for index in range(BATCHES):
                produce(opened, one_mib(index))
                produce(opened, one_mib(index, topic=EVENTS, created_revision=3))
        yield running


def one_mib(index: int, **fields: int) -> wire.ProduceRequest:
    return request((bytes([index]) * (1 << 20),), **fields)


def shards_of(host: Host) -> int:
    return host.engine.metrics().count("headrace_pool_used_bytes{")


def call_frames(stream: int, path: str, message: bytes, key: str = EDITOR) -> bytes:
    body = struct.pack(">BI", 0, len(message)) + message
    headers = call_headers(stream, path=path, public_id=key)
    return headers + frame(DATA, END_STREAM, stream, body)


def fetch_request(**fields: int) -> wire.FetchRequest:
    return wire.FetchRequest(topic=TOPIC, created_revision=7, bytes_max=8 << 20, **fields)


PLAIN = wire.FetchMessagesRequest(topic="events", bytes_max=8 << 20).SerializeToString()
CALLS = {FETCH: fetch_request().SerializeToString(), FETCH_MESSAGES: PLAIN}


def ask_and_never_read(host: Host, opened: ExitStack, path: str, key: str = EDITOR) -> list[Peer]:
    """Eight connections with twenty calls each."""
    peers = [opened.enter_context(Peer(host, receive_bytes=4096)) for _ in range(8)]
    for peer in peers:
        peer.greet()
        for stream in range(1, 41, 2):
            peer.send(call_frames(stream, path, CALLS[path], key))
    return peers


def held_more(host: Host, before: int) -> bool:
    return metric(host, HOLDS) > before


@pytest.mark.parametrize("path", list(CALLS))
def test_replies_that_nobody_reads_bound_memory_and_hold_up_nobody(filled: Host, path: str) -> None:
    with ExitStack() as opened:
        ask_and_never_read(filled, opened, path)
        wait_until(lambda: metric(filled, HOLDS) > 100, "most of them wait for room", WAIT_S)
        # What is held does not wait for ever: it is told why.
        wait_until(
            lambda: metric(filled, "headrace_call_failures_total", EXHAUSTED) > 100,
            "refusals",
            WAIT_S,
        )
        assert metric(filled, "headrace_pool_used_bytes") < shards_of(filled) * POOL_BYTES // 2
        with grpc.insecure_channel(filled.address, GRPC_OPTIONS) as channel:
            stub = stubs.StreamStub(channel)
            for index in range(BATCHES):
                found = stub.Fetch(
                    fetch_request(offset=index), metadata=bearer(VIEWER), timeout=WAIT_S
                )
                assert (found.status, len(found.batches) > 1 << 20) == (wire.OK, True)
            assert produce(channel, one_mib(BATCHES)).record_count == 1
        assert metric(filled, "headrace_pool_refused_total") == 0


def test_a_fetch_without_room_is_told_so_and_served_once_there_is_room(filled: Host) -> None:
    options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(filled.address, options) as channel:
        fetch = stubs.StreamStub(channel).Fetch
        used = metric(filled, "headrace_pool_used_bytes")
        with ExitStack() as standing:
            ask_and_never_read(filled, standing, FETCH)
            wait_until(lambda: metric(filled, HOLDS) > 100, "most of them wait for room", WAIT_S)
            with pytest.raises(grpc.RpcError) as failure:
                fetch(fetch_request(), metadata=bearer(EDITOR), timeout=WAIT_S)
            status, error = refusal(failure)
            assert status == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert (error.code, error.kind) == ("MEMORY_EXHAUSTED", wire.RETRY_SAME_NODE)
            assert "take them, then repeat" in error.message
            holds = metric(filled, HOLDS)
            waiting = fetch.future(
                fetch_request(wait_ms_max=60_000), metadata=bearer(EDITOR), timeout=WAIT_S
            )
            wait_until(lambda: metric(filled, HOLDS) > holds, "it is held", WAIT_S)
            assert not waiting.done()
        assert waiting.result().status == wire.OK
        wait_until(
            lambda: metric(filled, "headrace_pool_used_bytes") < used + (1 << 20),
            "all of it came back",
            WAIT_S,
        )


def test_held_fetches_of_clients_that_go_leave_nothing_behind(filled: Host) -> None:
    used = metric(filled, "headrace_pool_used_bytes")
    for _ in range(3):
        with ExitStack() as opened:
            ask_and_never_read(filled, opened, FETCH)
            before = metric(filled, HOLDS)
            wait_until(partial(held_more, filled, before), "some wait", WAIT_S)
        wait_until(
            lambda: metric(filled, "headrace_pool_used_bytes") < used + (1 << 20), "gone", WAIT_S
        )


def test_a_stopping_node_ends_held_fetches(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node", memory_bytes=POOL_BYTES)
    with ExitStack() as opened:
        with Host(settings) as running:
            running.submit(*ROWS)
            channel = opened.enter_context(grpc.insecure_channel(running.address, GRPC_OPTIONS))
            for index in range(BATCHES):
                produce(channel, one_mib(index))
            ask_and_never_read(running, opened, FETCH)
            wait_until(lambda: metric(running, HOLDS) > 100, "most wait for room", WAIT_S)
            holds = metric(running, HOLDS)
            waiting = stubs.StreamStub(channel).Fetch.future(
                fetch_request(wait_ms_max=60_000), metadata=bearer(EDITOR), timeout=WAIT_S
            )
            wait_until(lambda: metric(running, HOLDS) > holds, "it is held", WAIT_S)
        with pytest.raises(grpc.RpcError) as failure:
            waiting.result()
        assert refusal(failure)[1].code == "STOPPING"
