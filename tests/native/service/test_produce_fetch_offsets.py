"""Produce, Fetch and offsets as clients see them, on every shard count."""

import threading
import time
from pathlib import Path

import grpc
import pytest

from headrace import codec
from headrace.wire import stream_pb2 as wire
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    PARTITIONS,
    ROWS,
    SMALL_TOPIC,
    SYSTEM_TOPIC,
    TOPIC,
    VIEWER,
    WAIT_S,
    batch,
    bearer,
    fetch,
    high_watermark,
    produce,
    refusal,
    request,
    values_of,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, topic_row


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
        assert values_of(found, partition) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_large_batch_goes_in_and_comes_out_whole(tmp_path: Path, shards: int) -> None:
    settings = engine_host.config(tmp_path / "node", shards=shards, **engine_host.LARGE_BATCHES)
    value = bytes(range(256)) * (7 * 4096)
    with Host(settings) as large, grpc.insecure_channel(large.address, GRPC_OPTIONS) as opened:
        large.submit(*ROWS)
        for partition in range(PARTITIONS):
            produce(opened, request((value,), partition=partition))
            found = fetch(opened, partition=partition, offset=0, bytes_max=8 << 20)
            assert values_of(found, partition) == [value]


def test_one_fetch_brings_the_batches_that_are_there(host: Host, channel: grpc.Channel) -> None:
    base = high_watermark(channel, 2)
    for index in range(6):
        produce(channel, request((b"%d" % index, b"x"), partition=2))
    found = fetch(channel, partition=2, offset=base)
    assert values_of(found, 2) == [value for index in range(6) for value in (b"%d" % index, b"x")]
    one = fetch(channel, partition=2, offset=base + 2, bytes_max=1)
    assert values_of(one, 2) == [b"1", b"x"]


def test_small_reads_of_large_batches_from_disk_lose_nothing(tmp_path: Path) -> None:
    settings = engine_host.config(
        tmp_path / "node", memory_bytes=64 << 20, **engine_host.LARGE_BATCHES
    )
    sizes = [3_000_000, 10, 2_000_000, 500_000, 10, 10, 4_000_000] * 6
    with Host(settings) as small, grpc.insecure_channel(small.address, GRPC_OPTIONS) as opened:
        small.submit(*ROWS)
        for index, size in enumerate(sizes):
            produce(opened, request((bytes([index]) * size,)))
    with Host(settings) as small, grpc.insecure_channel(small.address, GRPC_OPTIONS) as opened:
        found: list[bytes | None] = []
        while len(found) < len(sizes):
            reply = fetch(opened, offset=len(found), bytes_max=1000)
            assert reply.status == wire.OK
            found += values_of(reply)
    assert found == [bytes([index]) * size for index, size in enumerate(sizes)]


def test_more_segments_than_open_files_never_serve_each_others_batches(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node", partitions_max=1024)
    partitions = 600
    row = topic_row(TOPIC, revision=7, partitions=partitions)
    with Host(settings) as many, grpc.insecure_channel(many.address, GRPC_OPTIONS) as opened:
        many.submit(*ROWS, row)
        stream = opened.stream_stream(
            "/headrace.stream.v1.Stream/ProduceStream",
            wire.ProduceRequest.SerializeToString,
            wire.ProduceReply.FromString,
        )
        requests = [
            request((b"%04d" % number,), partition=number, request=number)
            for number in range(partitions)
        ]
        replies = list(stream(iter(requests), metadata=bearer(), timeout=WAIT_S))
        assert not [reply.error.code for reply in replies if reply.HasField("error")]
    # From files now, all of them in the page cache. Two walks in opposite directions: slots are
    # taken from others all the time.
    with Host(settings) as many, grpc.insecure_channel(many.address, GRPC_OPTIONS) as opened:
        for number in [*range(partitions), *range(partitions), *reversed(range(partitions))]:
            reply = fetch(opened, partition=number, bytes_max=4096)
            assert reply.status == wire.OK, number
            assert values_of(reply, number) == [b"%04d" % number]


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
        assert values_of(results[0], partition) == [b"late"]


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


def test_more_than_the_store_can_hold_waits_instead_of_being_refused(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node", memory_bytes=64 << 20)
    with Host(settings) as small, grpc.insecure_channel(small.address, GRPC_OPTIONS) as opened:
        small.submit(*ROWS)
        call = opened.stream_stream(
            "/headrace.stream.v1.Stream/ProduceStream",
            wire.ProduceRequest.SerializeToString,
            wire.ProduceReply.FromString,
        )
        requests = [request((bytes(200_000),), request=number) for number in range(200)]
        replies = list(call(iter(requests), metadata=bearer(), timeout=WAIT_S))
        assert not [reply.error.code for reply in replies if reply.HasField("error")]
        assert sorted(reply.base_offset for reply in replies) == list(range(200))


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
