"""`format("headrace")` against a real gRPC server: whole, once, in order, or a typed error."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout

import grpc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.codec import Batch, Record, batches
from headrace.wire import stream_pb2
from reports.billing import usage
from reports.errors import ArgumentError, ReportError, SourceError, found_in
from reports.input.freeze import stored_batches
from reports.source.cluster import Access, ClusterReader, Handle, Range
from reports.source.columns import CHUNK_BYTES, record_rows
from reports.source.data_source import HeadraceReader, HeadraceSource, access_of, selection_of
from tests.reports.building import Close, Sum, closes_frame
from tests.reports.serving import CLUSTER_ID, KEY, Log, Node, bound, refuse, serving

FLIGHTS = "default/flights"


def record(index: int, **fields: bytes | None) -> Record:
    """A record that can be told from every other."""
    value = fields.get("value", b"value-%d" % index)
    headers = (("trace", b"%d" % index),) if index % 3 == 0 else ()
    return Record(b"key-%d" % index if index % 2 else None, value, 1_000_000 * index, headers)


def log_of(count: int, batch: int, codec: str = "none") -> Log:
    """`count` records in batches of `batch`."""
    log = Log()
    for first in range(0, count, batch):
        log.append(
            [record(index) for index in range(first, min(first + batch, count))], codec=codec
        )
    return log


@pytest.fixture
def node() -> Iterator[Node]:
    """Two partitions of flights, one of them compressed."""
    logs = [log_of(100, 7), log_of(60, 13, "zstd")]
    with serving(Node({FLIGHTS: logs, "default/_usage": [Log()]})) as served:
        yield served


def load(spark: SparkSession, node: Node, **options: str | int) -> DataFrame:
    """The source's DataFrame; the key comes as an option."""
    spark.dataSource.register(HeadraceSource)
    chosen: dict[str, str | int] = {
        "topic": FLIGHTS,
        "bootstrap": node.address,
        "key": KEY,
        **options,
    }
    if "handles" in options:
        del chosen["topic"]
    return spark.read.format("headrace").options(**chosen).load()


def reader(node: Node, seconds: float = 20.0) -> ClusterReader:
    """The reading side alone."""
    return ClusterReader(Access((node.address,), KEY, deadline_seconds=seconds))


def offsets(cluster: ClusterReader, wanted: Range, *, skip: bool = False) -> list[int]:
    """Base offsets in the order of delivery."""
    return [
        batch.base_offset
        for found in cluster.replies(wanted, skip_truncated=skip)
        for batch in found
    ]


def flights(partition: int = 0, start: int = 0, end: int = 100) -> Range:
    """A range of the fixture's topic."""
    handle = Handle(FLIGHTS, "tp_flights", 16, 3, 2, CLUSTER_ID)
    return Range(handle, partition, start, end)


def test_every_record_is_read_once_with_all_its_fields(spark: SparkSession, node: Node) -> None:
    rows = load(spark, node, split_records=25).orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset) for row in rows] == [
        *((0, index) for index in range(100)),
        *((1, index) for index in range(60)),
    ]
    for row in rows:
        expected = record(row.offset)
        assert row.topic == FLIGHTS
        assert row.key == expected.key
        assert row.value == expected.value
        assert [(header.name, header.value) for header in row.headers] == list(expected.headers)
    seconds = load(spark, node).agg(F.max(F.unix_micros("timestamp"))).collect()
    assert seconds[0][0] == 99_000_000


def test_batches_are_read_without_their_payload(spark: SparkSession, node: Node) -> None:
    rows = load(spark, node, columns="batches", split_records=25).orderBy("partition", "op")
    found = rows.where("partition = 0").collect()
    log = node.topics[FLIGHTS][0]
    assert [row.base_offset for row in found] == log.bases
    assert [row.stored_bytes for row in found] == [len(stored) for stored in log.stored]
    assert found[-1].cumulative_bytes == sum(row.stored_bytes for row in found) == log.cumulative
    assert {(row.topic_number, row.created_revision, row.principal) for row in found} == {
        (16, 3, 16)
    }
    assert sum(row.record_count for row in rows.collect()) == 160


def test_a_batch_that_the_start_of_the_log_cuts_is_read_whole_and_once(
    spark: SparkSession, node: Node
) -> None:
    log = node.topics[FLIGHTS][0]
    log.log_start = log.bases[2] + 1
    rows = load(spark, node, columns="batches", split_records=5).where("partition = 0")
    assert sorted(row.base_offset for row in rows.collect()) == log.bases[2:]
    records = load(spark, node, split_records=5).where("partition = 0").select("offset").collect()
    assert sorted(row.offset for row in records) == list(range(log.log_start, 100))


def test_without_payload_there_are_four_columns(spark: SparkSession, node: Node) -> None:
    frame = load(spark, node, payload="false")
    assert frame.columns == ["topic", "partition", "offset", "timestamp"]
    assert frame.count() == 160


def test_a_range_of_offsets_is_cut_inside_batches(spark: SparkSession, node: Node) -> None:
    rows = load(spark, node, start=10, end=30).where("partition = 0").collect()
    assert sorted(row.offset for row in rows) == list(range(10, 30))


