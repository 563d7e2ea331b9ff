"""Publish and FetchMessages at a real node, whose names come from committed wishes; the SDK reads
what plain clients wrote, and the reverse."""

from collections.abc import Iterator

import grpc
import pytest

import headrace
from headrace.wire import stream_pb2, stream_pb2_grpc
from tests.support.builders.node_objects import EDITOR, VIEWER, furnish, topic_spec
from tests.support.processes.node_process import CALL_SECONDS, NodeProcess, refusal


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("node")) as running:
        furnish(running, "orders")
        yield running


def publish(node: NodeProcess, topic: str, *values: bytes, key: str = EDITOR) -> int:
    """The first offset in partition 0."""
    reply = stream_pb2_grpc.StreamStub(node.channel).Publish(
        stream_pb2.PublishRequest(
            topic=topic,
            partition=0,
            messages=[stream_pb2.Message(value=value) for value in values],
        ),
        metadata=(("authorization", f"Bearer {key}"),),
        timeout=CALL_SECONDS,
    )
    return int(reply.base_offset)


def fetch(node: NodeProcess, topic: str, offset: int = 0) -> list[bytes]:
    reply = stream_pb2_grpc.StreamStub(node.channel).FetchMessages(
        stream_pb2.FetchMessagesRequest(topic=topic, partition=0, offset=offset),
        metadata=(("authorization", f"Bearer {VIEWER}"),),
        timeout=CALL_SECONDS,
    )
    return [stored.message.value for stored in reply.messages]


def test_plain_clients_and_the_sdk_read_each_other(node: NodeProcess) -> None:
    publish(node, "orders", b"plain 1", b"plain 2")
    bootstrap = f"127.0.0.1:{node.grpc_port}"
    with headrace.connect(bootstrap=bootstrap, key=EDITOR) as client:
        topic = client.topic("orders")
        topic.send_many([b"sdk 1", b"sdk 2"], partition=0)
        found = [message.value for message in topic.consume(partition=0, until="end")]
    assert found == [b"plain 1", b"plain 2", b"sdk 1", b"sdk 2"]
    assert fetch(node, "default/orders") == found
    assert fetch(node, "orders", 3) == [b"sdk 2"]


def test_names_are_known_again_after_a_kill_and_what_was_acked_is_there(node: NodeProcess) -> None:
    node.admin().apply(topic_spec("late"))
    publish(node, "late", b"acked")
    node.kill()
    node.start()
    assert fetch(node, "late") == [b"acked"]
    assert publish(node, "late", b"more") == 1


def test_the_systems_topics_are_nobodys_by_name(node: NodeProcess) -> None:
    for name in ("_usage", "default/_usage"):
        with pytest.raises(grpc.RpcError) as failure:
            publish(node, name, b"forged")
        assert refusal(failure.value)[1].code == "TOPIC_NOT_FOUND"
