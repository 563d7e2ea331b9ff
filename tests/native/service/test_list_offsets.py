"""ListOffsets by time: exact, on every shard count, from memory and from files."""

from pathlib import Path

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from native.engine import EngineConfig
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    PARTITIONS,
    ROWS,
    STRANGER,
    TOPIC,
    VIEWER,
    WAIT_S,
    bearer,
    high_watermark,
    produce,
    refusal,
    request,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, topic_row

Appended = tuple[int, int]
"""A batch's append time and base offset."""


def list_offsets(
    channel: grpc.Channel, time_us: int, key: str = VIEWER, /, **fields: int
) -> wire.ListOffsetsReply:
    call = channel.unary_unary(
        "/headrace.stream.v1.Stream/ListOffsets",
        wire.ListOffsetsRequest.SerializeToString,
        wire.ListOffsetsReply.FromString,
    )
    where = {"topic": TOPIC, "created_revision": 7, **fields}
    message = wire.ListOffsetsRequest(**where, time_us=time_us)
    return call(message, metadata=bearer(key), timeout=WAIT_S)


def append(channel: grpc.Channel, sizes: list[int], partition: int) -> list[Appended]:
    """Batches of two records each."""
    done = []
    for size in sizes:
        reply = produce(channel, request((bytes(size), b"x"), partition=partition))
        done.append((reply.append_time_us, reply.base_offset))
    return done


def check(channel: grpc.Channel, batches: list[Appended], partition: int, *, step: int = 1) -> None:
    """Exactly the right answer at, before and after the time of every `step`-th batch."""
    for index in [*range(0, len(batches), step), len(batches) - 1]:
        time_us, offset = batches[index]
        for asked in (time_us, time_us - 1 if index == 0 else batches[index - 1][0] + 1):
            found = list_offsets(channel, asked, partition=partition)
            assert (found.found, found.offset, found.append_time_us) == (True, offset, time_us)
    late = list_offsets(channel, batches[-1][0] + 1, partition=partition)
    assert (late.found, late.offset) == (False, late.high_watermark)


def test_a_time_leads_to_the_first_batch_that_late(host: Host, channel: grpc.Channel) -> None:
    for partition in range(PARTITIONS):
        batches = append(channel, [10] * 20, partition)
        check(channel, batches, partition)


def test_a_partition_without_records_has_nothing_at_any_time(tmp_path: Path) -> None:
    with (
        Host(engine_host.config(tmp_path / "node", shards=3)) as empty,
        grpc.insecure_channel(empty.address, GRPC_OPTIONS) as opened,
    ):
        empty.submit(*ROWS)
        for partition in range(PARTITIONS):
            for time_us in (-(1 << 63), 0, (1 << 63) - 1):
                found = list_offsets(opened, time_us, partition=partition)
                assert not found.found
                assert (found.offset, found.high_watermark, found.log_start) == (0, 0, 0)


def test_times_before_and_after_everything_are_answered(host: Host, channel: grpc.Channel) -> None:
    append(channel, [10], 1)
    for time_us in (-(1 << 63), 0):
        first = list_offsets(channel, time_us, partition=1)
        assert (first.found, first.offset, first.log_start) == (True, 0, 0)
    last = list_offsets(channel, (1 << 63) - 1, partition=1)
    assert (last.found, last.offset) == (False, high_watermark(channel, 1))


@pytest.fixture(params=[1, 3])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> EngineConfig:
    return engine_host.config(tmp_path / "node", memory_bytes=64 << 20, shards=request.param)


def test_sealed_and_active_segments_are_searched_before_and_after_a_restart(
    settings: EngineConfig,
) -> None:
    row = topic_row(TOPIC, revision=7, partitions=2, segment_bytes=1 << 20)
    sizes = [3000, 10, 70_000, 200_000, 5, 5, 300_000] * 30
    batches: dict[int, list[Appended]] = {}
    with Host(settings) as node, grpc.insecure_channel(node.address, GRPC_OPTIONS) as opened:
        node.submit(*ROWS, row)
        for partition in range(2):
            batches[partition] = append(opened, sizes, partition)
            check(opened, batches[partition], partition, step=7)
    # Nothing is in memory now, and no sealed segment has been walked.
    with Host(settings) as node, grpc.insecure_channel(node.address, GRPC_OPTIONS) as opened:
        for partition in range(2):
            check(opened, batches[partition], partition, step=13)
            check(opened, batches[partition], partition, step=29)
            more = append(opened, [100_000] * 20, partition)
            check(opened, batches[partition] + more, partition, step=31)


def test_one_large_segment_is_searched_wherever_its_index_has_gaps(
    settings: EngineConfig,
) -> None:
    row = topic_row(TOPIC, revision=7, segment_bytes=256 << 20)
    sizes = [2_000_000, 10, 3_000_000, 100, 1_000_000] * 8
    with Host(settings) as node, grpc.insecure_channel(node.address, GRPC_OPTIONS) as opened:
        node.submit(*ROWS, row)
        batches = append(opened, sizes, 0)
        check(opened, batches, 0)
    with Host(settings) as node, grpc.insecure_channel(node.address, GRPC_OPTIONS) as opened:
        check(opened, batches, 0)


@pytest.mark.parametrize(
    ("changes", "key", "code"),
    [
        ({"topic": 999}, VIEWER, "TOPIC_NOT_FOUND"),
        ({}, STRANGER, "TOPIC_NOT_FOUND"),
        ({"created_revision": 6}, VIEWER, "TOPIC_RECREATED"),
        ({"partition": PARTITIONS}, VIEWER, "PARTITION_NOT_FOUND"),
    ],
)
def test_refusals_are_by_name(
    host: Host, channel: grpc.Channel, changes: dict[str, int], key: str, code: str
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        list_offsets(channel, 0, key, **changes)
    assert refusal(failure)[1].code == code
