"""Who holds what without using it: half-sent messages and silent connections, on raw sockets."""

import os
import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from native.engine import EngineLimits
from tests.support import engine_host
from tests.support.engine_host import Host, token
from tests.support.grpc_client import (
    EDITOR,
    GRPC_OPTIONS,
    PRODUCE,
    ROWS,
    SECRET,
    WAIT_S,
    metric,
    produce,
    raw,
    request,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
ACK, END_STREAM, END_HEADERS = 1, 1, 4
MEMORY, DEADLINE = 'reason="memory"', 'reason="deadline"'
SILENT, EVICTED = 'reason="silent"', 'reason="evicted"'
CONNECTIONS_MAX = 1024
SILENCE_S = 2.0
MESSAGE_S = 1.0


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    limits = EngineLimits(silence_ms=int(SILENCE_S * 1000))
    settings = engine_host.config(tmp_path_factory.mktemp("node") / "node", limits=limits)
    with Host(settings) as running:
        running.submit(*ROWS)
        yield running


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def field(name: str, value: str) -> bytes:
    """A header as HPACK's literal without indexing; both parts are shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def call_headers(stream: int, timeout: str = "") -> bytes:
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": PRODUCE,
        ":authority": "node",
        "content-type": "application/grpc",
        "te": "trailers",
        "authorization": f"Bearer {token(EDITOR, SECRET)}",
    }
    if timeout:
        fields["grpc-timeout"] = timeout
    block = b"".join(field(name, value) for name, value in fields.items())
    return frame(HEADERS, END_HEADERS, stream, block)


class Peer:
    """A client that speaks frames, and only when it is told to."""

    def __init__(self, host: Host) -> None:
        self._socket = socket.create_connection(("127.0.0.1", host.port), timeout=WAIT_S)
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def greet(self) -> None:
        """Agree on settings: from then on frames and windows are as large as the node allows."""
        self.send(PREFACE + frame(SETTINGS, 0, 0))
        self.until(SETTINGS)
        self.send(frame(SETTINGS, ACK, 0))

    def frames(self) -> Iterator[tuple[int, int]]:
        """(kind, stream) of everything that comes until the node closes."""
        while len(header := self._stream.read(9)) == 9:
            self._stream.read(int.from_bytes(header[:3], "big"))
            yield header[3], int.from_bytes(header[5:9], "big")

    def until(self, kind: int) -> int:
        """The stream of the next frame of a kind."""
        return next(stream for found, stream in self.frames() if found == kind)

    def kinds(self) -> list[int]:
        """The kinds of all that comes until the node closes."""
        return [kind for kind, _ in self.frames()]


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


def test_a_peer_that_vanishes_is_asked_after(host: Host) -> None:
    with Peer(host) as peer:
        peer.greet()
        node, near = f"0100007F:{host.port:04X}", f"0100007F:{peer.port:04X}"
        lines = Path("/proc/net/tcp").read_text().splitlines()
        (timer,) = (line.split()[5] for line in lines if line.split()[1:3] == [node, near])
        kind, ticks = timer.split(":")
        assert kind == "02", "no keepalive timer runs"
        assert int(ticks, 16) <= 60 * os.sysconf("SC_CLK_TCK")


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
