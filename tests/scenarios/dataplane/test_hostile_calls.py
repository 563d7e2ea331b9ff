"""Hostile calls of every gRPC method of a node (X15, X16, X28, X36): keys that do not hold, ids of
others, stale handles, bytes that are no message, names without end. Each gets a typed answer that
teaches and fits into a status; others are served meanwhile; the log stays lines of JSON.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from dataplane.wire import node_pb2
from headrace import codec
from headrace.wire import stream_pb2 as wire
from tests.support.builders.node_objects import EDITOR, VIEWER, furnish, key_spec
from tests.support.processes.node_process import NodeProcess, refusal, token

STRANGER, STRANGER_SHA256 = token("user", "stranger01", "stranger")
EXPIRED, EXPIRED_SHA256 = token("user", "expired001", "expired")
REVOKED, REVOKED_SHA256 = token("user", "revoked001", "revoked")
BILLING, BILLING_SHA256 = token("user", "billing001", "billing")
STATUS_BYTES_MAX = 8192
MEBIBYTE = 1 << 20

SERVICES = [
    *wire.DESCRIPTOR.services_by_name.values(),
    *node_pb2.DESCRIPTOR.services_by_name.values(),
]
METHODS = [f"/{each.full_name}/{method.name}" for each in SERVICES for method in each.methods]
REFLECTION = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
]
EMPTY = ("ConfirmClock", "FlushUsage")
STREAM = "/headrace.stream.v1.Stream/"
CLUSTER = "/headrace.stream.v1.Cluster/"
GROUPS = "/headrace.stream.v1.Groups/"


@dataclass
class Outcome:
    """How a call ended: its status, its Error wherever that stood, its replies."""

    code: grpc.StatusCode = grpc.StatusCode.OK
    error: wire.Error = field(default_factory=wire.Error)
    replies: list[bytes] = field(default_factory=list)


@pytest.fixture(scope="module", params=[1, 3], ids="shards={}".format)
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeProcess]:
    """A node with a topic, and keys of every kind."""
    with NodeProcess(tmp_path_factory.mktemp("node"), shards=request.param) as running:
        furnish(running, "theirs")
        admin = running.admin()
        other = key_spec("key_stranger", "stranger01", STRANGER_SHA256, "owner")
        other.put_key.organization_id = "org_other"
        other.put_key.project_id = ""
        admin.apply(other)
        admin.apply(key_spec("key_billing", "billing001", BILLING_SHA256, "billing-viewer"))
        old = key_spec("key_expired", "expired001", EXPIRED_SHA256, "owner")
        old.put_key.expires_at_us = 1
        admin.apply(old)
        gone = key_spec("key_revoked", "revoked001", REVOKED_SHA256, "owner")
        admin.apply(gone)
        revocation = node_pb2.ApplyRequest(fence=gone.fence)
        revocation.fence.generation += 1
        revocation.revoke_key.key_id = "key_revoked"
        admin.apply(revocation)
        running.client(EDITOR).produce(running.client(EDITOR).topic("theirs"), 0, [b"v"])
        yield running


def call(
    node: NodeProcess, path: str, message: bytes, *, bearer: str | None, seconds: float = 120.0
) -> Outcome:
    """Call a method with bytes; the wire of a unary call is that of a stream with one message."""
    made: grpc.StreamStreamMultiCallable[bytes, bytes] = node.channel.stream_stream(path)
    metadata = () if bearer is None else (("authorization", bearer),)
    outcome = Outcome()
    try:
        for reply in made(iter([message]), metadata=metadata, timeout=seconds):
            outcome.replies.append(reply)
    except grpc.RpcError as error:
        outcome.code, outcome.error = refusal(error)
        assert len(outcome.error.SerializeToString()) < STATUS_BYTES_MAX
        return outcome
    for reply in outcome.replies:
        found = error_in(path, reply)
        if found is not None:
            outcome.error = found
    return outcome


def error_in(path: str, reply: bytes) -> wire.Error | None:
    """The Error that a stream carries inside a reply."""
    if path.endswith("ProduceStream"):
        return wire.ProduceReply.FromString(reply).error
    if path.endswith("Consume"):
        return wire.ConsumeReply.FromString(reply).error
    if path.endswith("Session"):
        return wire.SessionEvent.FromString(reply).ended
    return None


def teaches(outcome: Outcome) -> None:
    assert outcome.error.code, outcome
    assert outcome.error.message, outcome
    assert "Traceback" not in outcome.error.message


def serves(node: NodeProcess) -> None:
    assert node.client(VIEWER).topic("theirs").number


# --- keys ----------------------------------------------------------------------------------------

KEYS: dict[str, tuple[str | None, str]] = {
    "missing": (None, "MISSING_CREDENTIALS"),
    "empty": ("", "MISSING_CREDENTIALS"),
    "without a scheme": (EDITOR, "INVALID_CREDENTIALS"),
    "of another scheme": (f"Basic {EDITOR}", "INVALID_CREDENTIALS"),
    "malformed": ("Bearer hr_user_x", "INVALID_CREDENTIALS"),
    "unknown": (f"Bearer {token('user', 'nobody0001', 'x')[0]}", "INVALID_CREDENTIALS"),
    "with another secret": (f"Bearer {token('user', 'editor0001', 'x')[0]}", "INVALID_CREDENTIALS"),
    "revoked": (f"Bearer {REVOKED}", "INVALID_CREDENTIALS"),
    "expired": (f"Bearer {EXPIRED}", "EXPIRED_CREDENTIALS"),
    "long": ("Bearer " + "a" * 4000, "INVALID_CREDENTIALS"),
}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_does_not_hold_calls_no_method(node: NodeProcess, key: str) -> None:
    value, code = KEYS[key]
    for path in (*METHODS, *REFLECTION):
        outcome = call(node, path, b"", bearer=value)
        assert outcome.code == grpc.StatusCode.UNAUTHENTICATED, path
        # Reflection is asked for its key by the host.
        asked_later = path in REFLECTION and outcome.error.code == "UNAUTHENTICATED"
        assert outcome.error.code == code or asked_later, path
        assert outcome.error.hint
        assert not outcome.replies


def test_a_key_calls_only_what_its_role_names(node: NodeProcess) -> None:
    topic = node.client(EDITOR).topic("theirs")
    for path in METHODS:
        if path.startswith("/headrace.node.v1."):
            for key in (EDITOR, VIEWER, STRANGER):
                outcome = call(node, path, b"", bearer=f"Bearer {key}")
                assert outcome.error.code == "PERMISSION_DENIED", path
    for path, message in hot(topic).items():
        writes = "Produce" in path or "Publish" in path
        for key in (VIEWER, BILLING) if writes else (BILLING,):
            outcome = call(node, path, message.SerializeToString(), bearer=f"Bearer {key}")
            assert outcome.error.code == "PERMISSION_DENIED", (path, key[:24])


# --- handles and names of others -----------------------------------------------------------------


def hot(topic: wire.Topic) -> dict[str, Message]:
    """One sound request for each method that takes a handle or a name of a topic."""
    at = {"topic": topic.number, "created_revision": topic.created_revision}
    batch = codec.encode([codec.Record(None, b"v", 1)])
    messages = [wire.Message(value=b"v")]
    return {
        STREAM + "Produce": wire.ProduceRequest(**at, batch=batch),
        STREAM + "ProduceStream": wire.ProduceRequest(**at, batch=batch),
        STREAM + "Fetch": wire.FetchRequest(**at),
        STREAM + "Consume": wire.ConsumeRequest(begin=wire.ConsumeBegin(**at, credit=1)),
        STREAM + "CommitOffsets": wire.CommitOffsetsRequest(**at, group=16, offset=1),
        STREAM + "FetchOffsets": wire.FetchOffsetsRequest(**at, group=1),
        STREAM + "ListOffsets": wire.ListOffsetsRequest(**at),
        STREAM + "Publish": wire.PublishRequest(topic="theirs", messages=messages),
        STREAM + "FetchMessages": wire.FetchMessagesRequest(topic="theirs"),
    }


def test_handles_and_names_of_another_organization_are_those_of_nothing(node: NodeProcess) -> None:
    theirs = node.client(EDITOR).topic("theirs")
    nothing = wire.Topic(number=999_999, created_revision=1)
    absent = {path: named(message, "nothing") for path, message in hot(nothing).items()}
    for path, message in hot(theirs).items():
        found, none = (
            call(node, path, each.SerializeToString(), bearer=f"Bearer {STRANGER}")
            for each in (message, absent[path])
        )
        assert found.error.code in ("TOPIC_NOT_FOUND", "PROJECT_NOT_FOUND"), (path, found)
        assert (found.code, found.error.code) == (none.code, none.error.code), path
        teaches(found)


def test_nothing_of_another_organization_is_described_or_joined(node: NodeProcess) -> None:
    def cold(name: str) -> dict[str, Message]:
        return {
            CLUSTER + "Describe": wire.DescribeRequest(topics=[name]),
            GROUPS + "DescribeGroup": wire.DescribeGroupRequest(group=name),
            GROUPS + "Session": session(group="g", topics=[name]),
        }

    for path, message in cold("theirs").items():
        found, none = (
            call(node, path, each.SerializeToString(), bearer=f"Bearer {STRANGER}")
            for each in (message, cold("none")[path])
        )
        assert (found.code, found.error.code) == (none.code, none.error.code), path
        assert b"tp_theirs" not in b"".join(found.replies)


def named(message: Message, topic: str) -> Message:
    """The request with another name, if it speaks of a name."""
    if isinstance(message, wire.PublishRequest | wire.FetchMessagesRequest):
        message.topic = topic
    return message


def test_a_stale_handle_is_told_so_by_every_method(node: NodeProcess) -> None:
    topic = node.client(EDITOR).topic("theirs")
    stale = wire.Topic(number=topic.number, created_revision=topic.created_revision - 1)
    for path, message in hot(stale).items():
        if path.endswith(("Publish", "FetchMessages")):
            continue
        outcome = call(node, path, message.SerializeToString(), bearer=f"Bearer {EDITOR}")
        assert outcome.error.code == "TOPIC_RECREATED", (path, outcome)
        teaches(outcome)


@pytest.mark.parametrize("partition", [2, 1 << 31, (1 << 32) - 1])
def test_a_partition_that_is_not_there_is_told_so(node: NodeProcess, partition: int) -> None:
    for path, message in hot(node.client(EDITOR).topic("theirs")).items():
        target = message.begin if isinstance(message, wire.ConsumeRequest) else message
        if "partition" not in target.DESCRIPTOR.fields_by_name:
            continue
        target.MergeFrom(type(target)(partition=partition))
        outcome = call(node, path, message.SerializeToString(), bearer=f"Bearer {EDITOR}")
        assert outcome.error.code == "PARTITION_NOT_FOUND", (path, outcome)


# --- bytes that are no message -------------------------------------------------------------------


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


MALFORMED = {
    "noise": b"\xff" * 10,
    "a tag alone": b"\x0a",
    "a length without bytes": b"\x0a\x7f",
    "a length of 4 GiB": b"\x0a" + varint((1 << 32) - 1),
    "a length of 2^63": b"\x0a" + varint(1 << 63),
    "a number without an end": b"\x08" + b"\xff" * 11,
    "field number 0": b"\x02\x00",
    "an end without a begin": b"\x0c",
    "a wire type that is none": b"\x0f\x00",
    "groups without an end": b"\x0b" * 100_000,
    "100,000 groups": b"\x0b" * 100_000 + b"\x0c" * 100_000,
    "half a fixed number": b"\xc9\x3e\x01",
}


@pytest.mark.parametrize("malformed", MALFORMED)
def test_bytes_that_are_no_message_are_refused_by_every_method(
    node: NodeProcess, malformed: str
) -> None:
    for path in (*METHODS, *REFLECTION):
        bearer = node.node_key if path.startswith("/headrace.node.v1.") else EDITOR
        if malformed == "field number 0" and path.endswith(EMPTY):
            continue  # Their library has it that what has no fields has no wrong one.
        outcome = call(node, path, MALFORMED[malformed], bearer=f"Bearer {bearer}")
        assert outcome.error.code in ("MALFORMED_REQUEST", "INVALID_ARGUMENT"), (path, outcome)
        teaches(outcome)
    serves(node)


NESTED: dict[str, Callable[[], bytes]] = {
    "text that is no UTF-8": lambda: b"\x0a\x02\xff\xfe\x12\x02\xff\xfe",
    "a flag for text": lambda: b"\x08\x01\x10\x01\x18\x01",
}


@pytest.mark.parametrize("nested", NESTED)
def test_members_of_a_wrong_type_harm_nobody(node: NodeProcess, nested: str) -> None:
    for path in METHODS:
        bearer = node.node_key if path.startswith("/headrace.node.v1.") else EDITOR
        if path.endswith(EMPTY):
            continue  # They have no members: everything is unknown to them.
        outcome = call(node, path, NESTED[nested](), bearer=f"Bearer {bearer}")
        if outcome.error.code:
            teaches(outcome)
    serves(node)


def test_unknown_fields_are_passed_over(node: NodeProcess) -> None:
    topic = node.client(EDITOR).topic("theirs")
    more = varint(1000 << 3 | 2) + varint(3) + b"new" + varint(1001 << 3) + varint(7)
    for path, message in hot(topic).items():
        if path.endswith(("Consume", "CommitOffsets", "ProduceStream")):
            continue
        outcome = call(node, path, message.SerializeToString() + more, bearer=f"Bearer {EDITOR}")
        assert outcome.code == grpc.StatusCode.OK, (path, outcome)


def test_every_prefix_and_every_flipped_byte_of_a_request_is_answered(node: NodeProcess) -> None:
    topic = node.client(EDITOR).topic("theirs")
    codes = set()
    for path in ("Produce", "Fetch", "Publish", "FetchMessages", "ListOffsets"):
        good = hot(topic)[STREAM + path].SerializeToString()
        for at in range(len(good)):
            for bad in (good[:at], good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :]):
                outcome = call(node, STREAM + path, bad, bearer=f"Bearer {EDITOR}")
                codes.add(outcome.error.code)
                if outcome.code != grpc.StatusCode.OK:
                    teaches(outcome)
    assert codes & {"MALFORMED_REQUEST"}
    assert codes & {"INVALID_BATCH"}
    assert not codes & {"INTERNAL"}
    serves(node)


ENDS = {
    FieldDescriptor.TYPE_UINT32: [(1 << 32) - 1],
    FieldDescriptor.TYPE_UINT64: [1 << 63, (1 << 64) - 1],
    FieldDescriptor.TYPE_INT64: [-(1 << 63), (1 << 63) - 1],
}


def extremes(message: Message) -> Iterator[Message]:
    """The request with one of its numbers at an end of its range; what only makes a call wait, and
    what only names a topic, is left out."""
    for member in message.DESCRIPTOR.fields:
        if member.name in ("topic", "created_revision", "wait_ms_max", "credit"):
            continue
        for value in ENDS.get(member.type, []):
            changed = type(message)()
            changed.CopyFrom(message)
            setattr(changed, member.name, value)
            yield changed


def test_numbers_at_the_ends_of_their_ranges_are_answered(node: NodeProcess) -> None:
    client = node.client(EDITOR)
    topic = client.topic("theirs")
    before = client.fetch(topic, 0)
    for path, message in hot(topic).items():
        target = message.begin if isinstance(message, wire.ConsumeRequest) else message
        for changed in extremes(target):
            data = changed.SerializeToString()
            if isinstance(changed, wire.ConsumeBegin):
                data = wire.ConsumeRequest(begin=changed).SerializeToString()
            outcome = call(node, path, data, bearer=f"Bearer {EDITOR}")
            assert outcome.error.code != "INTERNAL", (path, changed)
            if outcome.error.code:
                teaches(outcome)
            else:
                assert outcome.code == grpc.StatusCode.OK, (path, changed)
    after = client.fetch(topic, 0)
    assert after.log_start == before.log_start
    assert client.values(topic, 0)[0] == b"v"


# --- names without end ---------------------------------------------------------------------------

NAMES = {
    "a path": "../../etc/passwd",
    "NUL": "a\0b",
    "lines": "a\r\nX-Evil: 1",
    "an escape": "\x1b[2J\x9b",
    "right to left": "a\u202eb",
    "percent": "%00%n%s",
    "nothing": "",
    "a slash": "/",
    "slashes": "a/b/c/d",
    "300 characters": "a" * 300,
    "1 MiB": "a" * MEBIBYTE,
    "1 MiB of four-byte characters": "\U0001f4a5" * (MEBIBYTE // 4),
}


@pytest.mark.parametrize("case", NAMES)
def test_a_name_that_is_none_is_told_so_in_a_status_that_fits(node: NodeProcess, case: str) -> None:
    name = NAMES[case]
    requests: list[tuple[str, Message]] = [
        (STREAM + "Publish", wire.PublishRequest(topic=name, messages=[wire.Message(value=b"v")])),
        (STREAM + "FetchMessages", wire.FetchMessagesRequest(topic=name)),
        (STREAM + "FetchMessages", wire.FetchMessagesRequest(project=name + "x", topic="theirs")),
        (CLUSTER + "Describe", wire.DescribeRequest(project=name + "x")),
        (GROUPS + "DescribeGroup", wire.DescribeGroupRequest(group=name)),
        (GROUPS + "DescribeGroup", wire.DescribeGroupRequest(project=name + "x", group="g")),
        (GROUPS + "Session", session(group=name + "/")),
        (GROUPS + "Session", session(group="g", member=name + "\n")),
        (GROUPS + "Session", session(group="g", topics=[name])),
        (GROUPS + "Session", session(group="g", project=name + "x")),
    ]
    for path, message in requests:
        outcome = call(node, path, message.SerializeToString(), bearer=f"Bearer {EDITOR}")
        assert outcome.error.code, (path, str(message)[:80], outcome)
        teaches(outcome)
    described = call(
        node,
        CLUSTER + "Describe",
        wire.DescribeRequest(topics=[name]).SerializeToString(),
        bearer=f"Bearer {EDITOR}",
    )
    (row,) = wire.DescribeReply.FromString(described.replies[0]).topics
    assert row.error.code == "TOPIC_NOT_FOUND"
    assert len(row.error.SerializeToString()) < STATUS_BYTES_MAX


def session(
    *, group: str, member: str = "m", topics: list[str] | None = None, project: str = ""
) -> wire.SessionRequest:
    join = wire.Join(
        project=project, group=group, topics=["theirs"] if topics is None else topics, member=member
    )
    return wire.SessionRequest(join=join)


@pytest.mark.parametrize("count", [1001, 300_000])
def test_more_names_than_a_call_may_hold_are_refused_at_once(node: NodeProcess, count: int) -> None:
    names = [f"t{number}" for number in range(count)]
    began = time.monotonic()
    for path, message in (
        (CLUSTER + "Describe", wire.DescribeRequest(topics=names)),
        (GROUPS + "Session", session(group="g", topics=names)),
    ):
        outcome = call(node, path, message.SerializeToString(), bearer=f"Bearer {EDITOR}")
        assert outcome.error.code == "INVALID_ARGUMENT", path
        teaches(outcome)
    assert time.monotonic() - began < 5


def test_a_topic_is_described_once_in_a_call(node: NodeProcess) -> None:
    message = wire.DescribeRequest(topics=["theirs", "none", "theirs"]).SerializeToString()
    outcome = call(node, CLUSTER + "Describe", message, bearer=f"Bearer {EDITOR}")
    assert outcome.error.code == "INVALID_ARGUMENT"
    assert "twice" in outcome.error.message


@pytest.mark.parametrize(
    "first",
    [
        wire.SessionRequest(heartbeat=wire.Heartbeat()),
        wire.SessionRequest(leave=wire.Leave()),
        wire.SessionRequest(),
        session(group="g", topics=[]),
    ],
    ids=["heartbeat", "leave", "nothing", "no topics"],
)
def test_a_session_that_begins_otherwise_is_refused(
    node: NodeProcess, first: wire.SessionRequest
) -> None:
    outcome = call(node, GROUPS + "Session", first.SerializeToString(), bearer=f"Bearer {EDITOR}")
    assert outcome.error.code == "INVALID_ARGUMENT"


def test_the_log_is_lines_of_json_without_control_characters_and_without_our_faults(
    node: NodeProcess,
) -> None:
    for name in NAMES.values():
        message = session(group="g", member=name).SerializeToString()
        call(node, GROUPS + "Session", message, bearer=f"Bearer {EDITOR}")
    lines = node.log().rstrip("\n").split("\n")
    for line in lines:
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", line), ascii(line[:200])
        event = json.loads(line)
        assert "Traceback" not in line
        assert event.get("level") not in ("error", "critical"), line[:500]
    assert EDITOR not in node.log()
