"""What a run reads is frozen first: `_usage`, then the batches, in a folder named by content."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.codec import Record
from headrace.wire import usage_pb2
from reports.errors import InputError, SourceError, found_in
from reports.input.freeze import Frozen, freeze, thawed
from reports.input.usage_records import decode
from reports.output.publish import Report
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


@contextmanager
def served() -> Iterator[Node]:
    """Two closed windows of flights[0]; flights[1] is empty."""
    logs = {
        FLIGHTS: [Log(), Log()],
        "default/_usage": [Log()],
        "default/_retention": [Log()],
    }
    with serving(Node(logs)) as node:
        for sequence, count in ((1, 3), (2, 4)):
            publish_usage(node, closed(sequence, produce(node, sequence, count), count))
        yield node


@pytest.fixture
def node() -> Iterator[Node]:
    """A cluster for one test."""
    with served() as node:
        yield node


def options(node: Node) -> dict[str, str]:
    return {"bootstrap": node.address, "key": KEY}


@dataclass(frozen=True)
class Billed:
    """A run that has ended."""

    root: Path
    size_bytes: int
    frozen: Frozen
    again: Frozen
    report: Report


@pytest.fixture(scope="module")
def billed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Billed:
    """Frozen twice, reported once; the cluster is gone."""
    root = tmp_path_factory.mktemp("reports")
    with served() as node:
        frozen = freeze(spark, root, export(), options(node))
        again = freeze(spark, root, export(), options(node))
        size_bytes = node.topics[FLIGHTS][0].cumulative
    return Billed(root, size_bytes, frozen, again, report_of(spark, root, frozen))


def test_a_run_bills_what_the_log_holds(billed: Billed) -> None:
    totals = billed.report.manifest["totals"]
    size = str(billed.size_bytes)
    assert isinstance(totals, dict)
    assert (totals["bytes_in_log"], totals["bytes_billed"]) == (size, size)
    assert (totals["records"], totals["rows"]) == ("7", "2")
    assert billed.report.manifest["complete"] is True
    assert billed.report.manifest["partitions"] == {"EXACT": 1}


def test_the_same_log_is_frozen_into_the_same_folder(billed: Billed) -> None:
    assert billed.again == billed.frozen
    assert [path.name for path in (billed.root / "inputs").iterdir()] == [billed.frozen.sha256]
    assert sorted(path.name for path in billed.frozen.folder.iterdir()) == [
        "batches-00000.parquet",
        "export.json",
        "inputs.json",
        "usage-00000.parquet",
    ]


def test_the_manifest_of_the_inputs_says_how_far_they_reach(billed: Billed) -> None:
    document = json.loads((billed.frozen.folder / "inputs.json").read_bytes())
    assert document["usage"] == {"start": 0, "end": 2}
    assert document["batches"] == [
        {"topic": 16, "created_revision": 3, "partition": 0, "start": 0, "end": 7}
    ]


def test_a_report_is_computed_again_without_the_cluster(
    spark: SparkSession, billed: Billed
) -> None:
    frozen = thawed(billed.root, billed.frozen.sha256)
    assert report_of(spark, billed.root, frozen) == billed.report


@pytest.mark.check
def test_what_is_appended_after_the_last_close_is_open(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    size = produce(node, 3, 5)
    frozen = freeze(spark, tmp_path, export(), options(node))
    report = report_of(spark, tmp_path, frozen)
    totals = report.manifest["totals"]
    assert isinstance(totals, dict)
    assert totals["bytes_open"] == str(size)
    assert int(totals["bytes_in_log"]) - int(totals["bytes_billed"]) == size
    # Nor does the invoice lead to it.
    [invoice] = report.folder.glob("invoice-*.json")
    [place] = json.loads(invoice.read_bytes())["lines"][0]["partitions"]
    assert place["bytes_in_log"] == place["bytes"] == totals["bytes_billed"]


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


def test_a_record_that_cannot_be_understood_stops_the_run(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    publish_usage(node, b"\x02" + closed(3, 1, 1)[1:])
    with pytest.raises(PySparkException) as raised:
        freeze(spark, tmp_path, export(), options(node))
    error = found_in(str(raised.value))
    assert isinstance(error, InputError)
    assert error.code == "USAGE_VERSION_UNKNOWN"
    assert "offset 2" in error.message
    assert list((tmp_path / "inputs").iterdir()) == []


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "USAGE_VERSION_UNKNOWN"),
        (b"", "USAGE_VERSION_UNKNOWN"),
        (b"\x00", "USAGE_VERSION_UNKNOWN"),
        (b"\x01\xff\xff", "USAGE_RECORD_DAMAGED"),
        (b"\x01", "USAGE_RECORD_UNKNOWN"),
    ],
)
def test_every_way_not_to_be_a_usage_record_has_its_code(value: bytes | None, code: str) -> None:
    part = pa.RecordBatch.from_pydict({"offset": [5], "value": pa.array([value], pa.binary())})
    with pytest.raises(InputError, match=f"{code}.*offset 5"):
        list(decode(iter([part])))


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
