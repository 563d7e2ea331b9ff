"""What is billed besides ingress, from a call to its record in `_usage`, on real nodes."""

import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from dataplane.wire import node_pb2
from headrace import codec
from headrace.wire import stream_pb2, stream_pb2_grpc, usage_pb2
from tests.support.builders import commands
from tests.support.builders.node_objects import EDITOR, VIEWER, furnish, topic_spec
from tests.support.builders.seeds import seed_of
from tests.support.clients.usage_log import closes, counters, totals
from tests.support.processes.node_process import NodeProcess, refusal
from tests.support.processes.platform import wait_until

VALUES = [bytes(range(256)) * 40, b"small", b"x" * 100_000]
PUBLISHED_FRAME_BYTES = 17  # dataplane/evidence/spool.py
METADATA = (("authorization", f"Bearer {EDITOR}"),)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path) as running:
        furnish(running, "read")
        yield running


def _fetch_all(node: NodeProcess, bearer: str, topic: stream_pb2.Topic) -> tuple[int, int]:
    """(calls, bytes of batches) of reading every partition by Fetch."""
    client, calls, size = node.client(bearer), 0, 0
    for partition in range(len(topic.partitions)):
        offset, status = 0, stream_pb2.OK
        while status == stream_pb2.OK:
            reply = client.fetch(topic, partition, offset)
            calls, size, status = calls + 1, size + len(reply.batches), reply.status
            for batch in codec.batches(reply.batches, seed_of(topic, partition)):
                offset = batch.base_offset + batch.record_count
    return calls, size


def _read_messages(node: NodeProcess, name: str, partition: int) -> tuple[int, int]:
    """(calls, bytes of messages) of one FetchMessages."""
    reply = stream_pb2_grpc.StreamStub(node.channel).FetchMessages(
        stream_pb2.FetchMessagesRequest(topic=name, partition=partition, bytes_max=1 << 20),
        metadata=METADATA,
        timeout=120,
    )
    assert reply.messages
    return 1, stream_pb2.FetchMessagesReply(messages=reply.messages).ByteSize()


def _consume(node: NodeProcess, topic: stream_pb2.Topic, partition: int) -> tuple[int, int]:
    """(calls, bytes of batches) of one Consume up to the end."""
    begin = stream_pb2.ConsumeBegin(
        topic=topic.number,
        created_revision=topic.created_revision,
        partition=partition,
        credit=1 << 24,
    )
    call = stream_pb2_grpc.StreamStub(node.channel).Consume(
        iter([stream_pb2.ConsumeRequest(begin=begin)]), metadata=METADATA, timeout=120
    )
    size = 0
    for reply in call:
        size += len(reply.fetch.batches)
        if reply.fetch.status == stream_pb2.EMPTY:
            break
    call.cancel()
    return 1, size


def _flushed(node: NodeProcess) -> list[usage_pb2.Counter]:
    assert node.admin().flush_usage().outstanding == 0
    return counters(node)


@pytest.mark.parametrize("shards", [1, 3])
def test_what_clients_read_and_ask_is_counted_to_the_byte(tmp_path: Path, shards: int) -> None:
    with NodeProcess(tmp_path, shards=shards) as node:
        furnish(node)
        node.admin().apply(topic_spec("read", partitions=3))
        client = node.client(EDITOR)
        topic = client.topic("read")
        began = time.monotonic()
        for partition in range(3):
            for sequence, value in enumerate(VALUES):
                client.produce(topic, partition, [value], sequence=sequence)
        calls, size = 9, 0
        for asked, taken in (
            _fetch_all(node, EDITOR, topic),
            _read_messages(node, "read", 1),
            *(_consume(node, topic, partition) for partition in range(3)),
        ):
            calls, size = calls + asked, size + taken
        looked, seen = _fetch_all(node, VIEWER, topic)
        wait_until(
            lambda: (
                node.http("/metrics")[1].count("headrace_metered_egress_bytes_total{") == shards
            ),
            "every shard shows its figures",
        )
        found = totals(_flushed(node), "tp_read")
        stored = found.pop(("stored_byte_seconds", ""))
        assert found == {
            ("egress_bytes", "key_editor"): size,
            ("requests", "key_editor"): calls,
            ("egress_bytes", "key_viewer"): seen,
            ("requests", "key_viewer"): looked,
        }
        bytes_stored = sum(one.ingress_bytes for close in closes(node) for one in close.sums)
        assert seen == bytes_stored
        assert 0 < stored <= bytes_stored * (time.monotonic() - began)
        # Said once: nothing new, nothing again.
        assert totals(_flushed(node), "tp_read")["egress_bytes", "key_editor"] == size
        assert {one.topic_id for one in counters(node)} == {"tp_read"}


