"""A retention run against a real node: trims, a hold, and what a group had not read."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dataplane.wire import node_pb2
from reports.retention.export import retention_export_of
from reports.retention.inputs import freeze_retention
from reports.retention.run import retention_report_of
from tests.dataplane import builders
from tests.reports.retention.building import answer, policy
from tests.support.furnishing import EDITOR, furnish, topic_wish
from tests.support.node_process import NodeProcess
from tests.support.platform import wait_until

MIB = 1 << 20
VALUE = bytes(range(256)) * 1024
RECORDS = 20


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path) as running:
        furnish(running)
        yield running


def wish(topic: str, *, generation: int = 1, retention_bytes: int = -1) -> node_pb2.ApplyRequest:
    request = topic_wish(topic, partitions=1)
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


def test_a_run_tells_what_a_node_deleted_and_what_a_hold_kept(
    spark: SparkSession, node: NodeProcess, tmp_path: Path
) -> None:
    for name in ("aged", "held"):
        node.admin().apply(wish(name))
        fill(node, name)
    read_one(node, "aged")
    node.admin().apply(builders.put_hold(topic_id="tp_held").control.request)
    wait_until(lambda: node.admin().describe_node().holds[0].confirmed, "the hold is in force")
    for name in ("aged", "held"):
        node.admin().apply(wish(name, generation=2, retention_bytes=2 * MIB))
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
