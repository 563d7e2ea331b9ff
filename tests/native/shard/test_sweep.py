"""Who holds what without using it: half-sent messages and silent connections, on raw sockets."""

import os
import queue
import resource
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import grpc
import pytest

from native.engine import EngineLimits
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    ROWS,
    WAIT_S,
    bearer,
    metric,
    produce,
    raw,
    refusal,
    request,
)
from tests.support.clients.http2_peer import (
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    Peer,
    call_headers,
    frame,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host
from tests.support.processes.platform import wait_until

MEMORY, DEADLINE = 'reason="memory"', 'reason="deadline"'
SILENT, EVICTED = 'reason="silent"', 'reason="evicted"'
CONNECTIONS_MAX = 1024
SILENCE_S = 2.0
MESSAGE_S = 1.0
CALL_S = 0.3
SESSION = "/headrace.stream.v1.Groups/Session"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    limits = EngineLimits(silence_ms=int(SILENCE_S * 1000))
    settings = engine_host.config(
        tmp_path_factory.mktemp("node") / "node", limits=limits, **engine_host.LARGE_BATCHES
    )
    with Host(settings) as running:
        running.submit(*ROWS)
        yield running


def begin(announced: int, sent: int) -> bytes:
    """A message's prefix and its first bytes."""
    return struct.pack(">BI", 0, announced) + b"\x12" * sent


def test_announced_messages_take_no_memory_before_they_arrive(host: Host) -> None:
    before = metric(host, "headrace_pool_used_bytes")
    received = metric(host, "headrace_received_bytes_total")
    sent = call_headers(1) + frame(DATA, 0, 1, begin(8 << 20, 1))
    with ExitStack() as opened:
        for _ in range(32):
            peer = opened.enter_context(Peer(host))
            peer.greet()
            peer.send(sent)
        while metric(host, "headrace_received_bytes_total") < received + 32 * len(sent):
            pass
        assert metric(host, "headrace_pool_used_bytes") - before < 16 << 20
        with grpc.insecure_channel(host.address, GRPC_OPTIONS) as channel:
            assert produce(channel, request((bytes(6 << 20),))).record_count == 1


def test_half_sent_messages_of_one_connection_are_bounded(host: Host) -> None:
    refused = metric(host, "headrace_messages_refused_total", MEMORY)
    with Peer(host) as peer:
        peer.greet()
        for stream in range(1, 41, 2):
            peer.send(call_headers(stream) + frame(DATA, 0, stream, begin(8 << 20, 0)))
            for _ in range(50):
                peer.send(frame(DATA, 0, stream, bytes(100_000)))
        peer.until(HEADERS)
        assert metric(host, "headrace_messages_refused_total", MEMORY) > refused
        with grpc.insecure_channel(host.address, GRPC_OPTIONS) as channel:
            assert produce(channel, request((bytes(1 << 20),))).record_count == 1


def test_a_message_that_is_not_completed_in_time_ends_its_call(host: Host) -> None:
    late = metric(host, "headrace_messages_refused_total", DEADLINE)
    with Peer(host) as peer:
        peer.greet()
        peer.send(call_headers(1, "300m") + frame(DATA, 0, 1, begin(8 << 20, 1)))
        assert peer.until(HEADERS) == 1
    assert metric(host, "headrace_messages_refused_total", DEADLINE) == late + 1


def test_a_message_without_a_deadline_and_a_call_without_a_message_end_too(tmp_path: Path) -> None:
    limits = EngineLimits(message_ms=int(MESSAGE_S * 1000))
    with (
        Host(engine_host.config(tmp_path / "node", limits=limits)) as host,
        Peer(host) as half,
        Peer(host) as never,
    ):
        host.submit(*ROWS)
        for peer in (half, never):
            peer.greet()
        begun = time.monotonic()
        half.send(call_headers(1) + frame(DATA, 0, 1, begin(8 << 20, 1)))
        never.send(call_headers(1))
        assert half.until(HEADERS) == 1
        assert never.until(HEADERS) == 1
        assert time.monotonic() - begun > MESSAGE_S / 2
        assert metric(host, "headrace_messages_refused_total", DEADLINE) == 2


@pytest.mark.parametrize("shards", [1, 3])
def test_a_cold_call_is_not_waited_for_longer_than_the_node_allows(
    tmp_path: Path, shards: int
) -> None:
    limits = EngineLimits(call_ms=int(CALL_S * 1000))
    settings = engine_host.config(tmp_path / "node", shards=shards, limits=limits)
    with Host(settings) as host, grpc.insecure_channel(host.address, GRPC_OPTIONS) as channel:
        host.submit(*ROWS)
        begun = time.monotonic()
        for count, timeout in enumerate((None, WAIT_S), 1):
            with pytest.raises(grpc.RpcError) as failure:
                raw(channel, "/headrace.test.Echo/Never")(b"", metadata=bearer(), timeout=timeout)
            status, error = refusal(failure)
            assert (status, error.code) == (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")
            assert error.message == (
                "the node did not answer within the time that it gives such a call"
            )
            assert error.hint == "see whether it was done, then repeat"
            assert metric(host, "headrace_calls_late_total") == count
            key = host.opened[-1][0]
            host.wait_until(partial(host.cancelled.__contains__, key))
        assert 2 * CALL_S <= time.monotonic() - begun < WAIT_S


def test_the_nodes_limit_for_cold_calls_leaves_sessions_and_answered_calls_alone(
    tmp_path: Path,
) -> None:
    limits = EngineLimits(call_ms=int(CALL_S * 1000))
    with (
        Host(engine_host.config(tmp_path / "node", limits=limits)) as host,
        grpc.insecure_channel(host.address, GRPC_OPTIONS) as channel,
    ):
        host.submit(*ROWS)
        said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        session = channel.stream_stream(SESSION, lambda data: data, lambda data: data)(
            iter(said.get, None), metadata=bearer(), timeout=2 * WAIT_S
        )
        said.put(b"before")
        assert next(session) == b"before"
        with pytest.raises(grpc.RpcError):
            raw(channel, "/headrace.test.Echo/Never")(b"", metadata=bearer(), timeout=WAIT_S)
        assert metric(host, "headrace_calls_late_total") == 1
        said.put(b"after")
        assert next(session) == b"after"
        said.put(None)
        assert list(session) == []
        assert raw(channel, "/headrace.test.Echo/Unary")(b"", metadata=bearer()) == b""
        assert metric(host, "headrace_calls_late_total") == 1


def test_a_peer_that_vanishes_is_asked_after(host: Host) -> None:
    with Peer(host) as peer:
        peer.greet()
        node, near = f"0100007F:{host.port:04X}", f"0100007F:{peer.port:04X}"

        def timer() -> tuple[str, str]:
            lines = Path("/proc/net/tcp").read_text().splitlines()
            (found,) = (line.split()[5] for line in lines if line.split()[1:3] == [node, near])
            kind, ticks = found.split(":")
            return kind, ticks

        # Until the peer's kernel has acknowledged our last frames, another timer runs.
        wait_until(lambda: timer()[0] == "02", "the keepalive timer runs", WAIT_S)
        assert int(timer()[1], 16) <= 60 * os.sysconf("SC_CLK_TCK")


def test_connections_that_say_nothing_are_closed_and_calls_are_not(host: Host) -> None:
    ended = metric(host, "headrace_connections_ended_total", SILENT)
    with (
        Peer(host) as silent,
        Peer(host) as greeted,
        Peer(host) as known,
        grpc.insecure_channel(host.address, GRPC_OPTIONS) as channel,
    ):
        begun = time.monotonic()
        watch = raw(channel, "/grpc.health.v1.Health/Never").future(b"", timeout=2 * WAIT_S)
        greeted.greet()
        known.greet()
        known.send(call_headers(1) + frame(DATA, END_STREAM, 1, begin(0, 0)))
        assert known.until(HEADERS) == 1
        assert GOAWAY in silent.kinds()
        assert time.monotonic() - begun > SILENCE_S / 2
        assert GOAWAY in greeted.kinds()
        assert metric(host, "headrace_connections_ended_total", SILENT) == ended + 2
        # It carries a call, though nobody showed a key; the other one showed a key.
        assert not watch.done()
        watch.cancel()
        known.send(call_headers(3) + frame(DATA, END_STREAM, 3, begin(0, 0)))
        assert known.until(HEADERS) == 3


def test_a_full_table_makes_room_by_closing_the_oldest_that_showed_no_key(
    tmp_path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    try:
        with Host(engine_host.config(tmp_path / "node")) as full, ExitStack() as opened:
            full.submit(*ROWS)
            channel = opened.enter_context(grpc.insecure_channel(full.address, GRPC_OPTIONS))
            produce(channel, request())
            peers = [opened.enter_context(Peer(full)) for _ in range(CONNECTIONS_MAX + 8)]
            for peer in peers[:8]:
                assert GOAWAY in peer.kinds()
            assert metric(full, "headrace_connections_ended_total", EVICTED) >= 8
            # Whoever has a key stays, and new ones are served.
            produce(channel, request())
            options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
            with grpc.insecure_channel(full.address, options) as later:
                produce(later, request())
            assert metric(full, "headrace_connections_refused_total") == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
