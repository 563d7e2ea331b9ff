"""Unary replies that nobody reads: their memory is bounded, and other readers go on."""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support.clients.grpc_client import (
    EDITOR,
    GRPC_OPTIONS,
    ROWS,
    TOPIC,
    VIEWER,
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
    WINDOW_UPDATE,
    Peer,
    call_headers,
    frame,
)
from tests.support.clients.messages_client import EVENTS, NAMED_ROWS
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host
from tests.support.processes.platform import wait_until

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


ECHO = "/headrace.test.Echo/Unary"
REFUSED = "headrace_replies_refused_total"
FULL = "queue for administrative calls is full"
FRAME_BYTES = 100_000
STREAM_WINDOW = 8 << 20


def large_call(stream: int, path: str, message: bytes) -> bytes:
    """A call with a message of many frames."""
    body = struct.pack(">BI", 0, len(message)) + message
    pieces = [body[at : at + FRAME_BYTES] for at in range(0, len(body), FRAME_BYTES)]
    frames = [frame(DATA, 0, stream, piece) for piece in pieces[:-1]]
    return b"".join(
        [
            call_headers(stream, path=path),
            *frames,
            frame(DATA, END_STREAM, stream, pieces[-1]),
        ]
    )


def taken(call: Callable[[], bytes]) -> bytes:
    """What a call comes to once the host has room for it: what was sent before stands in its
    queue."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return call()
        except grpc.RpcError as failure:
            if FULL not in str(failure.details()) or time.monotonic() > deadline:
                raise


@pytest.mark.parametrize("shards", [1, 3])
def test_answers_of_cold_calls_that_nobody_reads_bound_memory_too(
    tmp_path: Path, shards: int
) -> None:
    settings = engine_host.config(tmp_path / "node", memory_bytes=POOL_BYTES, shards=shards)
    with Host(settings) as running, ExitStack() as opened:
        running.submit(*ROWS)
        used = metric(running, "headrace_pool_used_bytes")
        with ExitStack() as standing:
            peers = [standing.enter_context(Peer(running, receive_bytes=4096)) for _ in range(12)]
            for peer in peers:
                peer.greet()
                for stream in range(1, 41, 2):
                    peer.send(large_call(stream, ECHO, bytes(1 << 20)))
            wait_until(lambda: metric(running, REFUSED) > 50, "refusals", WAIT_S)
            assert metric(running, "headrace_pool_used_bytes") < shards * POOL_BYTES // 2
            assert metric(running, "headrace_pool_refused_total") == 0
            channel = opened.enter_context(grpc.insecure_channel(running.address, GRPC_OPTIONS))
            # Another principal's calls are answered, and those of this one that say little.
            echo = raw(channel, ECHO)
            large = bytes(range(256)) * 4096
            assert taken(lambda: echo(large, metadata=bearer(VIEWER), timeout=WAIT_S)) == large
            assert produce(channel, request()).record_count == 1
            with pytest.raises(grpc.RpcError) as failure:
                taken(lambda: echo(large, metadata=bearer(EDITOR), timeout=WAIT_S))
            status, error = refusal(failure)
            assert (status, error.code) == (
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "MEMORY_EXHAUSTED",
            )
            assert "take them, then repeat" in error.message
        wait_until(
            lambda: metric(running, "headrace_pool_used_bytes") < used + (2 << 20),
            "all of it came back",
            WAIT_S,
        )


PRODUCE_STREAM = "/headrace.stream.v1.Stream/ProduceStream"


class Deaf:
    """A ProduceStream that sends as long as it has window, and takes no answers beyond 64 KiB."""

    def __init__(self, peer: Peer, value: bytes) -> None:
        message = request((value,)).SerializeToString()
        message = struct.pack(">BI", 0, len(message)) + message
        self._many = message * (FRAME_BYTES // len(message))
        self._peer = peer
        self._window = STREAM_WINDOW
        self.sent_bytes = 0
        peer.greet()
        peer.send(call_headers(1, path=PRODUCE_STREAM))

    def send(self) -> None:
        """Until the window that is known has gone."""
        while self._window >= len(self._many):
            self._peer.send(frame(DATA, 0, 1, self._many))
            self._window -= len(self._many)
            self.sent_bytes += len(self._many)

    def window(self) -> bool:
        """Whether there is window to send more, by now."""
        self._window += self._peer.granted(1)
        return self._window >= len(self._many)


def test_a_produce_stream_whose_answers_nobody_reads_gets_no_window(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node")) as running, ExitStack() as opened:
        running.submit(*ROWS)
        peer = opened.enter_context(Peer(running, receive_bytes=4096))
        stream = Deaf(peer, bytes(200))
        while stream.window():
            stream.send()
            wait_until(
                lambda: metric(running, "headrace_received_bytes_total") > stream.sent_bytes,
                "all came",
                WAIT_S,
            )
        assert stream.sent_bytes < 3 * STREAM_WINDOW
        assert metric(running, REFUSED) == 0
        # It reads on, and may send on.
        for number in (0, 1):
            peer.send(frame(WINDOW_UPDATE, 0, number, struct.pack(">I", 1 << 30)))
        wait_until(stream.window, "window comes back", WAIT_S)


def test_produce_streams_with_more_unread_answers_than_their_principals_share_are_ended(
    tmp_path: Path,
) -> None:
    settings = engine_host.config(tmp_path / "node", memory_bytes=POOL_BYTES)
    with Host(settings) as running, ExitStack() as opened:
        running.submit(*ROWS)
        for _ in range(3):
            Deaf(opened.enter_context(Peer(running, receive_bytes=4096)), b"").send()
        wait_until(lambda: metric(running, REFUSED) > 0, "a stream is ended", WAIT_S)
        assert metric(running, "headrace_pool_used_bytes") < POOL_BYTES // 2
        assert metric(running, "headrace_pool_refused_total") == 0
        with grpc.insecure_channel(running.address, GRPC_OPTIONS) as channel:
            assert produce(channel, request()).record_count == 1