def test_a_batch_that_the_start_cuts_is_told_whole_by_the_range_that_leads(node: Node) -> None:
    log = node.topics["default/cut"] = [log_of(100, 100)]
    log[0].log_start = 40
    options = {"topic": "default/cut", "columns": "batches", "split_records": "30"}
    reader = HeadraceReader(Access((node.address,), KEY), selection_of(options))
    tasks = reader.partitions()
    rows = [row for task in tasks for part in reader.read(task) for row in part.to_pylist()]
    assert [(row["base_offset"], row["record_count"]) for row in rows] == [(0, 100)]
    assert rows[0]["stored_bytes"] == rows[0]["cumulative_bytes"] == log[0].cumulative


def test_a_log_that_begins_inside_a_batch_is_billed_exactly(
    spark: SparkSession, node: Node
) -> None:
    log = node.topics["default/cut"] = [log_of(100, 100)]
    log[0].log_start = 40
    frame = load(spark, node, topic="default/cut", columns="batches", split_records=30)
    stored = frame.drop("topic").withColumnRenamed("topic_number", "topic")
    number = next(key for key, name in node.numbers().items() if name == "default/cut")
    close = Close(1, (Sum(log[0].cumulative, 100),), topic=number)
    unique = usage.unique_closes(closes_frame(spark, [close]))
    (row,) = usage.reconcile(unique, usage.gaps(unique, from_beginning=True), stored).collect()
    assert (row.state, row.difference, row.bytes_before_log) == ("EXACT", 0, 0)
    assert row.bytes_in_log == row.bytes_billed == log[0].cumulative


def test_the_end_is_frozen_when_the_plan_is_made(spark: SparkSession, node: Node) -> None:
    frame = load(spark, node)
    assert frame.count() == 160
    node.topics[FLIGHTS][0].append([record(index) for index in range(100, 105)])
    assert frame.count() == 160
    assert load(spark, node).count() == 165


def test_uncommitted_records_are_not_read(spark: SparkSession, node: Node) -> None:
    node.topics[FLIGHTS][0].committed = 49
    assert load(spark, node).where("partition = 0").count() == 49


