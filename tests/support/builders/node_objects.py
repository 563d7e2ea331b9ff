"""The objects that make a node usable without a control plane: two keys, and topics."""

from dataplane.wire import node_pb2
from tests.support.builders import commands
from tests.support.processes.node_process import NodeProcess, token

EDITOR, EDITOR_SHA256 = token("user", "editor0001", "editor")
VIEWER, VIEWER_SHA256 = token("user", "viewer0001", "viewer")


def topic_spec(name: str, partitions: int = 2) -> node_pb2.ApplyRequest:
    """A PutTopic of the control plane for a topic of the project `default`."""
    return commands.put_topic(f"tp_{name}", topic=name, partitions=partitions).control.request


def key_spec(key_id: str, public_id: str, sha256: bytes, role: str) -> node_pb2.ApplyRequest:
    """A PutKey of the control plane for a key of that project."""
    request = commands.put_key(key_id, public_id=public_id, role=role).control.request
    request.put_key.secret_sha256 = sha256
    return request


def furnish(node: NodeProcess, *topics: str) -> None:
    """An editor's and a viewer's key, and these topics with two partitions each."""
    admin = node.admin()
    admin.apply(key_spec("key_editor", "editor0001", EDITOR_SHA256, "editor"))
    admin.apply(key_spec("key_viewer", "viewer0001", VIEWER_SHA256, "viewer"))
    for topic in topics:
        admin.apply(topic_spec(topic))
