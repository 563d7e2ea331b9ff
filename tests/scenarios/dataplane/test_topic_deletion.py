"""Topics deleted, grown and made again on a real node."""

from collections.abc import Iterator
from contextlib import ExitStack

import grpc
import pytest

from dataplane.wire import node_pb2
from headrace.wire import stream_pb2
from tests.support.builders import commands
from tests.support.builders.node_objects import EDITOR, furnish, topic_spec
from tests.support.clients.consume_reader import Reader
from tests.support.clients.usage_log import closes
from tests.support.processes.node_process import NodeProcess, refusal
from tests.support.processes.platform import wait_until


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One node; every test has topics of its own."""
    with NodeProcess(tmp_path_factory.mktemp("node")) as running:
        furnish(running)
        yield running


def _deletion(name: str, *, generation: int = 2) -> node_pb2.ApplyRequest:
    return commands.delete_topic(f"tp_{name}", fence=(1, generation, 1)).control.request


def _wish(topic_id: str, name: str, *, partitions: int = 2) -> node_pb2.ApplyRequest:
    return commands.put_topic(topic_id, topic=name, partitions=partitions).control.request


def _status(node: NodeProcess, topic_id: str) -> node_pb2.TopicStatus | None:
    rows = node.admin().describe_node().topics
    return next((row for row in rows if row.topic_id == topic_id), None)


def _is_gone(node: NodeProcess, topic_id: str) -> bool:
    return _status(node, topic_id) is None


def _records_metered(node: NodeProcess, topic: int) -> int:
    found = [close for close in closes(node) if close.topic == topic]
    return sum(row.records for close in found for row in close.sums)


def _refused(node: NodeProcess, topic: stream_pb2.Topic) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        node.client(EDITOR).produce(topic, 0, [b"late"], sequence=1000)
    return refusal(caught.value)[1].code


def test_a_deleted_topic_is_billed_to_the_last_record_and_gone(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("ends"))
    client = node.client(EDITOR)
    topic = client.topic("ends")
    client.produce(topic, 0, [b"a", b"b"])
    client.produce(topic, 1, [b"c"])
    reply = node.admin().apply(_deletion("ends"))
    assert (reply.number, reply.changed, reply.deleted) == (topic.number, True, False)
    wait_until(lambda: _is_gone(node, "tp_ends"), "the topic is gone")
    assert _records_metered(node, topic.number) == 3
    assert client.describe("ends").topics[0].error.code == "TOPIC_NOT_FOUND"
    assert _refused(node, topic) == "TOPIC_NOT_FOUND"
    assert node.admin().apply(_deletion("ends")).deleted
    with pytest.raises(grpc.RpcError) as caught:
        node.admin().apply(commands.put_topic("tp_ends", fence=(1, 9, 1)).control.request)
    assert refusal(caught.value)[1].code == "TOPIC_DELETED"
    assert "headrace_topics_closing 0.0" in node.http("/metrics")[1]


def test_a_topic_made_again_is_another_and_old_handles_are_told_so_after_a_kill_too(
    node: NodeProcess,
) -> None:
    node.admin().apply(topic_spec("again"))
    client = node.client(EDITOR)
    old = client.topic("again")
    client.produce(old, 0, [b"old"])
    node.admin().apply(_deletion("again"))
    wait_until(lambda: _is_gone(node, "tp_again"), "the topic is gone")
    node.admin().apply(_wish("tp_second", "again"))
    new = client.topic("again")
    assert new.number > old.number
    assert _refused(node, old) == "TOPIC_RECREATED"
    assert client.produce(new, 0, [b"new"]).base_offset == 0
    node.kill()
    node.start()
    assert _refused(node, old) == "TOPIC_RECREATED"
    assert node.client(EDITOR).values(new, 0) == [b"new"]


def test_open_consumes_read_to_the_end_and_are_told_that_their_topic_is_gone(
    node: NodeProcess,
) -> None:
    node.admin().apply(topic_spec("watched"))
    client = node.client(EDITOR)
    topic = client.topic("watched")
    handle = {"topic": topic.number, "created_revision": topic.created_revision}
    with ExitStack() as opened:
        channel = opened.enter_context(grpc.insecure_channel(f"127.0.0.1:{node.grpc_port}"))
        readers = [
            opened.enter_context(Reader(channel, EDITOR, partition=partition, **handle))
            for partition in range(2)
        ]
        for partition, reader in enumerate(readers):
            assert reader.next().status == stream_pb2.EMPTY
            client.produce(topic, partition, [b"last"])
            assert reader.values() == [b"last"]
            assert reader.next().status == stream_pb2.EMPTY
        node.admin().apply(_deletion("watched"))
        assert {reader.error() for reader in readers} == {"TOPIC_NOT_FOUND"}
        wait_until(lambda: _is_gone(node, "tp_watched"), "the topic is gone")
        node.admin().apply(_wish("tp_watched_again", "watched"))
        with Reader(channel, EDITOR, **handle) as stale:
            assert stale.error() == "TOPIC_RECREATED"
        again = client.topic("watched")
        with Reader(
            channel, EDITOR, topic=again.number, created_revision=again.created_revision
        ) as fresh:
            client.produce(again, 0, [b"first"])
            assert fresh.read(1) == [b"first"]


def test_a_deletion_goes_on_after_a_kill(node: NodeProcess) -> None:
    for index in range(12):
        node.admin().apply(topic_spec(f"many{index}"))
        client = node.client(EDITOR)
        client.produce(client.topic(f"many{index}"), 0, [b"x"])
    numbers = [client.topic(f"many{index}").number for index in range(12)]
    for index in range(12):
        node.admin().apply(_deletion(f"many{index}"))
    node.kill()
    node.start()
    wait_until(
        lambda: all(_is_gone(node, f"tp_many{index}") for index in range(12)), "all are gone"
    )
    # At least once each: a window may stand twice after a kill, never not at all.
    assert all(_records_metered(node, number) >= 1 for number in numbers)


def test_members_of_a_deleted_topic_are_told_that_they_read_nothing(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("left"))
    session = node.client(EDITOR).join("a", "left")
    session.assigned(2)
    node.admin().apply(_deletion("left"))
    assert session.assigned(0).members == 1
    session.close()


def test_a_topic_that_grows_gives_its_readers_the_new_partitions(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("grows"))
    client = node.client(EDITOR)
    session = client.join("a", "grows")
    before = {row.partition: row.generation for row in session.assigned(2).assigned}
    desired = _wish("tp_grows", "grows", partitions=4)
    desired.fence.generation = 2
    node.admin().apply(desired)
    after = {row.partition: row.generation for row in session.assigned(4).assigned}
    assert {partition: after[partition] for partition in before} == before
    topic = client.topic("grows")
    assert len(topic.partitions) == 4
    assert client.produce(topic, 3, [b"x"]).base_offset == 0
    assert client.values(topic, 3) == [b"x"]
    session.close()
    fewer = topic_spec("grows")
    fewer.fence.generation = 3
    with pytest.raises(grpc.RpcError) as caught:
        node.admin().apply(fewer)
    assert refusal(caught.value)[1].code == "PARTITIONS_DECREASE"
