"""A retention run against a real node: trims, a hold, and what a group had not read."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dataplane.wire import node_pb2
from reports.retention.export import retention_export_of
from reports.retention.freeze import freeze_retention
from reports.retention.records import RETENTION_TOPIC, decode
from reports.retention_run import retention_report_of
from reports.source.cluster import Access, ClusterReader, Handle
from reports.source.data_source import HeadraceReader, handle_text, selection_of
from tests.reports.retention.building import answer, policy
from tests.support.builders import commands
from tests.support.builders.node_objects import EDITOR, furnish, topic_spec
from tests.support.processes.node_process import NodeProcess
from tests.support.processes.platform import wait_until

MIB = 1 << 20
VALUE = bytes(range(256)) * 1024
RECORDS = 20


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path) as running:
        furnish(running)
        yield running


def desired(topic: str, *, generation: int = 1, retention_bytes: int = -1) -> node_pb2.ApplyRequest:
    request = topic_spec(topic, partitions=1)
    request.fence.generation = generation
    request.put_topic.segment_bytes = MIB
    request.put_topic.retention_bytes = retention_bytes
    return request


def status(node: NodeProcess, topic: str) -> node_pb2.PartitionStatus:
    rows = node.admin().describe_node().topics
    return next(row for row in rows if row.topic_id == f"tp_{topic}").partitions[0]


def fill(node: NodeProcess, name: str) -> None:
    """Twenty records of a quarter of a MiB."""
    client = node.client(EDITOR)
    topic = client.topic(name)
    for index in range(RECORDS):
        client.produce(topic, 0, [VALUE], sequence=index)


def read_one(node: NodeProcess, name: str) -> None:
    """A group that handled one record, and is gone."""
    client = node.client(EDITOR)
    session = client.join("m", name)
    held = session.assignment(lambda found: bool(found.assigned))
    client.commit(held.assigned[0], session.joined.group, 1)


def names() -> dict[str, object]:
    """What the control plane would export."""
    limits = {"retention_ms": "-1", "retention_bytes": str(2 * MIB), "generation": "2"}
    whole = answer(
        as_of_us=time.time_ns() // 1000,
        topics=("aged", "held"),
        policies=[policy(f"tp_{name}", **limits) for name in ("aged", "held")],
    )
    return {
        **whole,
        "organizations": [{"id": "org_1", "name": "default"}],
        "projects": [{"id": "prj_1", "organization_id": "org_1", "name": "default"}],
        "streams": [{"id": "st_default", "project_id": "prj_1", "name": "default"}],
    }


def read(node: NodeProcess, topic: str, columns: str) -> list[pa.RecordBatch]:
    """A topic as the source gives it to Spark."""
    access = Access((f"127.0.0.1:{node.grpc_port}",), node.node_key)
    handles = [one for one in cluster_topics(access) if one.name.rpartition("/")[2] == topic]
    options = {"handles": handle_text(handles[0]), "columns": columns}
    reader = HeadraceReader(access, selection_of(options))
    return [part for task in reader.partitions() for part in reader.read(task)]


def cluster_topics(access: Access) -> list[Handle]:
    """Every topic of the cluster."""
    with ClusterReader(access) as cluster:
        return cluster.topics()


def test_a_purge_inside_a_batch_is_told_by_offsets_and_what_is_left_fits_the_inventory(
    node: NodeProcess,
) -> None:
    node.admin().apply(desired("cut"))
    client = node.client(EDITOR)
    topic = client.topic("cut")
    client.produce(topic, 0, [b"before"] * 10)
    client.produce(topic, 0, [b"cut"] * 100, sequence=10)
    assert [row.log_start for row in node.admin().purge("tp_cut", p0=50)] == [50]

    def told(kind: str) -> list[dict[str, object]]:
        parts = [
            part.select(["offset", "value"]) for part in read(node, RETENTION_TOPIC, "records")
        ]
        rows = [row[kind] for part in decode(iter(parts)) for row in part.to_pylist()]
        return [row for row in rows if row is not None and row["topic_id"] == "tp_cut"]

    wait_until(lambda: bool(told("trimmed")), "the trim is told")
    node.admin().flush_usage(inventory=True)
    (trim,), seen = told("trimmed"), told("inventory")[-1]
    assert (trim["first_offset"], trim["last_offset"]) == (0, 49)
    assert (trim["bytes"], trim["records"]) == (0, 0)
    (batch,) = [row for part in read(node, "cut", "batches") for row in part.to_pylist()]
    assert (batch["base_offset"], batch["record_count"]) == (10, 100)
    # What the first batch stores waits for its segment: cut, and neither live nor deleted.
    cut = batch["cumulative_bytes"] - batch["stored_bytes"]
    assert (seen["bytes"], seen["records"]) == (batch["stored_bytes"] + cut, 60)
    assert (seen["log_start"], seen["log_end"]) == (50, 110)


@pytest.mark.check
def test_a_run_tells_what_a_node_deleted_and_what_a_hold_kept(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    for name in ("aged", "held"):
        node.admin().apply(desired(name))
        fill(node, name)
    read_one(node, "aged")
    node.admin().apply(commands.put_hold(topic_id="tp_held").control.request)
    wait_until(lambda: node.admin().describe_node().holds[0].confirmed, "the hold is in force")
    for name in ("aged", "held"):
        node.admin().apply(desired(name, generation=2, retention_bytes=2 * MIB))
    wait_until(lambda: status(node, "held").held_bytes > 0, "the policy meets the hold")
    wait_until(lambda: status(node, "aged").log_start > 0, "the policy takes what it may")
    node.admin().flush_usage(inventory=True)
    start, blocked = status(node, "aged").log_start, status(node, "held").held_bytes

    frozen = freeze_retention(
        spark,
        tmp_path / "reports",
        retention_export_of(names()),
        {"bootstrap": f"127.0.0.1:{node.grpc_port}", "key": node.node_key},
    )
    assert [(one.group, one.offset) for one in frozen.commits] == [("readers", 1)]
    report = retention_report_of(spark, tmp_path / "reports", frozen)
    totals, found = report.manifest["totals"], report.manifest["violations"]
    assert isinstance(totals, dict)
    assert isinstance(found, dict)
    assert totals["deleted_records"] == str(start)
    assert totals["live_records"] == str(2 * RECORDS - start)
    assert totals["hold_blocked_bytes"] == str(blocked)
    assert (found["UNREAD_DELETED"], found["UNDER_RETAINED"], found["CLOCK_SKEW"]) == (1, 0, 0)
    assert report.manifest["complete"] is True
