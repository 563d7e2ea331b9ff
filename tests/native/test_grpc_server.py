"""The node's gRPC face, spoken to by ordinary grpcio clients over real sockets."""

import asyncio
import base64
import itertools
import socket
import threading
import time
from collections.abc import Iterator

import grpc
import pytest

from headrace import codec
from headrace.wire import stream_pb2 as wire
from tests.support import engine_host
from tests.support.engine_host import Host, grant_row, token, topic_row

WAIT_S = engine_host.WAIT_S
PRODUCE = "/headrace.stream.v1.Stream/Produce"
SECRET = "s" * 43
EDITOR, VIEWER, STRANGER, EXPIRED, SCOPED = (
    "editor0001",
    "viewer0001",
    "stranger01",
    "expired001",
    "scoped0001",
)
TOPIC, SYSTEM_TOPIC, SMALL_TOPIC = 20, 21, 22
PARTITIONS = 6
GRPC_OPTIONS = [("grpc.max_receive_message_length", 32 << 20), ("grpc.max_send_message_length", -1)]

ROWS = (
    topic_row(TOPIC, revision=7, partitions=PARTITIONS),
    topic_row(SYSTEM_TOPIC, revision=7, flags=1),
    topic_row(SMALL_TOPIC, revision=7, message_bytes_max=256),
    grant_row(EDITOR, SECRET, principal=16),
    grant_row(VIEWER, SECRET, principal=17, verbs=engine_host.CONSUME),
    grant_row(STRANGER, SECRET, principal=18, organization=2),
    grant_row(EXPIRED, SECRET, principal=19, expires_at_us=1),
    grant_row(SCOPED, SECRET, principal=20, project=9),
)


@pytest.fixture(scope="module", params=[1, 2, 3])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("node") / "node"
    settings = engine_host.config(folder, shards=request.param, direct_io=request.param != 2)
    with Host(settings) as running:
        running.submit(*ROWS)
        yield running


@pytest.fixture
def channel(host: Host) -> Iterator[grpc.Channel]:
    # Own connections, so that round-robin puts them on every shard.
    options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(host.address, options) as opened:
        yield opened


def bearer(public_id: str = EDITOR) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token(public_id, SECRET)}"),)


def batch(*values: bytes) -> bytes:
    return codec.encode([codec.Record(None, value, 1_000_000) for value in values])


def request(values: tuple[bytes, ...] = (b"v",), /, **changes: int) -> wire.ProduceRequest:
    fields = {"topic": TOPIC, "created_revision": 7, "partition": 0, **changes}
    return wire.ProduceRequest(batch=batch(*values), **fields)


def produce(
    channel: grpc.Channel,
    message: wire.ProduceRequest,
    *,
    metadata: tuple[tuple[str, str], ...] | None = None,
    compression: grpc.Compression | None = None,
) -> wire.ProduceReply:
    call = channel.unary_unary(
        PRODUCE, wire.ProduceRequest.SerializeToString, wire.ProduceReply.FromString
    )
    sent = bearer() if metadata is None else metadata
    return call(message, metadata=sent, timeout=WAIT_S, compression=compression)


def fetch(channel: grpc.Channel, **fields: int) -> wire.FetchReply:
    call = channel.unary_unary(
        "/headrace.stream.v1.Stream/Fetch",
        wire.FetchRequest.SerializeToString,
        wire.FetchReply.FromString,
    )
    message = wire.FetchRequest(**{"topic": TOPIC, "created_revision": 7, "partition": 0, **fields})
    return call(message, metadata=bearer(VIEWER), timeout=WAIT_S)


def values_of(reply: wire.FetchReply) -> list[bytes | None]:
    return [
        value for stored in codec.batches(reply.batches) for value in codec.decode(stored).values
    ]


def raw(channel: grpc.Channel, path: str) -> "grpc.UnaryUnaryMultiCallable[bytes, bytes]":
    return channel.unary_unary(path, lambda data: data, lambda data: data)


def refusal(failure: pytest.ExceptionInfo[grpc.RpcError]) -> tuple[grpc.StatusCode, wire.Error]:
    """The status and the Error in its details."""
    error = failure.value
    trailers = {entry.key: entry.value for entry in error.trailing_metadata()}
    details = trailers["grpc-status-details-bin"]
    status = wire.Status.FromString(details)
    assert status.code == error.code().value[0]
    assert status.message == error.details()
    (packed,) = status.details
    found = wire.Error()
    assert packed.Unpack(found)
    assert found.hint
    return error.code(), found


def high_watermark(channel: grpc.Channel, partition: int, topic: int = TOPIC) -> int:
    return fetch(channel, topic=topic, partition=partition).high_watermark


