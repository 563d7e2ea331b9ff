"""Consume while its topic closes, is sealed, goes and comes again, on every shard count."""

import struct
from contextlib import ExitStack

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support.clients.consume_reader import Reader
from tests.support.clients.grpc_client import (
    GRPC_OPTIONS,
    WAIT_S,
    bearer,
    metric,
    produce,
    refusal,
    request,
)
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, topic_row
from tests.support.processes.platform import wait_until

CLOSING, RECREATED = 2, 4
PARTITIONS = 4
GROUP = 88


class Doomed:
    """A topic of its own for each test, with a record in every partition."""

    numbers = iter(range(200, 300))

    def __init__(self, host: Host, channel: grpc.Channel) -> None:
        self.host = host
        self.number = next(self.numbers)
        self.handle = {"topic": self.number, "created_revision": 7}
        self.put()
        for partition in range(PARTITIONS):
            produce(channel, request((b"kept",), partition=partition, **self.handle))

    def put(self, *, flags: int = 0, gone: bool = False) -> None:
        """Its row, to every shard."""
        row = topic_row(self.number, revision=7, partitions=PARTITIONS, flags=flags, gone=gone)
        self.host.submit(row)

    def id(self, partition: int) -> bytes:
        """struct engine_partition_id."""
        return engine_host.PARTITION_ID.pack(self.number, 7, partition, 0)

    def seal(self) -> None:
        """Every partition."""
        self.put(flags=CLOSING)
        for partition in range(PARTITIONS):
            body = self.id(partition) + struct.pack("<Q", 5)
            assert self.host.request(engine_host.SEAL, body)[0] == 0

    def close_for(self, generation: int, partition: int) -> None:
        """CLOSE: from now on this generation of the group owns the partition."""
        fence = struct.pack("<QQQII", GROUP, generation, 100 + generation, 2, 0)
        assert self.host.request(engine_host.GROUP_FENCE, self.id(partition) + fence)[0] == 0


@pytest.fixture
def doomed(host: Host, channel: grpc.Channel) -> Doomed:
    return Doomed(host, channel)


def caught_up(opened: ExitStack, channel: grpc.Channel, doomed: Doomed) -> list[Reader]:
    """A reader of every partition that has read all there is."""
    readers = [
        opened.enter_context(Reader(channel, partition=partition, **doomed.handle))
        for partition in range(PARTITIONS)
    ]
    for reader in readers:
        assert reader.values() == [b"kept"]
        assert reader.next().status == wire.EMPTY
    return readers


@pytest.mark.parametrize(
    ("flags", "code"), [(0, "TOPIC_NOT_FOUND"), (RECREATED, "TOPIC_RECREATED")]
)
def test_readers_read_a_sealed_topic_to_its_end_and_are_told_when_it_goes(
    channel: grpc.Channel, doomed: Doomed, flags: int, code: str
) -> None:
    with ExitStack() as opened:
        readers = caught_up(opened, channel, doomed)
        doomed.seal()
        with pytest.raises(grpc.RpcError) as failure:
            produce(channel, request(**doomed.handle))
        assert refusal(failure)[1].code == "TOPIC_CLOSED"
        # Closing and sealed, and all of it is still read, by the old readers and by new ones.
        readers += caught_up(opened, channel, doomed)
        assert all(reader.call.is_active() for reader in readers)
        doomed.put(gone=True, flags=flags)
        assert {reader.error() for reader in readers} == {code}
    with Reader(channel, **doomed.handle) as late:
        assert late.error() == code


def test_a_reader_without_credit_is_told_as_well(channel: grpc.Channel, doomed: Doomed) -> None:
    with Reader(channel, credit=1, **doomed.handle) as reader:
        assert reader.values() == [b"kept"]
        doomed.seal()
        doomed.put(gone=True)
        assert reader.error() == "TOPIC_NOT_FOUND"


@pytest.mark.parametrize(
    ("flags", "code"), [(0, "TOPIC_NOT_FOUND"), (RECREATED, "TOPIC_RECREATED")]
)
def test_fetches_that_wait_are_told_the_same(
    host: Host, channel: grpc.Channel, doomed: Doomed, flags: int, code: str
) -> None:
    stub = stubs.StreamStub(channel)
    before = metric(host, "headrace_fetch_waits_total")
    waiting = [
        stub.Fetch.future(
            wire.FetchRequest(partition=partition, offset=1, wait_ms_max=60_000, **doomed.handle),
            metadata=bearer(),
            timeout=WAIT_S,
        )
        for partition in range(PARTITIONS)
    ]
    wait_until(
        lambda: metric(host, "headrace_fetch_waits_total") == before + PARTITIONS, "all wait"
    )
    doomed.put(gone=True, flags=flags)
    for fetch in waiting:
        with pytest.raises(grpc.RpcError) as failure:
            fetch.result()
        assert refusal(failure)[1].code == code


def test_a_group_reads_on_behind_the_seal_only_where_its_first_fetch_came_before(
    channel: grpc.Channel, doomed: Doomed
) -> None:
    for partition in range(PARTITIONS):
        doomed.close_for(3, partition)
    fields = {"group": GROUP, "generation": 3, **doomed.handle}
    with Reader(channel, partition=1, **fields) as begun:
        assert begun.values() == [b"kept"]
        assert begun.next().status == wire.EMPTY
        doomed.seal()
        with Reader(channel, partition=1, **fields) as again:
            assert again.values() == [b"kept"]
        # The log takes no IN_FLIGHT any more: nobody can vouch for a first delivery.
        with Reader(channel, partition=2, **fields) as never:
            assert never.error() == "TOPIC_CLOSED"
        assert begun.call.is_active()
        doomed.put(gone=True)
        assert begun.error() == "TOPIC_NOT_FOUND"


def test_records_that_wait_for_credit_are_read_before_the_end(
    host: Host, channel: grpc.Channel, doomed: Doomed
) -> None:
    for index in range(50):
        produce(channel, request((b"%d" % index,), partition=3, **doomed.handle))
    with Reader(channel, partition=3, credit=1, **doomed.handle) as reader:
        assert reader.values() == [b"kept"]
        doomed.seal()
        reader.credit(1 << 20)
        assert reader.read(50) == [b"%d" % index for index in range(50)]
        doomed.put(gone=True)
        assert reader.error() == "TOPIC_NOT_FOUND"
    assert metric(host, "headrace_groups_damaged") == 0


def test_many_topics_that_go_under_open_readers_leave_the_others_alone(
    host: Host, channel: grpc.Channel
) -> None:
    options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    topics = [Doomed(host, channel) for _ in range(6)]
    with ExitStack() as opened:
        own = [opened.enter_context(grpc.insecure_channel(host.address, options)) for _ in topics]
        readers = [caught_up(opened, via, topic) for via, topic in zip(own, topics, strict=True)]
        for topic in topics[::2]:
            topic.seal()
            topic.put(gone=True, flags=RECREATED)
        for those in readers[::2]:
            assert {reader.error() for reader in those} == {"TOPIC_RECREATED"}
        for topic, those in zip(topics[1::2], readers[1::2], strict=True):
            for partition, reader in enumerate(those):
                produce(channel, request((b"more",), partition=partition, **topic.handle))
                assert reader.values() == [b"more"]
