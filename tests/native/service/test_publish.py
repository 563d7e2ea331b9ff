"""Publish as any gRPC client sees it: plain messages, topics by name, on every shard count."""

import asyncio
import collections
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from headrace import codec
from headrace.producer.partitioner import partition_of
from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support.builders.seeds import place_seed
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    ROWS,
    SCOPED,
    STRANGER,
    VIEWER,
    WAIT_S,
    bearer,
    fetch,
    metric,
    raw,
    refusal,
)
from tests.support.clients.messages_client import (
    EVENTS,
    LONE,
    NAMED_ROWS,
    OTHERS,
    PARTITIONS,
    end_of,
    message,
    publish,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host

PUBLISH = "/headrace.stream.v1.Stream/Publish"


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


def stored(
    channel: grpc.Channel, offset: int, partition: int = 0, topic: int = EVENTS
) -> list[codec.Record]:
    """What an SDK reads from there to the end; one reply need not hold it all."""
    found: list[codec.Record] = []
    while True:
        reply = fetch(channel, topic=topic, created_revision=3, partition=partition, offset=offset)
        for batch in codec.batches(reply.batches, place_seed(topic, 3, partition)):
            columns = codec.decode(batch)
            found += [
                codec.Record(key, value, timestamp_us, tuple(columns.headers(index)))
                for index, (key, value, timestamp_us) in enumerate(
                    zip(columns.keys, columns.values, columns.timestamps_us, strict=True)
                )
            ]
            offset = columns.offsets[-1] + 1
        if offset >= reply.high_watermark:
            return found


def code_of(channel: grpc.Channel, data: bytes) -> tuple[grpc.StatusCode, wire.Error]:
    with pytest.raises(grpc.RpcError) as failure:
        raw(channel, PUBLISH)(data, metadata=bearer(), timeout=WAIT_S)
    return refusal(failure)


def test_what_is_published_is_read_by_the_sdk_as_it_was_sent(
    host: Host, channel: grpc.Channel
) -> None:
    headers = (("trace", b"1"), ("trace", b"\0\xff"), ("", None), ("größe", b""))
    sent = [
        message(b"plain", timestamp_us=7_000_000),
        message(None, b"tombstone", timestamp_us=5),
        message(b"", b"", timestamp_us=-3, headers=headers),
        message(b"now"),
    ]
    for partition in range(PARTITIONS):
        base = end_of(channel, partition)
        before_us = time.time_ns() // 1000
        reply = publish(channel, *sent, partition=partition)
        assert (reply.partition, reply.base_offset, reply.message_count) == (partition, base, 4)
        assert (reply.persisted, reply.replicas, reply.duplicate) == (1, 1, False)
        found = stored(channel, base, partition)
        assert [(r.key, r.value) for r in found] == [
            (None, b"plain"), (b"tombstone", None), (b"", b""), (None, b"now"),
        ]  # fmt: skip
        assert [r.timestamp_us for r in found[:3]] == [7_000_000, 5, -3]
        assert before_us - 1_000_000 < found[3].timestamp_us < time.time_ns() // 1000 + 1_000_000
        assert tuple(found[2].headers) == headers


def test_a_key_leads_to_the_partition_that_every_client_computes(
    host: Host, channel: grpc.Channel
) -> None:
    for number in range(200):
        key = b"customer-%d" % number * (number % 5)
        assert publish(channel, message(b"x", key)).partition == partition_of(key, PARTITIONS)


def test_without_a_key_partitions_take_turns(host: Host, channel: grpc.Channel) -> None:
    count = 12
    found = collections.Counter(
        publish(channel, message(), topic="lone").partition for _ in range(count)
    )
    assert found == dict.fromkeys(range(3), count // 3)


def test_keyless_messages_go_along_with_those_that_have_a_key(
    host: Host, channel: grpc.Channel
) -> None:
    reply = publish(channel, message(b"a"), message(b"b", b"k"), message(b"c"))
    assert reply.partition == partition_of(b"k", PARTITIONS)
    assert reply.message_count == 3


def test_keys_of_several_partitions_are_refused_and_nothing_is_stored(
    host: Host, channel: grpc.Channel
) -> None:
    keys = [b"%d" % number for number in range(20)]
    ends = [end_of(channel, partition) for partition in range(PARTITIONS)]
    with pytest.raises(grpc.RpcError) as failure:
        publish(channel, *(message(b"x", key) for key in keys))
    status, error = refusal(failure)
    assert (status, error.code) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "MESSAGES_SPAN_PARTITIONS",
    )
    assert ends == [end_of(channel, partition) for partition in range(PARTITIONS)]
    # A named partition is the client's own choice.
    assert publish(channel, *(message(b"x", key) for key in keys), partition=1).partition == 1


def test_a_repetition_with_its_producer_is_stored_once(host: Host, channel: grpc.Channel) -> None:
    producer = b"p" * 15 + bytes([time.time_ns() % 255 + 1])
    first = publish(channel, message(b"1"), partition=2, producer=(producer, 0, 0))
    again = publish(channel, message(b"1"), partition=2, producer=(producer, 0, 0))
    assert (again.base_offset, again.duplicate) == (first.base_offset, True)
    following = publish(channel, message(b"2"), partition=2, producer=(producer, 0, 1))
    assert (following.base_offset, following.duplicate) == (first.base_offset + 1, False)
    with pytest.raises(grpc.RpcError) as failure:
        publish(channel, message(b"9"), partition=2, producer=(producer, 0, 9))
    status, error = refusal(failure)
    assert (status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "OUT_OF_SEQUENCE")
    assert error.expected == 2


@pytest.mark.parametrize(
    ("producer", "partition", "code"),
    [
        ((b"p" * 16, 0, 0), None, "PARTITION_REQUIRED"),
        ((b"p" * 15, 0, 0), 0, "INVALID_MESSAGES"),
        ((b"p" * 17, 0, 0), 0, "INVALID_MESSAGES"),
        ((bytes(16), 0, 0), 0, "INVALID_MESSAGES"),
        ((b"", 1, 0), 0, "INVALID_MESSAGES"),
        ((b"", 0, 1), 0, "INVALID_MESSAGES"),
        ((b"p" * 16, 0, 2**64 - 1), 0, "INVALID_MESSAGES"),
        ((b"q" * 16, 0, 5), 0, "SESSION_EXPIRED"),
    ],
)
def test_a_producer_that_is_none_is_refused(
    host: Host,
    channel: grpc.Channel,
    producer: tuple[bytes, int, int],
    partition: int | None,
    code: str,
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        publish(channel, message(), partition=partition, producer=producer)
    assert refusal(failure)[1].code == code


def test_messages_larger_than_the_topic_allows_are_refused(
    host: Host, channel: grpc.Channel
) -> None:
    # 72 bytes of header, and the record's own: 2 of size, 5 of nothing, 2 of the value's size.
    room = 256 - 72 - 8
    assert publish(channel, message(b"x" * room), topic="tiny").message_count == 1
    with pytest.raises(grpc.RpcError) as failure:
        publish(channel, message(b"x" * (room + 1)), topic="tiny")
    assert refusal(failure)[1].code == "MESSAGE_TOO_LARGE"


def test_the_largest_message_goes_in_and_one_byte_more_does_not(
    host: Host, channel: grpc.Channel
) -> None:
    value = bytes(8 * 1024 * 1024 - 72 - 12)
    base = publish(channel, message(value), partition=4).base_offset
    assert [record.value for record in stored(channel, base, 4)] == [value]
    with pytest.raises(grpc.RpcError) as failure:
        publish(channel, message(value + b"x"), partition=4)
    assert refusal(failure)[1].code == "MESSAGE_TOO_LARGE"
    with pytest.raises(grpc.RpcError) as failure:
        publish(channel, message(value + bytes(200_000)), partition=4)
    assert refusal(failure)[1].code == "REQUEST_TOO_LARGE"


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ((), "INVALID_MESSAGES"),
        ((message(headers=(("h", b"x"),) * 257),), "INVALID_MESSAGES"),
        ((message(timestamp_us=-(2**63)), message(timestamp_us=5)), "INVALID_BATCH"),
    ],
)
def test_messages_that_no_batch_can_hold_are_refused(
    host: Host, channel: grpc.Channel, messages: tuple[wire.Message, ...], code: str
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        publish(channel, *messages, partition=0)
    status, error = refusal(failure)
    assert (status, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, code)


def field(number: int, data: bytes) -> bytes:
    """A field of wire type 2."""
    size, encoded = len(data), b""
    while size >= 0x80:
        encoded, size = encoded + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + encoded + bytes([size]) + data


TOPIC_FIELD = field(2, b"events")
GOOD = TOPIC_FIELD + field(4, field(2, b"v"))


@pytest.mark.parametrize(
    "data",
    [
        GOOD[:-1],
        GOOD + b"\x22\xff\xff\xff\xff\x0f",  # a message that claims 4 GiB
        GOOD + b"\x18" + b"\xff" * 10 + b"\x01",  # partition: a varint of 11 bytes
        GOOD + b"\x18" + b"\x80" * 11,
        GOOD + b"\x00\x01",  # field number 0
        GOOD + b"\x0b\x0c",  # a group
        GOOD + field(3, b"\x01"),  # partition as bytes
        GOOD + b"\x20\x05",  # messages as a varint
        TOPIC_FIELD + field(4, b"\x08\x05"),  # a key as a varint
        TOPIC_FIELD + field(4, b"\x22\x05"),  # a timestamp as bytes that run over the end
        TOPIC_FIELD + field(4, field(3, b"\x0a\x05")),  # a header that runs over its end
        TOPIC_FIELD + field(4, field(3, b"\x08\x05")),  # a header's key as a varint
        TOPIC_FIELD + field(4, b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ],
)
def test_malformed_requests_are_refused_by_name(
    host: Host, channel: grpc.Channel, data: bytes
) -> None:
    status, error = code_of(channel, data)
    assert (status, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")


def test_a_header_key_that_is_not_utf8_is_refused(host: Host, channel: grpc.Channel) -> None:
    data = TOPIC_FIELD + field(4, field(3, field(1, b"\xc3\x28")))
    assert code_of(channel, data)[1].code == "INVALID_MESSAGES"


def test_unknown_fields_are_skipped_everywhere(host: Host, channel: grpc.Channel) -> None:
    unknown = field(15, b"later") + b"\x71" + bytes(8) + b"\x75" + bytes(4) + b"\x70\x01"
    header = field(3, unknown + field(1, b"h") + field(2, b"x"))
    data = unknown + TOPIC_FIELD + field(4, unknown + field(2, b"v") + header) + b"\x18\x05"
    reply = wire.PublishReply.FromString(
        raw(channel, PUBLISH)(data, metadata=bearer(), timeout=WAIT_S)
    )
    (found,) = stored(channel, reply.base_offset, 5)
    assert (found.value, list(found.headers)) == (b"v", [("h", b"x")])


def test_the_last_of_a_repeated_scalar_wins(host: Host, channel: grpc.Channel) -> None:
    twice = field(2, b"first") + field(2, b"last") + field(1, b"k") + field(1, b"key")
    data = field(2, b"nonsense") + TOPIC_FIELD + b"\x18\x00\x18\x03" + field(4, twice)
    reply = wire.PublishReply.FromString(
        raw(channel, PUBLISH)(data, metadata=bearer(), timeout=WAIT_S)
    )
    (found,) = stored(channel, reply.base_offset, 3)
    assert (found.key, found.value) == (b"key", b"last")


@pytest.mark.parametrize(
    ("project", "topic", "key_id", "code"),
    [
        ("", "events", "editor0001", None),
        ("default", "default/events", "editor0001", None),
        ("other", "trades/ticks", "editor0001", None),
        ("", "trades/ticks", SCOPED, None),
        ("other", "trades/ticks", SCOPED, None),
        ("", "default/secrets", STRANGER, None),
        ("", "nothing", "editor0001", "TOPIC_NOT_FOUND"),
        ("", "", "editor0001", "TOPIC_NOT_FOUND"),
        ("", "x" * 400, "editor0001", "TOPIC_NOT_FOUND"),
        ("", "trades/ticks", "editor0001", "TOPIC_NOT_FOUND"),
        ("", "secrets", "editor0001", "TOPIC_NOT_FOUND"),
        ("", "events", SCOPED, "TOPIC_NOT_FOUND"),
        ("", "events", STRANGER, "TOPIC_NOT_FOUND"),
        ("default", "events", SCOPED, "PROJECT_NOT_FOUND"),
        ("nowhere", "events", "editor0001", "PROJECT_NOT_FOUND"),
        ("other", "events", STRANGER, "PROJECT_NOT_FOUND"),
        ("", "events", VIEWER, "PERMISSION_DENIED"),
    ],
)
def test_a_name_means_a_topic_of_the_callers_project_or_nothing(
    host: Host, channel: grpc.Channel, project: str, topic: str, key_id: str, code: str | None
) -> None:
    found = None
    try:
        publish(channel, message(), project=project, topic=topic, key_id=key_id)
    except grpc.RpcError as error:
        trailers = {entry.key: entry.value for entry in error.trailing_metadata()}
        (packed,) = wire.Status.FromString(trailers["grpc-status-details-bin"]).details
        found = wire.Error.FromString(packed.value).code
    assert found == code


def test_another_tenants_topic_is_answered_like_one_that_is_not_there(
    host: Host, channel: grpc.Channel
) -> None:
    answers = []
    for topic in ("secrets", "absent"):
        with pytest.raises(grpc.RpcError) as failure:
            publish(channel, message(), topic=topic)
        answers.append(refusal(failure))
    assert answers[0] == answers[1]


def test_a_partition_that_is_not_there_is_refused(host: Host, channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        publish(channel, message(), partition=PARTITIONS)
    assert refusal(failure)[1].code == "PARTITION_NOT_FOUND"


def test_aio_clients_publish_side_by_side_and_lose_nothing(host: Host) -> None:
    each, clients = 50, 8

    async def client(number: int) -> list[int]:
        options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(host.address, options) as opened:
            stub = stubs.StreamStub(opened)
            offsets = []
            for index in range(each):
                value = b"%d/%d" % (number, index)
                request = wire.PublishRequest(
                    topic="default/lone", partition=1, messages=[wire.Message(value=value)]
                )
                reply = await stub.Publish(request, metadata=bearer(), timeout=WAIT_S)
                offsets.append(reply.base_offset)
            return offsets

    async def everybody() -> list[list[int]]:
        return await asyncio.gather(*(client(number) for number in range(clients)))

    offsets = [offset for found in asyncio.run(everybody()) for offset in found]
    assert len(set(offsets)) == each * clients
    with grpc.insecure_channel(host.address, GRPC_OPTIONS) as opened:
        at = min(offsets)
        values = [record.value for record in stored(opened, at, 1, LONE)]
    assert {b"%d/%d" % (n, i) for n in range(clients) for i in range(each)} <= set(values)


def test_calls_are_counted_by_their_method(host: Host, channel: grpc.Channel) -> None:
    before = metric(host, "headrace_calls_total", 'method="Publish"')
    publish(channel, message())
    assert metric(host, "headrace_calls_total", 'method="Publish"') == before + 1


def test_a_renamed_topic_answers_to_its_new_name_only(tmp_path: Path) -> None:
    with Host(engine_host.config(tmp_path / "node", shards=2)) as running:
        running.submit(*ROWS, *NAMED_ROWS)
        options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(running.address, options) as opened:
            publish(opened, message(b"old"), partition=0)
            running.submit(
                engine_host.topic_row(EVENTS, revision=3, partitions=6, name="default/news")
            )
            assert publish(opened, message(b"new"), partition=0, topic="news").base_offset == 1
            with pytest.raises(grpc.RpcError) as failure:
                publish(opened, message(b"x"), partition=0)
            assert refusal(failure)[1].code == "TOPIC_NOT_FOUND"
            running.submit(engine_host.topic_row(OTHERS, gone=True))
            with pytest.raises(grpc.RpcError) as failure:
                publish(opened, message(b"x"), project="other", topic="trades/ticks")
            assert refusal(failure)[1].code == "TOPIC_NOT_FOUND"
