"""Consume as clients see it: pushed as committed, within its credit, on every shard count."""

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from tests.support.clients.consume_reader import CONSUME, PLENTY, Reader
from tests.support.clients.grpc_client import (
    EDITOR,
    GRPC_OPTIONS,
    PARTITIONS,
    ROWS,
    SECRET,
    STRANGER,
    TOPIC,
    VIEWER,
    WAIT_S,
    batch,
    bearer,
    high_watermark,
    metric,
    produce,
    request,
)
from tests.support.clients.http2_peer import DATA, Peer, call_headers, frame
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, grant_row, topic_row

DOOMED = 40


def fence(group: int, generation: int, kind: int, partition: int) -> bytes:
    where = engine_host.PARTITION_ID.pack(TOPIC, 7, partition, 0)
    return where + struct.pack("<QQQII", group, generation, 100 + generation, kind, 0)


def test_batches_are_pushed_as_they_are_committed(host: Host, channel: grpc.Channel) -> None:
    for partition in range(PARTITIONS):
        base = high_watermark(channel, partition)
        produce(channel, request((b"early", b"bird"), partition=partition))
        with Reader(channel, partition=partition, offset=base) as reader:
            found = reader.next()
            assert reader.values_of(found) == [b"early", b"bird"]
            assert found.high_watermark == base + 2
            assert reader.next().status == wire.EMPTY
            for index in range(3):
                produce(channel, request((b"%d" % index,), partition=partition))
                assert reader.values() == [b"%d" % index]
                assert reader.next().status == wire.EMPTY


def test_a_reader_is_told_once_that_it_has_caught_up(host: Host, channel: grpc.Channel) -> None:
    base = high_watermark(channel, 0)
    with Reader(channel, offset=base) as reader:
        found = reader.next()
        assert (found.status, found.high_watermark) == (wire.EMPTY, base)
        for _ in range(5):
            reader.credit(1)
        produce(channel, request((b"next",)))
        assert reader.values() == [b"next"]


def test_no_more_is_sent_than_the_credit_and_the_batch_that_exceeds_it(
    host: Host, channel: grpc.Channel
) -> None:
    partition = 3
    base = high_watermark(channel, partition)
    for index in range(8):
        produce(channel, request((bytes([index]) * 1000,), partition=partition))
    size = len(batch(bytes(1000))) + 96
    with Reader(channel, partition=partition, offset=base, credit=1) as reader:
        assert reader.values() == [bytes([0]) * 1000]
        # One batch of credit pays the debt of the first and buys nothing but the last byte.
        reader.credit(size)
        assert reader.values() == [bytes([1]) * 1000]
        reader.credit(2 * size)
        assert reader.read(2) == [bytes([2]) * 1000, bytes([3]) * 1000]
        reader.half_close()
        assert list(reader.call) == []
        assert reader.call.code() == grpc.StatusCode.OK


def test_without_credit_nothing_is_sent(host: Host, channel: grpc.Channel) -> None:
    base = high_watermark(channel, 1)
    produce(channel, request((b"wanted",), partition=1))
    with Reader(channel, partition=1, offset=base, credit=0) as reader:
        reader.half_close()
        assert list(reader.call) == []
        assert reader.call.code() == grpc.StatusCode.OK


def test_replies_are_as_large_as_asked_for(host: Host, channel: grpc.Channel) -> None:
    base = high_watermark(channel, 2)
    for index in range(12):
        produce(channel, request((b"%02d" % index * 400,), partition=2))
    with Reader(channel, partition=2, offset=base, bytes_max=2500) as reader:
        sizes: list[int] = []
        while sum(sizes) < 12:
            sizes.append(len(reader.values()))
        assert set(sizes) == {2}


