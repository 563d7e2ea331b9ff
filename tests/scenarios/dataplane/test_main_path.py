"""The whole path through real processes: REST, plain grpcio (sync and aio), CLI, ten crashes.

Played on a node of one shard and on one of three.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

import headrace
from headrace.codec import Record, batches, decode, encode, partition_seed
from headrace.wire import stream_pb2, stream_pb2_grpc
from tests.support.processes.platform import Platform, wait_until
from tests.support.stories.stage import Stage, account

KILLS = 10
RECORDS_PER_SEND = 500


THREE = pytest.param(3, marks=pytest.mark.check)


@pytest.fixture(scope="module", params=[1, THREE], ids="shards={}".format)
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    options = ("--metering-window", "5", "--set", f"node.shards={request.param}")
    with Platform(tmp_path_factory.mktemp("platform"), *options) as platform:
        yield Stage(platform)


def test_a_topic_created_by_the_cli_takes_and_gives_records_byte_for_byte(stage: Stage) -> None:
    made = stage.platform.cli("topic", "create", "cli-path", "--partitions", "1", "-o", "json")
    assert json.loads(made.stdout)["name"] == "cli-path"
    line = b'{"key":"k","value":"v \\u00e9","headers":[["h","1"]]}\n'
    stage.platform.cli("produce", "cli-path", "-i", "jsonl", stdin=line * 3)
    read = stage.platform.cli("consume", "cli-path", "--from", "start", "-e", "-o", "jsonl")
    records = [json.loads(text) for text in read.stdout.splitlines()]
    assert [record["offset"] for record in records] == [0, 1, 2]
    assert {record["value"] for record in records} == {"v é"}
    again = stage.platform.cli("topic", "create", "cli-path", check=False)
    assert again.returncode == 5
    assert b"cli-path" in again.stderr


def handle(stage: Stage, name: str) -> tuple[str, int, int, list[tuple[str, str]], int]:
    """(bootstrap, topic number, created_revision, metadata, seed of partition 0) of a topic, asked
    with plain grpcio."""
    profile = stage.platform.profile()
    metadata = [("authorization", f"Bearer {profile.key}")]
    with grpc.insecure_channel(profile.bootstrap) as channel:
        described = stream_pb2_grpc.ClusterStub(channel).Describe(
            stream_pb2.DescribeRequest(topics=[name]), metadata=metadata, timeout=120
        )
    topic = described.topics[0]
    assert not topic.HasField("error"), topic.error
    seed = partition_seed(described.cluster_id, topic.number, topic.created_revision, 0)
    return profile.bootstrap, topic.number, topic.created_revision, metadata, seed


def batch_of(*values: bytes) -> bytes:
    """A client part of plain values, not idempotent."""
    return encode([Record(key=None, value=value, timestamp_us=1) for value in values])


def values_of(reply: stream_pb2.FetchReply, seed: int) -> list[bytes | None]:
    """Every value of a fetch reply, in order."""
    return [value for batch in batches(reply.batches, seed) for value in decode(batch).values]


def test_plain_grpcio_sync_produces_fetches_and_is_refused_without_a_key(stage: Stage) -> None:
    with stage.connect() as client:
        client.admin.create_topic("grpc-sync", partitions=1)
    bootstrap, number, revision, metadata, seed = handle(stage, "grpc-sync")
    request = stream_pb2.ProduceRequest(
        topic=number, created_revision=revision, partition=0, batch=batch_of(b"a", b"b")
    )
    fetch = stream_pb2.FetchRequest(
        topic=number, created_revision=revision, partition=0, wait_ms_max=1000
    )
    with grpc.insecure_channel(bootstrap) as channel:
        stub = stream_pb2_grpc.StreamStub(channel)
        reply = stub.Produce(request, metadata=metadata, timeout=120)
        assert (reply.base_offset, reply.record_count, reply.persisted) == (0, 2, 1)
        streamed = list(
            stub.ProduceStream(iter([request, request]), metadata=metadata, timeout=120)
        )
        assert [one.base_offset for one in streamed] == [2, 4]
        fetched = stub.Fetch(fetch, metadata=metadata, timeout=120)
        assert values_of(fetched, seed) == [b"a", b"b"] * 3
        assert fetched.high_watermark == 6
        with pytest.raises(grpc.RpcError) as refused:
            stub.Produce(request, timeout=120)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        stale = stream_pb2.FetchRequest(topic=number, created_revision=revision + 1)
        with pytest.raises(grpc.RpcError) as recreated:
            stub.Fetch(stale, metadata=metadata, timeout=120)
        assert recreated.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_plain_grpcio_aio_waits_in_a_long_poll_until_a_record_is_committed(stage: Stage) -> None:
    with stage.connect() as client:
        client.admin.create_topic("grpc-aio", partitions=1)
    bootstrap, number, revision, metadata, seed = handle(stage, "grpc-aio")

    async def played() -> tuple[list[bytes | None], int]:
        async with grpc.aio.insecure_channel(bootstrap) as channel:
            stub = stream_pb2_grpc.StreamStub(channel)
            waiting = stub.Fetch(
                stream_pb2.FetchRequest(
                    topic=number, created_revision=revision, partition=0, wait_ms_max=20_000
                ),
                metadata=metadata,
                timeout=120,
            )
            reply = await stub.Produce(
                stream_pb2.ProduceRequest(
                    topic=number, created_revision=revision, partition=0, batch=batch_of(b"late")
                ),
                metadata=metadata,
                timeout=120,
            )
            fetched = await waiting
            return values_of(fetched, seed), int(reply.base_offset)

    assert asyncio.run(played()) == ([b"late"], 0)


def test_two_members_share_a_group_and_a_third_of_nothing_gets_nothing(stage: Stage) -> None:
    with stage.connect() as client:
        client.admin.create_topic("shared", partitions=2)
        client.topic("shared").send_many([str(n) for n in range(1000)])
        first = client.topic("shared").consume(group="g", start="earliest", until="end", member="a")
        values = [message.text() for message in first]
    assert sorted(map(int, values)) == list(range(1000))
    with stage.connect() as client:
        second = client.topic("shared").consume(
            group="g", start="earliest", until="end", member="b"
        )
        assert list(second) == []


class Producing(threading.Thread):
    """Sends rows until told to stop; keeps which were acknowledged."""

    def __init__(self, client: headrace.Client, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = client.topic(topic)
        self.acked = 0
        self.sent = 0
        self.stop = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                rows = range(self.sent, self.sent + RECORDS_PER_SEND)
                acks = self.topic.send_many([str(row) for row in rows])
                self.sent += RECORDS_PER_SEND
                self.acked += sum(ack.count for ack in acks)
        except BaseException as error:  # shown by the test that joins
            self.error = error


@pytest.mark.timeout(1800)
def test_ten_kills_in_the_middle_of_producing_lose_nothing_and_repeat_nothing(stage: Stage) -> None:
    with stage.connect() as client:
        client.admin.create_topic("killed", partitions=2)
        producing = Producing(client, "killed")
        producing.start()
        for _ in range(KILLS):
            acked = producing.acked

            def grown(than: int = acked) -> bool:
                return producing.acked > than or producing.error is not None

            wait_until(grown, "records are acknowledged")
            stage.platform.wait_for_another_node(stage.platform.kill_node())
        acked = producing.acked
        wait_until(lambda: producing.acked > acked or producing.error is not None, "it goes on")
        producing.stop.set()
        producing.join(120)
        assert producing.error is None
        consumer = client.topic("killed").consume(start="earliest", until="end")
        rows = [int(m) for batch in consumer.batches() for m in batch.values if m is not None]
    assert producing.acked == producing.sent
    assert account(rows, producing.sent) == (0, 0)


@pytest.mark.check
def test_the_bill_of_a_run_is_the_log_byte_for_byte(stage: Stage) -> None:
    ran = stage.platform.cli("report", "run", "usage", "--wait", "-o", "json")
    totals = json.loads(ran.stdout)["result"]["totals"]
    assert int(totals["bytes_in_log"]) == int(totals["bytes_billed"]) > 0
    shown = stage.platform.cli("usage", "--by", "day", "-o", "json")
    assert json.loads(shown.stdout)["items"]


@pytest.mark.parametrize("shards", [1, THREE])
@pytest.mark.check
def test_a_stopped_platform_leaves_no_process_and_starts_again_with_everything(
    tmp_path: Path, shards: int
) -> None:
    platform = Platform(tmp_path, "--set", f"node.shards={shards}")
    with platform, Stage(platform).connect() as client:
        client.admin.create_topic("kept", partitions=1)
        client.topic("kept").send("here")
    with platform, Stage(platform).connect() as client:
        values = [m.text() for m in client.topic("kept").consume(start="earliest", until="end")]
    assert values == ["here"]