def test_what_is_refused_and_what_is_the_systems_is_nobodys_to_pay(node: NodeProcess) -> None:
    editor, viewer, admin = node.client(EDITOR), node.client(VIEWER), node.admin()
    topic = editor.topic("read")
    stranger = stream_pb2.Topic(number=999, created_revision=1)
    for refused, code in (
        (lambda: viewer.produce(topic, 0, [b"no"]), "PERMISSION_DENIED"),
        (lambda: editor.fetch(stranger, 0), "TOPIC_NOT_FOUND"),
        (lambda: editor.fetch(topic, 7), "PARTITION_NOT_FOUND"),
        (lambda: editor.produce(admin.topic("_usage"), 0, [b"no"]), "TOPIC_NOT_FOUND"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            refused()
        assert refusal(caught.value)[1].code == code
    assert admin.fetch(topic, 0).status == stream_pb2.EMPTY
    assert _flushed(node) == []


def test_a_reader_that_goes_away_pays_for_nothing_it_was_not_sent(node: NodeProcess) -> None:
    client = node.client(EDITOR)
    topic = client.topic("read")
    for sequence in range(40):
        client.produce(topic, 0, [b"y" * 900_000], sequence=sequence)
    channel = grpc.insecure_channel(
        f"127.0.0.1:{node.grpc_port}",
        options=[("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0)],
    )
    begin = stream_pb2.ConsumeBegin(
        topic=topic.number, created_revision=topic.created_revision, credit=1 << 30
    )
    call = stream_pb2_grpc.StreamStub(channel).Consume(
        iter([stream_pb2.ConsumeRequest(begin=begin)]), metadata=METADATA, timeout=120
    )
    assert len(next(iter(call)).fetch.batches) > 0
    channel.close()
    found = totals(_flushed(node), "tp_read")
    described = next(
        row for row in node.admin().describe_node().topics if row.number == topic.number
    )
    assert 0 < found["egress_bytes", "key_editor"] < described.partitions[0].bytes


def test_a_clean_stop_ends_every_shards_life_by_name(tmp_path: Path) -> None:
    with NodeProcess(tmp_path, shards=2) as node:
        furnish(node, "read")
        client = node.client(EDITOR)
        for partition in range(2):
            client.produce(client.topic("read"), partition, [b"one"])
        assert node.terminate() == 0
        node.start()
        node.wait_until(lambda: {one.shard for one in counters(node) if one.final} == {0, 1})
        found = counters(node)
        (life,) = {one.incarnation for one in found}
        assert totals(found, "tp_read")["requests", "key_editor"] == 2
        client = node.client(EDITOR)
        client.produce(client.topic("read"), 0, [b"two"], sequence=1)
        after = _flushed(node)
        assert totals(after, "tp_read")["requests", "key_editor"] == 3
        assert max(one.incarnation for one in after) > life


def test_windows_are_told_without_being_asked_for(tmp_path: Path) -> None:
    with NodeProcess(tmp_path, window_seconds=1) as node:
        furnish(node, "read")
        client = node.client(EDITOR)
        client.produce(client.topic("read"), 0, [b"one"])
        node.wait_until(
            lambda: totals(counters(node), "tp_read").get(("requests", "key_editor")) == 1
        )


def test_kill_9_loses_at_most_what_was_not_told_and_bills_nothing_twice(node: NodeProcess) -> None:
    requests, told = 0, 0
    for life in range(3):
        client = node.client(EDITOR)
        topic = client.topic("read")
        for batch in range(5):
            client.produce(topic, 0, [b"%d" % life], sequence=life * 10 + batch)
        requests += 5
        sums = totals(_flushed(node), "tp_read")
        assert told + 5 <= sums["requests", "key_editor"] <= requests
        told = sums["requests", "key_editor"]
        for batch in range(5, 10):
            client.produce(topic, 0, [b"%d" % life], sequence=life * 10 + batch)
        requests += 5
        node.kill()
        node.start()
    found = counters(node)
    assert len({one.incarnation for one in found}) == 3
    assert told <= totals(found, "tp_read")["requests", "key_editor"] <= requests
    assert not any(one.final for one in found)


def test_an_entry_whose_mark_was_lost_is_published_again_and_stands_once(
    node: NodeProcess,
) -> None:
    client = node.client(EDITOR)
    client.produce(client.topic("read"), 0, [b"one"])
    before = _flushed(node)
    node.kill()
    # As after a crash between the publication and its mark.
    last = max((node.data_dir / "spool").glob("*.spool"))
    last.write_bytes(last.read_bytes()[:-PUBLISHED_FRAME_BYTES])
    node.start()
    node.wait_until(lambda: "headrace_usage_pending 0.0" in node.http("/metrics")[1])
    assert counters(node) == before
    assert "headrace_usage_spools_lost_total 0.0" in node.http("/metrics")[1]


def test_a_revoked_key_and_a_deleted_topic_still_pay_for_what_they_did(node: NodeProcess) -> None:
    client = node.client(EDITOR)
    topic = client.topic("read")
    client.produce(topic, 0, [b"last"])
    size = len(client.fetch(topic, 0).batches)
    revoked = commands.revoke_key("key_editor").control.request
    node.admin().apply(revoked)
    deleted: node_pb2.ApplyRequest = commands.delete_topic("tp_read").control.request
    node.admin().apply(deleted)
    wait_until(
        lambda: all(row.topic_id != "tp_read" for row in node.admin().describe_node().topics),
        "the topic is gone",
    )
    found = _flushed(node)
    assert totals(found, "tp_read")["egress_bytes", "key_editor"] == size
    assert totals(found, "tp_read")["requests", "key_editor"] == 2
    assert {(one.topic_name, one.organization_id, one.project_id) for one in found} == {
        ("default/read", "org_1", "prj_1")
    }
