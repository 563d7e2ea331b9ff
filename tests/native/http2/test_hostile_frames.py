"""Hostile HTTP/2 and gRPC against a running engine (X28-X34): whatever a client sends, it gets a
typed answer or is closed by name, the node's memory stays bounded, and others notice nothing.
"""

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import (
    ContinuationFrame,
    GoAwayFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from headrace.wire import stream_pb2 as wire
from native.engine import EngineLimits
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    ROWS,
    TOPIC,
    VIEWER,
    bearer,
    metric,
    produce,
    request,
)
from tests.support.clients.hostile_client import PREFACE, HostileClient, literal, prefixed
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host

GROWTH_BYTES_MAX = 64 << 20
# Who floods has bytes under way that the node closes without reading: TCP then answers with a reset
# and may take the node's last word with it. The metric tells either way.
CALMED = (ErrorCodes.ENHANCE_YOUR_CALM, None)
NEVER = "/grpc.health.v1.Health/Never"
FETCH = "/headrace.stream.v1.Stream/Fetch"
STREAMS_MAX = 256
HEADERS_BYTES_MAX = 16384
ENDED = "headrace_connections_ended_total"
PING = PingFrame(0, b"12345678").serialize()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with Host(engine_host.config(tmp_path_factory.mktemp("node") / "node")) as running:
        running.submit(*ROWS)
        yield running


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A node that waits a second where another waits minutes."""
    limits = EngineLimits(idle_ms=1500, age_ms=4000, age_grace_ms=1000, stall_ms=1000)
    folder = tmp_path_factory.mktemp("impatient") / "node"
    with Host(engine_host.config(folder, limits=limits, **engine_host.LARGE_BATCHES)) as running:
        running.submit(*ROWS)
        yield running


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@contextmanager
def undisturbed(host: Host) -> Iterator[None]:
    """Another client produces all the while, and the process does not grow."""
    ending = threading.Event()
    produced: list[int] = []
    failures: list[grpc.RpcError] = []
    options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(host.address, options) as channel:
        produce(channel, request())

        def work() -> None:
            while not ending.is_set():
                try:
                    produced.append(produce(channel, request()).record_count)
                except grpc.RpcError as error:
                    failures.append(error)

        thread = threading.Thread(target=work)
        before = resident_bytes()
        thread.start()
        try:
            yield
        finally:
            grown = resident_bytes() - before
            ending.set()
            thread.join()
        produce(channel, request())
    assert not failures
    assert produced
    assert grown <= GROWTH_BYTES_MAX


def ended(host: Host, reason: str) -> int:
    return metric(host, ENDED, f'reason="{reason}"')


FLOODS = {
    "pings": PING,
    "settings": SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: 65535}).serialize(),
    "priorities": PriorityFrame(1, 0, 16).serialize(),
    "window-updates": WindowUpdateFrame(0, 1).serialize(),
    "empty-data": HostileClient.data(1, b""),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_frames_without_data_is_ended(host: Host, flood: str) -> None:
    before = ended(host, "frames")
    with undisturbed(host), HostileClient(host) as client:
        client.send(client.headers(1, NEVER))
        client.flood(FLOODS[flood], 500_000)
        assert client.closed() in CALMED
    assert ended(host, "frames") == before + 1


def test_a_rapid_reset_is_ended(host: Host) -> None:
    before = ended(host, "resets")
    with undisturbed(host), HostileClient(host) as client:
        cancel = int(ErrorCodes.CANCEL)
        for first in range(1, 200_000, 400):
            frames = b"".join(
                client.headers(stream) + RstStreamFrame(stream, cancel).serialize()
                for stream in range(first, first + 400, 2)
            )
            if not client.send(frames):
                break
        assert client.closed() in CALMED
    assert ended(host, "resets") == before + 1
    assert metric(host, "headrace_calls_refused_total") == 0


def test_a_client_that_makes_us_reset_its_streams_is_ended_too(host: Host) -> None:
    before = ended(host, "resets")
    with undisturbed(host), HostileClient(host) as client:
        for first in range(1, 200_000, 400):
            # No method, no path: an error of the stream, ours to reset.
            frames = b"".join(
                client.block(stream, literal("a", "b")) for stream in range(first, first + 400, 2)
            )
            if not client.send(frames):
                break
        assert client.closed() in CALMED
    assert ended(host, "resets") == before + 1


def test_keepalive_pings_without_a_call_are_ended_with_the_word_that_grpc_knows(
    host: Host,
) -> None:
    before = ended(host, "pings")
    with undisturbed(host), HostileClient(host) as client:
        while client.open and client.send(PING):
            for _ in client.frames(within_s=0.1):
                pass
        assert client.goaways[0] == (ErrorCodes.ENHANCE_YOUR_CALM, b"too_many_pings")
    assert ended(host, "pings") == before + 1


def test_pings_beside_a_call_are_answered(host: Host) -> None:
    with HostileClient(host) as client:
        client.send(client.headers(1, NEVER) + PING * 500)
        answered = 0
        for frame in client.frames():
            answered += isinstance(frame, PingFrame)
            if answered == 500:
                break
        assert not client.goaways


def test_header_blocks_that_never_end_are_ended(host: Host) -> None:
    with undisturbed(host), HostileClient(host) as client:
        client.send(client.block(1, literal("a", "b"), whole=False))
        client.flood(ContinuationFrame(1, literal("a", "b")).serialize(), 100_000)
        assert client.closed() is not None


def test_a_list_of_headers_over_the_limit_is_refused_by_name(host: Host) -> None:
    with undisturbed(host), HostileClient(host) as client:
        many = {f"x{number}": "v" * 100 for number in range(HEADERS_BYTES_MAX // 100)}
        block = b"".join(literal(name, value) for name, value in client.fields())
        block += b"".join(literal(name, value) for name, value in many.items())
        client.send(client.block(1, block[:16000], whole=False))
        client.send(ContinuationFrame(1, block[16000:], flags=["END_HEADERS"]).serialize())
        answer = client.answer(1)
    assert answer.headers["grpc-status"] == str(grpc.StatusCode.RESOURCE_EXHAUSTED.value[0])
    assert answer.error.code == "HEADERS_TOO_LARGE"


def test_a_few_bytes_that_unpack_into_megabytes_of_headers_are_refused(host: Host) -> None:
    with undisturbed(host), HostileClient(host) as client:
        block = b"".join(literal(name, value) for name, value in client.fields())
        # Remembered in the table once (literal with indexing), then named by one byte each.
        value = b"v" * 3800
        block += b"\x40\x01x\x7f" + bytes([(3800 - 127) & 127 | 128, (3800 - 127) >> 7]) + value
        block += b"\xbe" * 12_000
        client.send(client.block(1, block[:16000], whole=False))
        client.send(ContinuationFrame(1, block[16000:], flags=["END_HEADERS"]).serialize())
        answer = client.answer(1)
    assert answer.error.code == "HEADERS_TOO_LARGE"


def test_streams_over_the_limit_are_refused_and_the_others_live(host: Host) -> None:
    with undisturbed(host), HostileClient(host) as client:
        for _ in client.frames():
            if client.acks:
                break
        over = 2 * STREAMS_MAX + 1
        for stream in range(1, over + 1, 2):
            client.send(client.headers(stream, NEVER))
        assert client.answer(over).reset in (ErrorCodes.REFUSED_STREAM, ErrorCodes.PROTOCOL_ERROR)
        assert not client.answers.keys() - {over}


def test_answers_that_a_client_never_takes_are_dropped(impatient: Host) -> None:
    before = metric(impatient, "headrace_replies_stalled_total")
    with undisturbed(impatient), HostileClient(impatient, window=0) as client:
        client.send(client.headers(1) + client.data(1, prefixed(request().SerializeToString())))
        assert client.answer(1).reset == ErrorCodes.ENHANCE_YOUR_CALM
    assert metric(impatient, "headrace_replies_stalled_total") == before + 1


def test_a_client_that_never_reads_is_closed(impatient: Host) -> None:
    before = ended(impatient, "stalled")
    wanted = wire.FetchRequest(topic=TOPIC, created_revision=7, bytes_max=8 << 20)
    fetch = prefixed(wanted.SerializeToString())
    with grpc.insecure_channel(impatient.address, GRPC_OPTIONS) as channel:
        for _ in range(4):
            produce(channel, request((bytes(4 << 20),)))
    with (
        undisturbed(impatient),
        HostileClient(impatient, window=(1 << 31) - 1, buffer=4096) as (client),
    ):
        client.send(WindowUpdateFrame(0, (1 << 30)).serialize())
        key = bearer(VIEWER)[0][1]
        for stream in range(1, 17, 2):
            fields = [(n, key if n == "authorization" else v) for n, v in client.fields(FETCH)]
            block = b"".join(literal(name, value) for name, value in fields)
            client.send(client.block(stream, block) + client.data(stream, fetch, end=True))
        impatient.wait_until(lambda: ended(impatient, "stalled") > before)
    assert ended(impatient, "stalled") == before + 1


LIES = {
    "a-length-of-4-GiB": (prefixed(b"", size=(1 << 32) - 1), "REQUEST_TOO_LARGE"),
    "a-length-over-the-limit": (prefixed(b"", size=(8 << 20) + 65537), "REQUEST_TOO_LARGE"),
    "compressed": (prefixed(b"\0" * 10, flag=1), "COMPRESSION_REFUSED"),
    "an-unknown-flag": (prefixed(b"\0" * 10, flag=0xFE), "COMPRESSION_REFUSED"),
    "no-protobuf": (prefixed(b"\xff" * 10), "MALFORMED_REQUEST"),
    "two-messages": (prefixed(request().SerializeToString()) * 2, "MALFORMED_REQUEST"),
    "half-a-prefix": (b"\0\0", "MALFORMED_REQUEST"),
    "nothing": (b"", "MALFORMED_REQUEST"),
}


@pytest.mark.parametrize("encoding", ["identity", "gzip", "nonsense"])
@pytest.mark.parametrize("lie", LIES)
def test_a_message_that_lies_is_refused_by_name(host: Host, lie: str, encoding: str) -> None:
    body, code = LIES[lie]
    with HostileClient(host) as client:
        client.send(client.headers(1, grpc_encoding=encoding) + client.data(1, body, end=True))
        answer = client.answer(1)
        # The second message of a unary call finds the first one's answer on its way.
        assert lie == "two-messages" or answer.error.code == code
        assert answer.headers[":status"] == "200"
        assert client.open


def test_a_named_encoding_harms_nobody_while_no_message_uses_it(host: Host) -> None:
    body = prefixed(request().SerializeToString())
    with HostileClient(host) as client:
        client.send(client.headers(1, grpc_encoding="nonsense") + client.data(1, body, end=True))
        assert client.answer(1).headers["grpc-status"] == "0"


BEGINNINGS = {
    "http-1": b"GET / HTTP/1.1\r\nhost: node\r\n\r\n",
    "tls": bytes.fromhex("160301020001000001fc0303") + bytes(64),
    "noise": bytes(range(256)) * 4,
    "half-a-preface": PREFACE[:12] + b"\0" * 12,
    "no-settings": PREFACE + PING,
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_wrong_beginning_is_closed(host: Host, beginning: str) -> None:
    with undisturbed(host), HostileClient(host, greet=False) as client:
        client.send(BEGINNINGS[beginning])
        assert client.closed() in (None, ErrorCodes.PROTOCOL_ERROR)


def raw_frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


NONSENSE = {
    "headers-of-an-even-stream": raw_frame(1, 4, 2, literal("a", "b")),
    "data-of-an-idle-stream": raw_frame(0, 0, 7, b"data"),
    "reset-of-an-idle-stream": raw_frame(3, 0, 7, bytes(4)),
    "continuation-of-nothing": raw_frame(9, 4, 1, literal("a", "b")),
    "a-push": raw_frame(5, 4, 1, bytes(4)),
    "settings-of-a-stream": raw_frame(4, 0, 1, b""),
    "settings-of-five-bytes": raw_frame(4, 0, 0, bytes(5)),
    "an-acknowledgement-with-a-body": raw_frame(4, 1, 0, bytes(6)),
    "a-window-beyond-31-bits": raw_frame(8, 0, 0, b"\x7f\xff\xff\xff") * 2,
    "a-window-of-zero": raw_frame(8, 0, 0, bytes(4)),
    "a-ping-of-seven-bytes": raw_frame(6, 0, 0, bytes(7)),
    "a-frame-over-the-limit": raw_frame(0, 0, 1, b"")[3:].join([b"\xff\xff\xff", b""]),
    "padding-over-the-frame": raw_frame(0, 8, 1, b"\xff" + bytes(4)),
    "an-index-beyond-the-table": raw_frame(1, 5, 1, b"\xff\xff\xff\x7f"),
    "a-goaway-that-goes-up": GoAwayFrame(0, 1).serialize() + GoAwayFrame(0, 9).serialize(),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_frames_against_the_protocol_end_the_connection(host: Host, nonsense: str) -> None:
    with undisturbed(host), HostileClient(host) as client:
        client.send(NONSENSE[nonsense])
        code = client.closed()
        assert code is None or code != ErrorCodes.NO_ERROR


def test_unknown_frames_are_passed_over(host: Host) -> None:
    with HostileClient(host) as client:
        client.send(raw_frame(0xEE, 0xFF, 0, bytes(100)) * 100)
        body = prefixed(request().SerializeToString())
        client.send(client.headers(1) + client.data(1, body, end=True))
        assert client.answer(1).headers["grpc-status"] == "0"


def test_an_idle_connection_is_told_to_go(impatient: Host) -> None:
    before = ended(impatient, "idle")
    body = prefixed(request().SerializeToString())
    with HostileClient(impatient) as client:
        client.send(client.headers(1) + client.data(1, body, end=True))
        assert client.answer(1).headers["grpc-status"] == "0"
        assert client.closed() == ErrorCodes.NO_ERROR
    assert ended(impatient, "idle") == before + 1


def test_an_old_connection_is_told_to_go_and_ended_after_a_grace(impatient: Host) -> None:
    before = ended(impatient, "age")
    with HostileClient(impatient) as client:
        client.send(client.headers(1, NEVER))
        for frame in client.frames():
            if isinstance(frame, GoAwayFrame):
                break
        # Told so while its call went on; ended all the same.
        assert client.open
        assert ended(impatient, "age") == before
        assert client.closed() == ErrorCodes.NO_ERROR
    assert ended(impatient, "age") == before + 1


def test_every_bound_leaves_no_memory_behind(host: Host) -> None:
    pool = "headrace_pool_used_bytes"
    with HostileClient(host) as client:
        client.send(b"".join(client.headers(stream, NEVER) for stream in range(1, 401, 2)))
        client.send(b"".join(client.data(stream, prefixed(b"", size=4096)) for stream in (1, 3)))
        client.send(PING)
        next(client.frames())
    host.wait_until(lambda: metric(host, pool) <= 1 << 20)
