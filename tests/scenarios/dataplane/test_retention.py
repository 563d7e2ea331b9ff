"""Retention from a topic's policy to the evidence of it, on a real node."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from dataplane.wire import node_pb2
from headrace.wire import stream_pb2, usage_pb2
from tests.support.builders import commands
from tests.support.builders.node_objects import EDITOR, furnish, topic_spec
from tests.support.processes.node_process import NodeProcess, refusal
from tests.support.processes.platform import wait_until

MIB = 1024 * 1024
VALUE = bytes(range(256)) * 1024  # a quarter of a MiB


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path) as running:
        furnish(running)
        yield running


def _wish(*, generation: int = 1, retention_bytes: int = -1) -> node_pb2.ApplyRequest:
    request = topic_spec("ages", partitions=1)
    request.fence.generation = generation
    request.put_topic.segment_bytes = MIB
    request.put_topic.retention_bytes = retention_bytes
    return request


def _evidence(node: NodeProcess) -> list[usage_pb2.RetentionRecord]:
    admin = node.admin()
    values = admin.values(admin.topic("_retention"), 0)
    return [usage_pb2.RetentionRecord.FromString(value[1:]) for value in values if value]


def _trims(node: NodeProcess) -> list[usage_pb2.Trimmed]:
    return [found.trimmed for found in _evidence(node) if found.HasField("trimmed")]


def _partition(node: NodeProcess) -> node_pb2.PartitionStatus:
    rows = node.admin().describe_node().topics
    return next(row for row in rows if row.topic_id == "tp_ages").partitions[0]


def test_a_policy_trims_and_every_trim_is_in_retention_once_after_a_kill_too(
    node: NodeProcess,
) -> None:
    node.admin().apply(_wish())
    client = node.client(EDITOR)
    topic = client.topic("ages")
    for index in range(20):
        client.produce(topic, 0, [VALUE], sequence=index)
    assert _partition(node).log_start == 0
    node.admin().apply(_wish(generation=2, retention_bytes=2 * MIB))
    wait_until(lambda: len(_trims(node)) == 1, "the trim is in `_retention`")
    status = _partition(node)
    assert 2 * MIB <= status.bytes < 4 * MIB
    (trim,) = _trims(node)
    assert (trim.cause, trim.policy_version, trim.sequence) == ("size", 2, 1)
    assert (trim.first_offset, trim.last_offset + 1) == (0, status.log_start)
    assert (trim.topic_id, trim.topic_name, trim.records) == (
        "tp_ages",
        "default/ages",
        status.log_start,
    )
    early = client.fetch(topic, 0, 0)
    assert (early.status, early.log_start) == (stream_pb2.TRUNCATED, status.log_start)
    node.kill()
    node.start()
    after = _partition(node)
    assert (after.log_start, after.log_end, after.bytes) == (status.log_start, 20, status.bytes)
    assert [found.sequence for found in _trims(node)] == [1]
    files = node.folder.glob(f"**/topics/{topic.number:016x}-*-0-*/*.log")
    assert min(int(path.stem) for path in files) == status.log_start


def test_a_start_takes_an_inventory_of_every_partition(node: NodeProcess) -> None:
    node.admin().apply(_wish(retention_bytes=2 * MIB))
    client = node.client(EDITOR)
    client.produce(client.topic("ages"), 0, [VALUE])
    node.kill()
    node.start()
    wait_until(
        lambda: any(found.HasField("inventory") for found in _evidence(node)), "an inventory"
    )
    (found,) = [row.inventory for row in _evidence(node) if row.HasField("inventory")]
    assert (found.topic_id, found.log_start, found.log_end) == ("tp_ages", 0, 1)
    assert (found.retention_bytes, found.retention_ms, found.held) == (2 * MIB, -1, False)
    assert found.bytes > len(VALUE)
    assert found.oldest_us == found.newest_us > 0


def _hold(node: NodeProcess) -> node_pb2.HoldStatus:
    return node.admin().describe_node().holds[0]


def test_a_hold_in_force_outlives_its_policy_and_a_kill_and_ends_by_release_alone(
    node: NodeProcess,
) -> None:
    node.admin().apply(_wish())
    client = node.client(EDITOR)
    topic = client.topic("ages")
    for index in range(12):
        client.produce(topic, 0, [VALUE], sequence=index)
    hold = commands.put_hold(topic_id="tp_ages").control.request
    node.admin().apply(hold)
    wait_until(lambda: _hold(node).confirmed, "the hold is in force")
    node.admin().apply(_wish(generation=2, retention_bytes=2 * MIB))
    wait_until(lambda: _partition(node).held_bytes > 0, "the policy meets the hold")
    node.kill()
    node.start()
    status = _partition(node)
    assert (status.log_start, status.held, _trims(node)) == (0, True, [])
    with pytest.raises(grpc.RpcError) as caught:
        node.admin().apply(commands.delete_topic("tp_ages", fence=(1, 3, 1)).control.request)
    assert refusal(caught.value)[1].code == "TOPIC_HELD"
    node.admin().apply(commands.release_hold(topic_id="tp_ages").control.request)
    wait_until(lambda: len(_trims(node)) == 1, "what was held goes")
    assert (_hold(node).active, _hold(node).confirmed) == (False, True)
    after = _partition(node)
    assert (after.held, after.held_bytes) == (False, 0)
    assert after.log_start > 0
    node.admin().apply(commands.delete_topic("tp_ages", fence=(1, 3, 1)).control.request)
    wait_until(
        lambda: all(row.topic_id != "tp_ages" for row in node.admin().describe_node().topics),
        "the topic is gone",
    )


def test_a_purge_takes_what_lies_before_and_tells_every_kind_of_reader(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("ages", partitions=2))
    client = node.client(EDITOR)
    topic = client.topic("ages")
    for index in range(8):
        client.produce(topic, 0, [VALUE], sequence=index)
    first, empty = node.admin().purge("tp_ages", p0=5, p1=1)
    assert (first.log_start, first.HasField("refused")) == (5, False)
    assert empty.refused.code == "OFFSET_BEYOND_END"
    early = client.fetch(topic, 0, 0)
    assert (early.status, early.log_start) == (stream_pb2.TRUNCATED, 5)
    assert client.fetch(topic, 0, 5).status == stream_pb2.OK
    wait_until(lambda: len(_trims(node)) == 1, "the purge is in `_retention`")
    (trim,) = _trims(node)
    assert (trim.cause, trim.policy_version, trim.first_offset) == ("purge", 9, 0)
    assert [row.log_start for row in node.admin().purge("tp_ages", p0=5)] == [5], "repeatable"
    assert [row.log_start for row in node.admin().purge("tp_ages", p0=2)] == [5], "a delayed one"
    assert node.admin().purge("tp_ages", p0=9)[0].refused.code == "OFFSET_BEYOND_END"
    assert node.admin().purge("tp_ages", p0=8)[0].log_start == 8
    node.kill()
    node.start()
    assert (_partition(node).log_start, _partition(node).log_end) == (8, 8)


def test_a_purge_takes_nothing_that_is_held_and_names_only_what_is_there(
    node: NodeProcess,
) -> None:
    node.admin().apply(_wish())
    client = node.client(EDITOR)
    topic = client.topic("ages")
    for index in range(4):
        client.produce(topic, 0, [VALUE], sequence=index)
    hold = commands.put_hold(topic_id="tp_ages").control.request
    hold.put_hold.from_offset = 2
    node.admin().apply(hold)
    # At once: a hold that its log does not know yet counts too.
    assert node.admin().purge("tp_ages", p0=3)[0].refused.code == "TOPIC_HELD"
    wait_until(lambda: _hold(node).confirmed, "the hold is in force")
    assert node.admin().purge("tp_ages", p0=3)[0].refused.code == "TOPIC_HELD"
    assert node.admin().purge("tp_ages", p0=2)[0].log_start == 2
    for topic_id, before, code in (
        ("tp_none", {"p0": 1}, "TOPIC_NOT_FOUND"),
        ("tp_ages", {"p1": 1}, "INVALID_ARGUMENT"),
        ("tp_ages", {"p0": 0}, "INVALID_ARGUMENT"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            node.admin().purge(topic_id, **before)
        assert refusal(caught.value)[1].code == code
