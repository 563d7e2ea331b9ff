"""A log that no longer begins at 0: what every kind of reader is told, on every shard count."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from headrace import codec
from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support.builders.seeds import place_seed
from tests.support.clients.consume_reader import Reader
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    ROWS,
    WAIT_S,
    bearer,
    produce,
    request,
)
from tests.support.clients.messages_client import EVENTS, NAMED_ROWS, fetch_messages
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, topic_row

PARTITIONS = 3
BATCHES, START = 20, 15  # of two records each: the start lies inside the eighth
HANDLE = {"topic": EVENTS, "created_revision": 3}
ROW = topic_row(EVENTS, revision=3, partitions=PARTITIONS, name="default/events")


@pytest.fixture(scope="module", params=[1, 3])
def times(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Host, list[int]]]:
    """A node where partition 1 begins at START, and the append times of its batches."""
    folder: Path = tmp_path_factory.mktemp("node") / "node"
    settings = engine_host.config(folder, shards=request.param)
    with Host(settings) as before, grpc.insecure_channel(before.address, GRPC_OPTIONS) as opened:
        before.submit(*ROWS, *NAMED_ROWS, ROW)
        found = [
            produce(opened, two(index, partition)).append_time_us
            for index in range(BATCHES)
            for partition in range(PARTITIONS)
        ][1::PARTITIONS]
        assert before.purge(EVENTS, 3, 1, START) == 0
    # What a purge did is replayed from the journal.
    with Host(settings) as after:
        yield after, found


@pytest.fixture
def node(times: tuple[Host, list[int]]) -> Host:
    return times[0]


@pytest.fixture
def via(node: Host) -> Iterator[grpc.Channel]:
    options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(node.address, options) as opened:
        yield opened


def two(index: int, partition: int) -> wire.ProduceRequest:
    values = (b"%d" % (2 * index), b"%d" % (2 * index + 1))
    return request(values, partition=partition, **HANDLE)


def fetch(via: grpc.Channel, partition: int, offset: int) -> wire.FetchReply:
    asked = wire.FetchRequest(partition=partition, offset=offset, **HANDLE)
    reply: wire.FetchReply = stubs.StreamStub(via).Fetch(asked, metadata=bearer(), timeout=WAIT_S)
    return reply


def test_a_fetch_below_the_start_is_told_where_the_log_begins(via: grpc.Channel) -> None:
    for offset in (0, START - 1):
        found = fetch(via, 1, offset)
        assert (found.status, found.log_start) == (wire.TRUNCATED, START)
        assert (found.high_watermark, found.log_end) == (2 * BATCHES, 2 * BATCHES)
        assert not found.batches
    at_start = fetch(via, 1, START)
    assert (at_start.status, at_start.log_start) == (wire.OK, START)
    # A whole batch, which begins below the start: the reader passes over what it did not ask for.
    assert next(codec.batches(at_start.batches, place_seed(EVENTS, 3, 1))).base_offset == START - 1
    assert fetch(via, 0, 0).log_start == fetch(via, 2, 0).log_start == 0


def test_a_consume_below_the_start_is_told_so_and_goes_on_at_the_start(via: grpc.Channel) -> None:
    for offset in (0, START - 1):
        with Reader(via, partition=1, offset=offset, **HANDLE) as reader:
            told = reader.next()
            assert (told.status, told.log_start, told.batches) == (wire.TRUNCATED, START, b"")
            assert reader.read(1 + 2 * BATCHES - START) == [
                b"%d" % number for number in range(START - 1, 2 * BATCHES)
            ]
            assert reader.next().status == wire.EMPTY


def test_a_consume_that_is_told_spends_no_credit_on_it(via: grpc.Channel) -> None:
    with Reader(via, partition=1, credit=1, **HANDLE) as reader:
        assert reader.next().status == wire.TRUNCATED
        assert reader.values() == [b"%d" % (START - 1), b"%d" % START]


def test_plain_messages_below_the_start_say_where_to_go_on(via: grpc.Channel) -> None:
    found = fetch_messages(via, partition=1, offset=3)
    assert (found.status, found.log_start, found.next_offset) == (wire.TRUNCATED, START, START)
    assert not found.messages
    found = fetch_messages(via, partition=1, offset=found.next_offset)
    assert [stored.offset for stored in found.messages] == list(range(START, 2 * BATCHES))


def list_offsets(via: grpc.Channel, time_us: int) -> wire.ListOffsetsReply:
    asked = wire.ListOffsetsRequest(partition=1, time_us=time_us, **HANDLE)
    reply: wire.ListOffsetsReply = stubs.StreamStub(via).ListOffsets(
        asked, metadata=bearer(), timeout=WAIT_S
    )
    return reply


def test_no_time_leads_below_the_start(times: tuple[Host, list[int]], via: grpc.Channel) -> None:
    _, append_times = times
    for index, time_us in enumerate(append_times):
        found = list_offsets(via, time_us)
        assert (found.found, found.log_start) == (True, START)
        assert found.offset == max(2 * index, START)
    assert list_offsets(via, 0).offset == START
    late = list_offsets(via, append_times[-1] + 1)
    assert (late.found, late.offset) == (False, 2 * BATCHES)


def test_committed_offsets_below_the_start_stay_as_they_are(via: grpc.Channel) -> None:
    stub = stubs.StreamStub(via)
    commit = wire.CommitOffsetsRequest(partition=1, group=5, offset=4, **HANDLE)
    stub.CommitOffsets(commit, metadata=bearer(), timeout=WAIT_S)
    asked = wire.FetchOffsetsRequest(partition=1, group=5, **HANDLE)
    found = stub.FetchOffsets(asked, metadata=bearer(), timeout=WAIT_S)
    assert (found.found, found.offset) == (True, 4)
    assert (found.log_start, found.high_watermark) == (START, 2 * BATCHES)


def test_a_group_goes_on_at_what_it_committed_and_never_below_the_start(via: grpc.Channel) -> None:
    stub = stubs.StreamStub(via)
    for group, committed, start in ((6, None, START), (7, 4, START), (8, START + 3, START + 3)):
        if committed is not None:
            commit = wire.CommitOffsetsRequest(partition=1, group=group, offset=committed, **HANDLE)
            stub.CommitOffsets(commit, metadata=bearer(), timeout=WAIT_S)
        asked = wire.FetchOffsetsRequest(partition=1, group=group, **HANDLE)
        found = stub.FetchOffsets(asked, metadata=bearer(), timeout=WAIT_S)
        assert (found.found, found.start) == (committed is not None, start)


def test_the_start_survives_new_records_and_restarts(tmp_path: Path) -> None:
    settings = engine_host.config(tmp_path / "node")
    count, begins = 0, 0
    for purged in (15, 15, 55, 0):
        with Host(settings) as node, grpc.insecure_channel(node.address, GRPC_OPTIONS) as via:
            node.submit(*ROWS, *NAMED_ROWS, ROW)
            for _ in range(BATCHES):
                assert produce(via, two(count, 1)).base_offset == 2 * count
                count += 1
            found = fetch(via, 1, begins)
            assert (found.status, found.log_start) == (wire.OK, begins)
            if purged:
                begins = purged
                assert node.purge(EVENTS, 3, 1, begins) == 0
                assert fetch(via, 1, begins - 1).status == wire.TRUNCATED
    with Host(settings) as node, grpc.insecure_channel(node.address, GRPC_OPTIONS) as via:
        assert (fetch(via, 1, 0).status, fetch(via, 1, 0).log_start) == (wire.TRUNCATED, 55)


def test_a_purge_of_everything_tells_a_reader_that_waits_where_the_log_begins(
    tmp_path: Path,
) -> None:
    settings = engine_host.config(tmp_path / "node")
    with Host(settings) as node, grpc.insecure_channel(node.address, GRPC_OPTIONS) as via:
        node.submit(*ROWS, *NAMED_ROWS, ROW)
        produce(via, two(0, 1))
        assert node.purge(EVENTS, 3, 1, 0) == 0
        early = fetch(via, 1, 0)
        assert (early.status, early.log_start, early.log_end) == (wire.TRUNCATED, 2, 2)
        with Reader(via, partition=1, offset=0, **HANDLE) as reader:
            told = reader.next()
            assert (told.status, told.log_start) == (wire.TRUNCATED, 2)
            produce(via, two(1, 1))
            assert reader.read(2) == [b"2", b"3"]