# ---- health and cold calls ----


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


# ---- credentials ----


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


# ---- produce and fetch ----


def test_what_is_produced_is_fetched_from_every_partition(
    host: Host, channel: grpc.Channel
) -> None:
    for partition in range(PARTITIONS):
        base = high_watermark(channel, partition)
        reply = produce(channel, request((b"a", b"b", b"c"), partition=partition))
        assert (reply.base_offset, reply.record_count) == (base, 3)
        assert (reply.persisted, reply.replicas) == (1, 1)
        assert reply.append_time_us > 0
        found = fetch(channel, partition=partition, offset=base)
        assert found.status == wire.OK
        assert found.high_watermark == base + 3
        assert values_of(found) == [b"a", b"b", b"c"]


def test_a_large_batch_goes_in_and_comes_out_whole(host: Host, channel: grpc.Channel) -> None:
    partition = 1
    base = high_watermark(channel, partition)
    value = bytes(range(256)) * (7 * 4096)
    produce(channel, request((value,), partition=partition))
    assert values_of(fetch(channel, partition=partition, offset=base, bytes_max=8 << 20)) == [value]


def test_fetch_waits_until_a_record_is_committed(host: Host, channel: grpc.Channel) -> None:
    for partition in range(PARTITIONS):
        base = high_watermark(channel, partition)
        results: list[wire.FetchReply] = []
        waiting = threading.Thread(
            target=lambda at, part, into: into.append(
                fetch(channel, partition=part, offset=at, wait_ms_max=15_000)
            ),
            args=(base, partition, results),
        )
        waiting.start()
        produce(channel, request((b"late",), partition=partition))
        waiting.join(WAIT_S)
        assert values_of(results[0]) == [b"late"]


def test_fetch_answers_empty_when_its_wait_is_over(host: Host, channel: grpc.Channel) -> None:
    for partition in range(PARTITIONS):
        base = high_watermark(channel, partition)
        started = time.monotonic()
        reply = fetch(channel, partition=partition, offset=base, wait_ms_max=60)
        assert reply.status == wire.EMPTY
        assert reply.high_watermark == base
        assert time.monotonic() - started >= 0.06


def test_a_waiting_fetch_answers_before_the_calls_own_deadline(
    host: Host, channel: grpc.Channel
) -> None:
    call = channel.unary_unary(
        "/headrace.stream.v1.Stream/Fetch",
        wire.FetchRequest.SerializeToString,
        wire.FetchReply.FromString,
    )
    base = high_watermark(channel, 2)
    message = wire.FetchRequest(
        topic=TOPIC, created_revision=7, partition=2, offset=base, wait_ms_max=60_000
    )
    assert call(message, metadata=bearer(VIEWER), timeout=1.0).status == wire.EMPTY


def test_cancelled_long_polls_free_their_slots_at_once(host: Host, channel: grpc.Channel) -> None:
    call = channel.unary_unary(
        "/headrace.stream.v1.Stream/Fetch",
        wire.FetchRequest.SerializeToString,
        wire.FetchReply.FromString,
    )
    for round_index in range(3):
        futures = [
            call.future(
                wire.FetchRequest(
                    topic=TOPIC,
                    created_revision=7,
                    partition=index % PARTITIONS,
                    offset=high_watermark(channel, index % PARTITIONS),
                    wait_ms_max=60_000,
                ),
                metadata=bearer(VIEWER),
            )
            for index in range(40)
        ]
        for future in futures:
            future.cancel()
        # Served on the same connection right after: nothing of the cancelled ones is in the way.
        produce(channel, request((b"%d" % round_index,), partition=3))


def test_an_offset_beyond_the_end_is_refused(host: Host, channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        fetch(channel, partition=0, offset=1_000_000)
    assert refusal(failure)[1].code == "OFFSET_OUT_OF_RANGE"


def test_bad_batches_are_refused_by_name(host: Host, channel: grpc.Channel) -> None:
    good = batch(b"v")
    damaged = bytearray(good)
    damaged[-1] ^= 1
    for bytes_, code in (
        (b"", "INVALID_BATCH"),
        (b"x", "INVALID_BATCH"),
        (bytes(damaged), "INVALID_BATCH"),
    ):
        with pytest.raises(grpc.RpcError) as failure:
            produce(channel, wire.ProduceRequest(topic=TOPIC, created_revision=7, batch=bytes_))
        assert refusal(failure)[1].code == code
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request((b"v" * 500,), topic=SMALL_TOPIC))
    assert refusal(failure)[1].code == "MESSAGE_TOO_LARGE"


