"""FetchMessages as any gRPC client sees it: batches taken apart in the node, 1 and 3 shards."""

import asyncio
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from headrace import codec
from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support.clients.grpc_client import (
    EDITOR,
    GRPC_OPTIONS,
    ROWS,
    SCOPED,
    SECRET,
    STRANGER,
    VIEWER,
    WAIT_S,
    bearer,
    metric,
    produce,
    raw,
    refusal,
)
from tests.support.clients.messages_client import (
    EVENTS,
    NAMED_ROWS,
    PARTITIONS,
    end_of,
    fetch_messages,
    message,
    publish,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host

FETCH_MESSAGES = "/headrace.stream.v1.Stream/FetchMessages"
WAITS = "headrace_fetch_waits_total"
CODECS = ("none", "lz4", "zstd")


@pytest.fixture(scope="module", params=[1, 3])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("node") / "node"
    with Host(
        engine_host.config(folder, shards=request.param, **engine_host.LARGE_BATCHES)
    ) as running:
        running.submit(*ROWS, *NAMED_ROWS)
        yield running


def store(channel: grpc.Channel, part: bytes, partition: int = 0) -> int:
    """Produce a client part as an SDK does. Returns its first offset."""
    request = wire.ProduceRequest(topic=EVENTS, created_revision=3, partition=partition, batch=part)
    return produce(channel, request).base_offset


def records(*values: bytes) -> list[codec.Record]:
    return [codec.Record(None, value, 1_000_000) for value in values]


def waits_grow(host: Host, waits: int) -> None:
    host.wait_until(lambda: metric(host, WAITS) > waits)


def values(reply: wire.FetchMessagesReply) -> list[bytes]:
    return [stored.message.value for stored in reply.messages]


@pytest.mark.parametrize("name", CODECS)
def test_what_an_sdk_produced_is_read_as_plain_messages(
    host: Host, channel: grpc.Channel, name: str
) -> None:
    sent = [
        codec.Record(b"k", b"v" * 50, 5, [("a", b"1"), ("a", None), ("é", b"")]),
        codec.Record(None, b"", -7),
        codec.Record(b"", None, 2**50),
    ]
    for partition in range(PARTITIONS):
        base = store(channel, codec.encode(sent, codec=name), partition)
        reply = fetch_messages(channel, partition=partition, offset=base)
        assert reply.status == wire.OK
        assert (reply.next_offset, reply.high_watermark) == (base + 3, base + 3)
        assert [stored.offset for stored in reply.messages] == [base, base + 1, base + 2]
        assert reply.messages[0].append_time_us > 1_000_000_000_000_000
        found = [stored.message for stored in reply.messages]
        assert [(m.key if m.HasField("key") else None) for m in found] == [b"k", None, b""]
        assert [(m.value if m.HasField("value") else None) for m in found] == [b"v" * 50, b"", None]
        assert [m.timestamp_us for m in found] == [5, -7, 2**50]
        pairs = [(h.key, h.value if h.HasField("value") else None) for h in found[0].headers]
        assert pairs == [("a", b"1"), ("a", None), ("é", b"")]


def test_what_is_published_comes_back_message_for_message(
    host: Host, channel: grpc.Channel
) -> None:
    sent = [
        message(b"%d" % number, b"key", headers=(("n", b"%d" % number),), timestamp_us=number + 1)
        for number in range(100)
    ]
    reply = publish(channel, *sent)
    found = fetch_messages(channel, partition=reply.partition, offset=reply.base_offset)
    assert [stored.message for stored in found.messages] == sent


@pytest.mark.parametrize("name", CODECS)
def test_reading_begins_exactly_at_the_offset_and_stops_at_the_limit(
    host: Host, channel: grpc.Channel, name: str
) -> None:
    names = [b"%03d" % number for number in range(60)]
    base = store(channel, codec.encode(records(*names[:50]), codec=name), 1)
    store(channel, codec.encode(records(*names[50:]), codec=name), 1)
    # Forwards, each reply where the last one ended; over the edge of the batches.
    found, at = [], base
    while at < base + 60:
        reply = fetch_messages(channel, partition=1, offset=at, messages_max=7)
        assert reply.messages[0].offset == at
        assert len(reply.messages) == min(7, base + 60 - at)
        found += values(reply)
        at = reply.next_offset
    assert found == names
    # And from anywhere, in no order.
    for start in (59, 0, 30, 29, 49, 50, 12):
        reply = fetch_messages(channel, partition=1, offset=base + start, messages_max=3)
        assert values(reply) == names[start : start + 3]
        assert reply.next_offset == base + min(start + 3, 60)


def test_the_bytes_asked_for_bound_a_reply_but_for_one_message(
    host: Host, channel: grpc.Channel
) -> None:
    base = store(channel, codec.encode(records(*[b"x" * 100] * 20)), 2)
    assert len(fetch_messages(channel, partition=2, offset=base, bytes_max=250).messages) == 2
    assert len(fetch_messages(channel, partition=2, offset=base, bytes_max=1).messages) == 1
    assert len(fetch_messages(channel, partition=2, offset=base, bytes_max=300).messages) == 3


def test_five_hundred_messages_are_returned_unless_more_are_asked_for(
    host: Host, channel: grpc.Channel
) -> None:
    base = store(channel, codec.encode(records(*[b"x"] * 20_000), codec="zstd"), 3)
    assert len(fetch_messages(channel, partition=3, offset=base).messages) == 500
    most = fetch_messages(channel, partition=3, offset=base, messages_max=2**32 - 1)
    assert len(most.messages) == 10_000
    assert most.next_offset == base + 10_000


def test_huge_values_come_back_whole(host: Host, channel: grpc.Channel) -> None:
    value = bytes(range(256)) * (7 * 4096)
    base = publish(channel, message(value), message(b"small"), partition=4).base_offset
    reply = fetch_messages(channel, partition=4, offset=base, bytes_max=8 << 20)
    assert values(reply) == [value, b"small"]
    assert values(fetch_messages(channel, partition=4, offset=base)) == [value]


def test_a_message_larger_than_a_reply_is_refused_and_can_be_passed_by(
    host: Host, channel: grpc.Channel
) -> None:
    part = codec.encode(records(b"before", bytes(20 << 20), b"after"), codec="zstd")
    base = store(channel, part, 5)
    assert values(fetch_messages(channel, partition=5, offset=base)) == [b"before"]
    with pytest.raises(grpc.RpcError) as failure:
        fetch_messages(channel, partition=5, offset=base + 1)
    status, error = refusal(failure)
    assert (status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "REPLY_TOO_LARGE")
    assert error.expected == base + 2
    assert values(fetch_messages(channel, partition=5, offset=base + 2)) == [b"after"]


def client_part(records_bytes: bytes, count: int, announced: int, codec_number: int) -> bytes:
    """A client part whose header and checksum are right, whatever lies behind them."""
    size = 72 + len(records_bytes)
    head = struct.pack("<BBHI", 1, codec_number, 0, count) + bytes(16)
    head += struct.pack("<QIIqqII", 0, 0, count - 1, 5, 5, announced, 0)
    crc = codec.crc32c(head + records_bytes)
    return struct.pack("<II", size, crc) + head + records_bytes


GOOD = codec.encode([codec.Record(None, b"x" * 100, 5)] * 3)[72:]
LIES = {
    "not zstd": client_part(b"garbage", 1, 100, 2),
    "not lz4": client_part(b"\xff" * 50, 1, 100, 1),
    "zstd that announces more": client_part(
        codec.encode([codec.Record(None, b"x" * 100, 5)] * 3, codec="zstd")[72:], 3, 4096, 2
    ),
    "zstd that announces less": client_part(
        codec.encode([codec.Record(None, b"x" * 100, 5)] * 3, codec="zstd")[72:], 3, 30, 2
    ),
    "lz4 that announces 64 MiB": client_part(
        codec.encode([codec.Record(None, b"x" * 100, 5)] * 3, codec="lz4")[72:], 3, 64 << 20, 1
    ),
    "fewer records than counted": client_part(GOOD, 4, len(GOOD), 0),
    "more records than counted": client_part(GOOD, 2, len(GOOD), 0),
    "records of nothing": client_part(b"\xff" * 60, 3, 60, 0),
    "two frames": client_part(
        codec.encode([codec.Record(None, b"x" * 100, 5)], codec="zstd")[72:] * 2, 2, 218, 2
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_batch_that_lies_is_corrupt_and_its_reader_may_go_on_behind_it(
    host: Host, channel: grpc.Channel, lie: str
) -> None:
    first = store(channel, codec.encode(records(b"good")), 0)
    damaged = store(channel, LIES[lie], 0)
    after = store(channel, codec.encode(records(b"after"), codec="zstd"), 0)
    before = fetch_messages(channel, partition=0, offset=first)
    assert (before.status, values(before)) == (wire.OK, [b"good"])
    assert before.next_offset == damaged
    for offset in range(damaged, after):
        reply = fetch_messages(channel, partition=0, offset=offset)
        assert (reply.status, list(reply.messages)) == (wire.CORRUPT, [])
        assert reply.next_offset == after
    assert values(fetch_messages(channel, partition=0, offset=after)) == [b"after"]


def test_at_the_end_there_is_nothing_and_beyond_it_an_error(
    host: Host, channel: grpc.Channel
) -> None:
    for partition in range(PARTITIONS):
        end = end_of(channel, partition)
        reply = fetch_messages(channel, partition=partition, offset=end)
        assert (reply.status, reply.next_offset) == (wire.EMPTY, end)
        with pytest.raises(grpc.RpcError) as failure:
            fetch_messages(channel, partition=partition, offset=end + 1)
        assert refusal(failure)[1].code == "OFFSET_OUT_OF_RANGE"


def test_a_long_poll_ends_with_the_message_it_waited_for(host: Host, channel: grpc.Channel) -> None:
    for partition in range(PARTITIONS):
        end = end_of(channel, partition)
        found: list[wire.FetchMessagesReply] = []
        waiting = threading.Thread(
            target=lambda at, part, into: into.append(
                fetch_messages(channel, partition=part, offset=at, wait_ms_max=15_000)
            ),
            args=(end, partition, found),
        )
        waits = metric(host, WAITS)
        waiting.start()
        waits_grow(host, waits)
        publish(channel, message(b"late"), partition=partition)
        waiting.join(WAIT_S)
        assert values(found[0]) == [b"late"]


def test_a_long_poll_is_empty_when_its_time_is_up(host: Host, channel: grpc.Channel) -> None:
    end = end_of(channel, 1)
    started = time.monotonic()
    reply = fetch_messages(channel, partition=1, offset=end, wait_ms_max=60)
    assert (reply.status, reply.next_offset) == (wire.EMPTY, end)
    assert time.monotonic() - started >= 0.06


def test_a_revoked_key_ends_a_long_poll(host: Host, channel: grpc.Channel) -> None:
    host.submit(engine_host.grant_row("leaving001", SECRET, principal=30))
    end = end_of(channel, 2)
    request = wire.FetchMessagesRequest(topic="events", partition=2, offset=end, wait_ms_max=60_000)
    waits = metric(host, WAITS)
    call = stubs.StreamStub(channel).FetchMessages.future(
        request, metadata=bearer("leaving001"), timeout=WAIT_S
    )
    waits_grow(host, waits)
    host.submit(engine_host.grant_row("leaving001", SECRET, gone=True))
    with pytest.raises(grpc.RpcError) as failure:
        call.result(WAIT_S)
    assert refusal(failure)[1].code == "INVALID_CREDENTIALS"


@pytest.mark.parametrize(
    ("topic", "project", "partition", "key_id", "code"),
    [
        ("nothing", "", 0, EDITOR, "TOPIC_NOT_FOUND"),
        ("default/secrets", "", 0, EDITOR, "TOPIC_NOT_FOUND"),
        ("events", "nowhere", 0, EDITOR, "PROJECT_NOT_FOUND"),
        ("events", "", PARTITIONS, EDITOR, "PARTITION_NOT_FOUND"),
        ("events", "", 0, STRANGER, "TOPIC_NOT_FOUND"),
        ("events", "", 0, SCOPED, "TOPIC_NOT_FOUND"),
        ("events", "default", 0, SCOPED, "PROJECT_NOT_FOUND"),
    ],
)
def test_what_is_not_the_callers_is_not_there(
    host: Host,
    channel: grpc.Channel,
    topic: str,
    project: str,
    partition: int,
    key_id: str,
    code: str,
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        fetch_messages(channel, topic=topic, project=project, partition=partition, key_id=key_id)
    assert refusal(failure)[1].code == code


def test_viewers_may_read_and_the_node_key_names_no_topic(
    host: Host, channel: grpc.Channel
) -> None:
    assert fetch_messages(channel, key_id=VIEWER, partition=0).status != wire.NOT_PRIMARY
    request = wire.FetchMessagesRequest(topic="events")
    metadata = (("authorization", f"Bearer {engine_host.ADMIN_TOKEN}"),)
    with pytest.raises(grpc.RpcError) as failure:
        stubs.StreamStub(channel).FetchMessages(request, metadata=metadata, timeout=WAIT_S)
    assert refusal(failure)[1].code == "PERMISSION_DENIED"


@pytest.mark.parametrize("data", [b"\x0a\x05", b"\x12", b"\x10\x01", b"\x18" + b"\xff" * 11])
def test_malformed_requests_are_refused_by_name(
    host: Host, channel: grpc.Channel, data: bytes
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        raw(channel, FETCH_MESSAGES)(data, metadata=bearer(), timeout=WAIT_S)
    assert refusal(failure)[1].code == "MALFORMED_REQUEST"


def test_readers_at_different_places_do_not_disturb_each_other(host: Host) -> None:
    async def reader(stub: stubs.StreamStub, partition: int, base: int, step: int) -> list[bytes]:
        found, at = [], base
        while at < base + 300:
            request = wire.FetchMessagesRequest(
                topic="events", partition=partition, offset=at, messages_max=step
            )
            reply = await stub.FetchMessages(request, metadata=bearer(), timeout=WAIT_S)
            found += [stored.message.value for stored in reply.messages]
            at = reply.next_offset
        return found[:300]

    async def everybody() -> None:
        options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(host.address, options) as opened:
            stub = stubs.StreamStub(opened)
            answers = await asyncio.gather(
                *(reader(stub, p, bases[p], step) for p in bases for step in (7, 11, 50))
            )
        assert all(found == expected for found in answers)

    expected = [b"value %d" % number for number in range(300)]
    with grpc.insecure_channel(host.address, GRPC_OPTIONS) as channel:
        bases = {
            partition: store(channel, codec.encode(records(*expected), codec=name), partition)
            for partition, name in enumerate(CODECS)
        }
    asyncio.run(everybody())


def test_what_lies_in_files_is_read_after_a_restart(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node", shards=3)
    sizes = [3_000_000, 10, 2_000_000, 500_000, 10, 10, 1_000_000]
    with Host(settings) as running:
        running.submit(*ROWS, *NAMED_ROWS)
        with grpc.insecure_channel(running.address, GRPC_OPTIONS) as opened:
            for partition in range(PARTITIONS):
                for index, size in enumerate(sizes):
                    part = codec.encode(
                        records(bytes([index]) * size, b"second"), codec=CODECS[index % 3]
                    )
                    store(opened, part, partition)
    with Host(settings) as running, grpc.insecure_channel(running.address, GRPC_OPTIONS) as opened:
        for partition in range(PARTITIONS):
            found: list[bytes] = []
            while len(found) < 2 * len(sizes):
                reply = fetch_messages(
                    opened, partition=partition, offset=len(found), messages_max=3
                )
                assert reply.status == wire.OK
                assert reply.next_offset == len(found) + len(reply.messages)
                found += values(reply)
            assert found[::2] == [bytes([index]) * size for index, size in enumerate(sizes)]
            assert set(found[1::2]) == {b"second"}
