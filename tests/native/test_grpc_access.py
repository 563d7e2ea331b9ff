"""Who may do what over gRPC: keys, roles, organizations, topic handles."""

import grpc
import pytest

from headrace.wire import stream_pb2 as wire
from tests.support import engine_host
from tests.support.engine_host import Host, grant_row, token
from tests.support.grpc_client import (
    EDITOR,
    EXPIRED,
    PARTITIONS,
    SCOPED,
    SECRET,
    STRANGER,
    SYSTEM_TOPIC,
    VIEWER,
    WAIT_S,
    bearer,
    produce,
    raw,
    refusal,
    request,
)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "MISSING_CREDENTIALS"),
        ("Bearer nonsense", "INVALID_CREDENTIALS"),
        (f"Bearer {token(EDITOR, 'w' * 43)}", "INVALID_CREDENTIALS"),
        (f"Bearer {token('nobody0001', SECRET)}", "INVALID_CREDENTIALS"),
        (f"Bearer {token(EXPIRED, SECRET)}", "EXPIRED_CREDENTIALS"),
    ],
)
def test_a_wrong_key_is_refused_by_name(
    host: Host, channel: grpc.Channel, value: str | None, code: str
) -> None:
    metadata = () if value is None else (("authorization", value),)
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request(), metadata=metadata)
    status, error = refusal(failure)
    assert (status, error.code) == (grpc.StatusCode.UNAUTHENTICATED, code)
    assert SECRET not in str(error)


def test_a_revoked_key_stops_working_on_an_open_connection(
    host: Host, channel: grpc.Channel
) -> None:
    host.submit(grant_row("shortlived", SECRET, principal=30))
    produce(channel, request(), metadata=bearer("shortlived"))
    host.submit(grant_row("shortlived", SECRET, gone=True))
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request(), metadata=bearer("shortlived"))
    assert refusal(failure)[1].code == "INVALID_CREDENTIALS"


@pytest.mark.parametrize(
    ("key", "changes", "status", "code"),
    [
        (VIEWER, {}, "PERMISSION_DENIED", "PERMISSION_DENIED"),
        (SCOPED, {}, "PERMISSION_DENIED", "PERMISSION_DENIED"),
        (STRANGER, {}, "NOT_FOUND", "TOPIC_NOT_FOUND"),
        (EDITOR, {"topic": 999}, "NOT_FOUND", "TOPIC_NOT_FOUND"),
        (EDITOR, {"created_revision": 6}, "FAILED_PRECONDITION", "TOPIC_RECREATED"),
        (EDITOR, {"partition": PARTITIONS}, "NOT_FOUND", "PARTITION_NOT_FOUND"),
        (EDITOR, {"topic": SYSTEM_TOPIC}, "PERMISSION_DENIED", "SYSTEM_TOPIC"),
        (EDITOR, {"topic": 0}, "NOT_FOUND", "TOPIC_NOT_FOUND"),
    ],
)
def test_a_topic_handle_is_judged_before_anything_is_stored(
    host: Host, channel: grpc.Channel, key: str, changes: dict[str, int], status: str, code: str
) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        produce(channel, request((b"v",), **changes), metadata=bearer(key))
    found, error = refusal(failure)
    assert (found.name, error.code) == (status, code)


def test_only_the_node_key_calls_node_methods_and_it_consumes_everything(
    host: Host, channel: grpc.Channel
) -> None:
    node = (("authorization", f"Bearer {engine_host.ADMIN_TOKEN}"),)
    admin = raw(channel, "/headrace.node.v1.Admin/Describe")
    assert admin(b"x", metadata=node, timeout=WAIT_S) == b"x"
    with pytest.raises(grpc.RpcError) as failure:
        admin(b"x", metadata=bearer(), timeout=WAIT_S)
    assert refusal(failure)[1].code == "PERMISSION_DENIED"
    call = raw(channel, "/headrace.stream.v1.Stream/Fetch")
    message = wire.FetchRequest(topic=SYSTEM_TOPIC, created_revision=7).SerializeToString()
    reply = wire.FetchReply.FromString(call(message, metadata=node, timeout=WAIT_S))
    assert reply.status == wire.EMPTY