def test_everything_on_disk_is_read_in_order_after_a_restart(tmp_path: Path) -> None:
    settings = engine_host.config(
        tmp_path / "node", memory_bytes=64 << 20, shards=2, **engine_host.LARGE_BATCHES
    )
    row = topic_row(TOPIC, revision=7, partitions=2, segment_bytes=16 << 20)
    sizes = [3_000_000, 10, 2_000_000, 500_000, 10, 10, 4_000_000] * 6
    with Host(settings) as small, grpc.insecure_channel(small.address, GRPC_OPTIONS) as opened:
        small.submit(*ROWS, row)
        for index, size in enumerate(sizes):
            for partition in range(2):
                produce(opened, request((bytes([index]) * size,), partition=partition))
    with Host(settings) as small, grpc.insecure_channel(small.address, GRPC_OPTIONS) as opened:
        for partition in range(2):
            for bytes_max in (1000, 1 << 20, 8 << 20):
                with Reader(opened, partition=partition, bytes_max=bytes_max) as reader:
                    found = reader.read(len(sizes))
                assert found == [bytes([index]) * size for index, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("changes", "key", "code"),
    [
        ({"topic": 999}, VIEWER, "TOPIC_NOT_FOUND"),
        ({}, STRANGER, "TOPIC_NOT_FOUND"),
        ({"created_revision": 6}, VIEWER, "TOPIC_RECREATED"),
        ({"partition": PARTITIONS}, VIEWER, "PARTITION_NOT_FOUND"),
        ({"offset": 1 << 50}, VIEWER, "OFFSET_OUT_OF_RANGE"),
        ({}, "producer01", "PERMISSION_DENIED"),
    ],
)
def test_an_error_is_the_last_message_of_a_stream_that_ends_well(
    host: Host, channel: grpc.Channel, changes: dict[str, int], key: str, code: str
) -> None:
    host.submit(grant_row("producer01", SECRET, principal=50, verbs=engine_host.PRODUCE))
    with Reader(channel, key, **changes) as reader:
        assert reader.error() == code


@pytest.mark.parametrize(
    "messages",
    [
        [wire.ConsumeRequest(credit=5)],
        [wire.ConsumeRequest()],
        [wire.ConsumeRequest(begin=wire.ConsumeBegin(topic=TOPIC, created_revision=7))] * 2,
    ],
)
def test_a_stream_begins_once_and_first(
    host: Host, channel: grpc.Channel, messages: list[wire.ConsumeRequest]
) -> None:
    call = channel.stream_stream(
        CONSUME, wire.ConsumeRequest.SerializeToString, wire.ConsumeReply.FromString
    )
    with pytest.raises(grpc.RpcError) as failure:
        list(call(iter(messages), metadata=bearer(VIEWER), timeout=WAIT_S))
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_revoked_key_ends_its_open_stream(host: Host, channel: grpc.Channel) -> None:
    host.submit(grant_row("consumer01", SECRET, principal=51))
    base = high_watermark(channel, 4)
    with Reader(channel, "consumer01", partition=4, offset=base) as reader:
        assert reader.next().status == wire.EMPTY
        host.submit(grant_row("consumer01", SECRET, gone=True))
        with pytest.raises(grpc.RpcError) as failure:
            list(reader.call)
        assert failure.value.code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (topic_row(DOOMED, revision=7, gone=True), "TOPIC_NOT_FOUND"),
        (topic_row(DOOMED, revision=9), "TOPIC_RECREATED"),
    ],
)
def test_a_reader_of_a_topic_that_goes_is_told(
    host: Host, channel: grpc.Channel, row: bytes, code: str
) -> None:
    host.submit(topic_row(DOOMED, revision=7, gone=True))
    host.submit(topic_row(DOOMED, revision=7))
    with Reader(channel, topic=DOOMED) as reader:
        assert reader.next().status == wire.EMPTY
        host.submit(row)
        assert reader.error() == code


def test_a_newer_generation_ends_the_stream_of_an_older_one(
    host: Host, channel: grpc.Channel
) -> None:
    group, partition = 77, 5
    base = high_watermark(channel, partition)
    generation = metric(host, "headrace_journal_entries_total")
    assert host.request(engine_host.GROUP_FENCE, fence(group, generation, 2, partition))[0] == 0
    produce(channel, request((b"mine",), partition=partition))
    fields = {"partition": partition, "offset": base, "group": group}
    with Reader(channel, **fields, generation=generation) as reader:
        assert reader.values() == [b"mine"]
        assert reader.next().status == wire.EMPTY
        freeze = fence(group, generation + 1, 1, partition)
        assert host.request(engine_host.GROUP_FENCE, freeze)[0] == 0
        assert reader.error() == "FENCED"
    with Reader(channel, **fields, generation=generation) as reader:
        assert reader.error() == "FENCED"