def test_a_stream_answers_every_request_and_survives_errors(
    host: Host, channel: grpc.Channel
) -> None:
    call = channel.stream_stream(
        "/headrace.stream.v1.Stream/ProduceStream",
        wire.ProduceRequest.SerializeToString,
        wire.ProduceReply.FromString,
    )
    requests = [
        request((b"s%d" % number,), partition=number % (PARTITIONS + 1), request=number)
        for number in range(700)
    ]
    replies = {
        reply.request: reply for reply in call(iter(requests), metadata=bearer(), timeout=WAIT_S)
    }
    assert set(replies) == set(range(700))
    for number, reply in replies.items():
        if number % (PARTITIONS + 1) == PARTITIONS:
            assert reply.error.code == "PARTITION_NOT_FOUND"
        else:
            assert not reply.HasField("error")
            assert reply.record_count == 1
    for partition in range(PARTITIONS):
        offsets = [
            replies[number].base_offset
            for number in range(700)
            if number % (PARTITIONS + 1) == partition
        ]
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))


def test_a_repeated_batch_of_a_producer_is_stored_once(host: Host, channel: grpc.Channel) -> None:
    def made(sequence: int) -> wire.ProduceRequest:
        part = codec.encode(
            [codec.Record(None, b"once", 1)], producer_id=b"p" * 16, base_sequence=sequence
        )
        return wire.ProduceRequest(topic=TOPIC, created_revision=7, partition=4, batch=part)

    first = produce(channel, made(0))
    again = produce(channel, made(0))
    assert again.duplicate
    assert again.base_offset == first.base_offset
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, made(5))
    error = refusal(failure)[1]
    assert (error.code, error.expected) == ("OUT_OF_SEQUENCE", 1)


def test_offsets_are_committed_in_the_partitions_log_and_fenced(
    host: Host, channel: grpc.Channel
) -> None:
    partition = 5
    produce(channel, request((b"x", b"y"), partition=partition))
    where = {"topic": TOPIC, "created_revision": 7, "partition": partition, "group": 41}
    fence = engine_host.PARTITION_ID.pack(TOPIC, 7, partition, 0)
    close = fence + b"".join(
        value.to_bytes(size, "little")
        for value, size in ((41, 8), (3, 8), (100, 8), (2, 4), (0, 4))
    )
    assert host.request(engine_host.GROUP_FENCE, close)[0] == 0
    commit = channel.unary_unary(
        "/headrace.stream.v1.Stream/CommitOffsets",
        wire.CommitOffsetsRequest.SerializeToString,
        wire.CommitOffsetsReply.FromString,
    )
    read = channel.unary_unary(
        "/headrace.stream.v1.Stream/FetchOffsets",
        wire.FetchOffsetsRequest.SerializeToString,
        wire.FetchOffsetsReply.FromString,
    )
    before = read(wire.FetchOffsetsRequest(**where), metadata=bearer(), timeout=WAIT_S)
    assert not before.found
    message = wire.CommitOffsetsRequest(**where, generation=3, offset=1)
    assert commit(message, metadata=bearer(), timeout=WAIT_S).offset == 1
    after = read(wire.FetchOffsetsRequest(**where), metadata=bearer(), timeout=WAIT_S)
    assert (after.found, after.offset) == (True, 1)
    message = wire.CommitOffsetsRequest(**where, generation=2, offset=2)
    with pytest.raises(grpc.RpcError) as failure:
        commit(message, metadata=bearer(), timeout=WAIT_S)
    assert refusal(failure)[1].code == "FENCED"


def test_the_host_publishes_to_a_system_topic_and_closes_its_meters(
    host: Host, channel: grpc.Channel
) -> None:
    where = engine_host.PARTITION_ID.pack(SYSTEM_TOPIC, 7, 0, 0)
    result, body = host.request(engine_host.PUBLISH, where + batch(b"usage"))
    assert (result, int.from_bytes(body, "little")) == (0, 0)
    produce(channel, request((b"metered",), partition=0))
    metered = engine_host.PARTITION_ID.pack(TOPIC, 7, 0, 0)
    result, body = host.request(engine_host.METER_FLUSH, metered)
    assert result == 0
    assert int.from_bytes(body[:8], "little") >= 1
    host.wait_until(lambda: any(frame.body[:24] == metered for frame in host.closes))


# ---- framing ----


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
    text = host.engine.metrics()
    assert 'headrace_call_failures_total{shard="0",code="TOPIC_NOT_FOUND"}' in text
    lines = itertools.groupby(
        line.split("{")[0] for line in text.splitlines() if not line.startswith("#")
    )
    names = [name for name, _ in lines]
    assert len(names) == len(set(names))
    assert base64.b64encode(SECRET.encode()).decode() not in text
