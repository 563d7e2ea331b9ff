"""What a run reads is frozen first: `_usage`, then the batches, in a folder named by content."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.codec import Record
from headrace.wire import usage_pb2
from reports.errors import InputError, SourceError, found_in
from reports.inputs import freeze, thawed
from reports.run import report_of
from tests.reports.building import MINUTE_US, TEN_US, export
from tests.reports.serving import KEY, Log, Node, serving

FLIGHTS = "default/flights"


def closed(sequence: int, size: int, records: int) -> bytes:
    """The value of a close of flights[0]: one batch, then the close itself."""
    close = usage_pb2.Close(
        topic=16,
        created_revision=3,
        partition=0,
        sequence=sequence,
        from_op=2 * sequence - 1,
        to_op=2 * sequence,
        window_start_us=TEN_US,
        window_end_us=TEN_US + MINUTE_US,
        cluster_id="cl_local",
        topic_id="tp_flights",
        topic_name=FLIGHTS,
        organization_id="org_acme",
        project_id="prj_default",
    )
    close.sums.add(
        principal=16, ingress_bytes=size, records=records, batches=1, principal_id="key_loader"
    )
    record = usage_pb2.UsageRecord(close=close)
    return b"\x01" + record.SerializeToString(deterministic=True)


def publish_usage(node: Node, *values: bytes) -> None:
    """Append records to `_usage` as the node's own publisher does."""
    for value in values:
        node.topics["default/_usage"][0].append([Record(None, value, 0)], principal=2)


def produce(node: Node, sequence: int, count: int) -> int:
    """Append a batch to flights and its close to `_usage`; returns the stored size."""
    log = node.topics[FLIGHTS][0]
    log.op = 2 * sequence - 2
    return log.append([Record(None, b"x" * 50, 0)] * count, time_us=TEN_US + sequence)


@pytest.fixture
def node() -> Iterator[Node]:
    """Two closed windows of flights[0]; flights[1] is empty."""
    with serving(
        Node({FLIGHTS: [Log(), Log()], "default/_usage": [Log()], "default/_retention": [Log()]})
    ) as served:
        for sequence, count in ((1, 3), (2, 4)):
            size = produce(served, sequence, count)
            publish_usage(served, closed(sequence, size, count))
        yield served


def options(node: Node) -> dict[str, str]:
    return {"bootstrap": node.address, "key": KEY}


def test_a_run_bills_what_the_log_holds(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    frozen = freeze(spark, tmp_path, export(), options(node))
    report = report_of(spark, tmp_path, frozen)
    size = node.topics[FLIGHTS][0].cumulative
    totals = report.manifest["totals"]
    assert isinstance(totals, dict)
    assert (totals["bytes_in_log"], totals["bytes_billed"]) == (str(size), str(size))
    assert (totals["records"], totals["rows"]) == ("7", "2")
    assert report.manifest["complete"] is True
    assert report.manifest["partitions"] == {"EXACT": 1}


def test_the_same_log_is_frozen_into_the_same_folder(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    first = freeze(spark, tmp_path, export(), options(node))
    assert freeze(spark, tmp_path, export(), options(node)) == first
    assert [path.name for path in (tmp_path / "inputs").iterdir()] == [first.sha256]
    assert sorted(path.name for path in first.folder.iterdir()) == [
        "batches-00000.parquet",
        "export.json",
        "inputs.json",
        "usage-00000.parquet",
    ]


def test_a_report_is_computed_again_without_the_cluster(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    frozen = freeze(spark, tmp_path, export(), options(node))
    report = report_of(spark, tmp_path, frozen)
    node.topics.clear()
    assert report_of(spark, tmp_path, thawed(tmp_path, frozen.sha256)) == report


def test_what_is_appended_after_the_last_close_is_open(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    size = produce(node, 3, 5)
    frozen = freeze(spark, tmp_path, export(), options(node))
    totals = report_of(spark, tmp_path, frozen).manifest["totals"]
    assert isinstance(totals, dict)
    assert totals["bytes_open"] == str(size)
    assert int(totals["bytes_in_log"]) - int(totals["bytes_billed"]) == size


def test_counters_are_archived_and_not_billed_as_ingress(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    counter = usage_pb2.Counter(node_id="nd_1", meter="egress_bytes", delta=5, cumulative=5)
    record = usage_pb2.UsageRecord(counter=counter)
    publish_usage(node, b"\x01" + record.SerializeToString(deterministic=True))
    frozen = freeze(spark, tmp_path, export(), options(node))
    assert frozen.closes(spark).count() == 2
    row = spark.read.parquet(str(frozen.folder / "usage-00000.parquet")).where("close is null")
    assert [(one.counter.meter, one.counter.delta) for one in row.collect()] == [
        ("egress_bytes", 5)
    ]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"\x02" + closed(3, 1, 1)[1:], "USAGE_VERSION_UNKNOWN"),
        (b"", "USAGE_VERSION_UNKNOWN"),
        (b"\x01\xff\xff", "USAGE_RECORD_DAMAGED"),
        (b"\x01", "USAGE_RECORD_UNKNOWN"),
    ],
)
def test_a_record_that_cannot_be_understood_stops_the_run(
    spark: SparkSession, node: Node, tmp_path: Path, value: bytes, code: str
) -> None:
    publish_usage(node, value)
    with pytest.raises(PySparkException) as raised:
        freeze(spark, tmp_path, export(), options(node))
    error = found_in(str(raised.value))
    assert isinstance(error, InputError)
    assert error.code == code
    assert list((tmp_path / "inputs").iterdir()) == []


def test_a_key_that_does_not_see_usage_is_told_which_one_does(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    del node.topics["default/_usage"]
    with pytest.raises(SourceError, match=r"USAGE_TOPIC_NOT_VISIBLE.*HEADRACE_NODE_KEY"):
        freeze(spark, tmp_path, export(), options(node))


def test_inputs_that_do_not_exist_are_named(tmp_path: Path) -> None:
    for name in ("0" * 64, "../../etc"):
        with pytest.raises(InputError, match="ARCHIVE_MISSING"):
            thawed(tmp_path, name)