def test_cancelled_streams_leave_nothing_behind(host: Host, channel: grpc.Channel) -> None:
    for round_index in range(3):
        readers = [Reader(channel, partition=index % PARTITIONS) for index in range(40)]
        for index, reader in enumerate(readers):
            if index % 2:
                next(reader.call)
            reader.call.cancel()
            reader.half_close()
        produce(channel, request((b"%d" % round_index,), partition=3))


def test_many_readers_of_one_partition_get_the_same(host: Host, channel: grpc.Channel) -> None:
    base = high_watermark(channel, 0)
    with ExitStack() as opened:
        readers = [opened.enter_context(Reader(channel, offset=base)) for _ in range(30)]
        for reader in readers:
            assert reader.next().status == wire.EMPTY
        for index in range(4):
            produce(channel, request((b"%d" % index * 100_000,)))
        for reader in readers:
            assert reader.read(4) == [b"%d" % index * 100_000 for index in range(4)]


def test_a_stopping_node_tells_its_readers(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node", shards=3)
    with ExitStack() as opened:
        readers = []
        with Host(settings) as running:
            running.submit(*ROWS)
            for partition in range(PARTITIONS):
                options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
                own = opened.enter_context(grpc.insecure_channel(running.address, options))
                readers.append(opened.enter_context(Reader(own, partition=partition)))
                assert readers[-1].next().status == wire.EMPTY
        for reader in readers:
            assert reader.error() == "STOPPING"


def begin_frames(stream: int, partition: int = 0, offset: int = 0) -> bytes:
    begin = wire.ConsumeBegin(
        topic=TOPIC,
        created_revision=7,
        partition=partition,
        offset=offset,
        credit=PLENTY,
        bytes_max=8 << 20,
    )
    message = wire.ConsumeRequest(begin=begin).SerializeToString()
    prefix = struct.pack(">BI", 0, len(message))
    headers = call_headers(stream, path=CONSUME, public_id=EDITOR)
    return headers + frame(DATA, 0, stream, prefix + message)


@pytest.fixture(params=[1, 3])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """A node with 64 MiB in every partition, and a pool of 64 MiB a shard."""
    settings = engine_host.config(tmp_path / "node", memory_bytes=64 << 20, shards=request.param)
    with Host(settings) as running:
        running.submit(*ROWS)
        with grpc.insecure_channel(running.address, GRPC_OPTIONS) as opened:
            for index in range(64):
                for partition in range(2):
                    produce(opened, produce_request(index, partition))
        yield running


def produce_request(index: int, partition: int) -> wire.ProduceRequest:
    return request((bytes([index]) * (1 << 20),), partition=partition)


def test_readers_that_stand_still_bound_memory_and_hold_up_nobody(filled: Host) -> None:
    pool = 64 << 20
    shards = len(filled.engine.metrics().split("headrace_pool_used_bytes{")) - 1
    with ExitStack() as opened:
        peers = [opened.enter_context(Peer(filled, receive_bytes=4096)) for _ in range(8)]
        for peer in peers:
            peer.greet()
            # A window for everything, so that only the socket stands still.
            peer.send(frame(8, 0, 0, struct.pack(">I", 1 << 30)))
            for stream in range(1, 41, 2):
                peer.send(begin_frames(stream, partition=stream // 2 % 2))
                peer.send(frame(8, 0, stream, struct.pack(">I", 1 << 30)))
        for peer in peers:
            peer.take(1)
        while metric(filled, "headrace_consume_holds_total", "memory") == 0:
            pass
        assert metric(filled, "headrace_pool_used_bytes") < shards * pool // 2
        with grpc.insecure_channel(filled.address, GRPC_OPTIONS) as channel:
            for partition in range(2):
                with Reader(channel, partition=partition) as reader:
                    assert [value[:1] for value in reader.read(64) if value] == [
                        bytes([index]) for index in range(64)
                    ]
        for peer in peers:
            peer.take(1)
        assert metric(filled, "headrace_pool_used_bytes") < shards * pool // 2
        assert metric(filled, "headrace_pool_refused_total") == 0