def test_handles_read_several_topics_and_keep_their_names(spark: SparkSession, node: Node) -> None:
    node.topics["other/clicks"] = [log_of(5, 5)]
    frame = load(spark, node, handles="16:3:2,18:3:1")
    counts = {row.topic: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert counts == {FLIGHTS: 160, "other/clicks": 5}


def test_an_empty_topic_is_an_empty_frame(spark: SparkSession, node: Node) -> None:
    assert load(spark, node, topic="default/_usage").collect() == []


def test_the_key_is_in_no_plan_and_in_no_error(spark: SparkSession, node: Node) -> None:
    frame = load(spark, node)
    printed = io.StringIO()
    with redirect_stdout(printed):
        frame.explain(extended=True)
    assert "headrace" in printed.getvalue()
    assert KEY not in printed.getvalue()
    with pytest.raises(PySparkException) as raised:
        load(spark, node, key="hr_node_wrongwrong_secret_000000").collect()
    assert "UNAUTHENTICATED" in str(raised.value)
    assert "hr_node_wrongwrong" not in str(raised.value)


def test_an_error_of_a_worker_keeps_its_code(spark: SparkSession, node: Node) -> None:
    with pytest.raises(PySparkException) as raised:
        load(spark, node, topic="default/absent").collect()
    error = found_in(str(raised.value))
    assert isinstance(error, SourceError)
    assert (error.code, error.hint) == ("TOPIC_NOT_FOUND", "Create it first.")


def test_a_key_that_was_named_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_KEY", KEY)
    assert access_of({"bootstrap": "127.0.0.1:1"}).key == KEY
    with pytest.raises(ArgumentError, match=r"KEY_MISSING.*HEADRACE_NODE_KEY"):
        access_of({"bootstrap": "127.0.0.1:1", "key_variable": "HEADRACE_NODE_KEY"})


def test_a_misspelt_option_is_refused() -> None:
    with pytest.raises(ArgumentError, match="OPTION_UNKNOWN"):
        selection_of({"topic": FLIGHTS, "strat": "5"})
    with pytest.raises(ArgumentError, match="TOPIC_MISSING"):
        selection_of({})
    with pytest.raises(ArgumentError, match="OPTION_INVALID"):
        selection_of({"topic": FLIGHTS, "columns": "rows"})


def test_a_node_that_is_busy_or_elsewhere_is_asked_again(node: Node) -> None:
    def busy(_: stream_pb2.FetchRequest, context: grpc.ServicerContext) -> None:
        refuse(
            context,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "RESOURCE_EXHAUSTED",
            stream_pb2.RETRY_SAME_NODE,
        )

    def away(_: stream_pb2.FetchRequest, context: grpc.ServicerContext) -> None:
        context.abort(grpc.StatusCode.UNAVAILABLE, "going down")

    def not_primary(_: stream_pb2.FetchRequest, __: grpc.ServicerContext) -> stream_pb2.FetchReply:
        return stream_pb2.FetchReply(status=stream_pb2.NOT_PRIMARY)

    node.script = [busy, away, not_primary]
    with reader(node) as cluster:
        assert offsets(cluster, flights()) == node.topics[FLIGHTS][0].bases
    assert len(node.fetches) == 4


def test_long_logs_are_read_in_bounded_fetches(node: Node) -> None:
    log = Log()
    for index in range(12):
        log.append([record(index, value=bytes(1 << 20))])
    node.topics[FLIGHTS][0] = log
    with reader(node) as cluster:
        assert offsets(cluster, flights(end=12)) == list(range(12))
    assert len(node.fetches) == 4


def stored(log: Log) -> list[Batch]:
    """The batches of a log, as those of the fixture's topic."""
    seed = flights().handle.seed(0)
    return list(batches(b"".join(bound(each, seed) for each in log.stored), seed))


def test_small_batches_travel_together_and_large_ones_do_not() -> None:
    small = Log()
    for index in range(100):
        small.append([record(index)])
    (rows,) = record_rows(flights(), stored(small), payload=True)
    assert rows.column("offset").to_pylist() == list(range(100))
    assert rows.column("headers")[3].as_py() == [{"name": "trace", "value": b"3"}]
    large = Log()
    for index in range(3):
        large.append([record(index, value=bytes(CHUNK_BYTES - 4096))], codec="zstd")
    parts = record_rows(flights(), stored(large), payload=True)
    assert [part.num_rows for part in parts] == [2, 1]


def test_a_terminal_error_is_not_repeated(node: Node) -> None:
    def recreated(_: stream_pb2.FetchRequest, context: grpc.ServicerContext) -> None:
        refuse(
            context,
            grpc.StatusCode.FAILED_PRECONDITION,
            "TOPIC_RECREATED",
            stream_pb2.TERMINAL,
        )

    node.script = [recreated]
    with reader(node) as cluster, pytest.raises(SourceError, match="TOPIC_RECREATED"):
        offsets(cluster, flights())
    assert len(node.fetches) == 1


def test_corrupt_bytes_stop_the_read(node: Node) -> None:
    node.script = [lambda _, __: stream_pb2.FetchReply(status=stream_pb2.CORRUPT)]
    with reader(node) as cluster, pytest.raises(SourceError, match="LOG_CORRUPT"):
        offsets(cluster, flights())


def test_a_log_that_is_cut_during_the_read_fails_or_goes_on_as_told(node: Node) -> None:
    log = node.topics[FLIGHTS][0]
    log.log_start = 14
    with reader(node) as cluster:
        with pytest.raises(SourceError, match="LOG_TRUNCATED"):
            offsets(cluster, flights())
        assert offsets(cluster, flights(), skip=True) == log.bases[2:]


@pytest.mark.parametrize("moment", ["before the plan", "in mid-read"])
def test_a_topic_that_is_deleted_meanwhile_is_absent_and_stops_no_run(
    spark: SparkSession, node: Node, moment: str
) -> None:
    doomed = "default/doomed"
    node.topics[doomed] = [log_of(100, 7)]
    spark.dataSource.register(HeadraceSource)
    options = {"bootstrap": node.address, "key": KEY}
    with reader(node) as cluster:
        flights_topic, doomed_topic = cluster.topics(FLIGHTS, doomed)

    def deleting(request: stream_pb2.FetchRequest, _: object) -> stream_pb2.FetchReply | None:
        if request.topic != doomed_topic.number or request.bytes_max == 1:
            return None
        if request.offset == 0:
            return node.topics[doomed][0].read(0, 1, doomed_topic.seed(0))
        node.topics.pop(doomed, None)
        return None

    if moment == "in mid-read":
        node.script = [deleting] * 20
    else:
        del node.topics[doomed]
    rows = stored_batches(spark, options, [flights_topic, doomed_topic]).collect()
    assert {row.topic_number for row in rows} == {flights_topic.number}
    assert len(rows) == sum(len(log.bases) for log in node.topics[FLIGHTS])
    assert doomed not in node.topics


def test_a_topic_that_is_there_and_not_found_stops_the_run(spark: SparkSession, node: Node) -> None:
    def lost(_: stream_pb2.FetchRequest, context: grpc.ServicerContext) -> None:
        refuse(context, grpc.StatusCode.NOT_FOUND, "TOPIC_NOT_FOUND", stream_pb2.TERMINAL)

    node.script = [lost]
    with pytest.raises(PySparkException, match="TOPIC_NOT_FOUND"):
        load(spark, node, columns="batches", truncated="skip").collect()


def test_a_committed_offset_without_a_batch_is_not_waited_for_for_ever(node: Node) -> None:
    with reader(node) as cluster, pytest.raises(SourceError, match="LOG_STALLED"):
        offsets(cluster, flights(end=101))


def test_nobody_at_the_address_is_said_when_the_deadline_has_passed() -> None:
    access = Access(("127.0.0.1:1",), KEY, deadline_seconds=0.05)
    with ClusterReader(access) as cluster, pytest.raises(ReportError, match="UNREACHABLE"):
        cluster.topics()
