"""The commands of the metadata log: bytes <-> messages, and the results they give.

Owns the framing: one version byte, then a Command or a Result, serialised deterministically. A
command that cannot be read (a newer version, an unknown kind, damaged bytes) is an ordinary value
here: the machine answers it with a refusal, so that every replica goes on in step. Refuses to
interpret anything.
"""

from typing import Final

from google.protobuf.message import DecodeError

from dataplane.errors import Refused
from dataplane.metadata.state import Fence, KeySpec, TopicSpec
from dataplane.wire import node_pb2 as wire

COMMAND_VERSION: Final = 1
RESULT_VERSION: Final = 1


def encode_command(command: wire.Command) -> bytes:
    """The bytes that go into the metadata log."""
    return bytes([COMMAND_VERSION]) + command.SerializeToString(deterministic=True)


def decode_command(data: bytes) -> wire.Command | None:
    """The command, or None if this release cannot read it."""
    if not data or data[0] != COMMAND_VERSION:
        return None
    command = wire.Command()
    try:
        command.ParseFromString(data[1:])
    except DecodeError:
        return None
    return command


def encode_result(result: wire.Result) -> bytes:
    """The bytes that answer a command."""
    return bytes([RESULT_VERSION]) + result.SerializeToString(deterministic=True)


def decode_result(data: bytes) -> wire.Result:
    """The result of a command of ours.

    Raises ValueError: such bytes cannot come from this machine.
    """
    if not data or data[0] != RESULT_VERSION:
        raise ValueError(f"a metadata result of an unknown version, {len(data)} bytes")
    result = wire.Result()
    result.ParseFromString(data[1:])
    return result


def accepted(result: wire.Result) -> wire.Result:
    """The same result if it is one of success; raises the refusal it carries otherwise."""
    if result.WhichOneof("result") == "refused":
        raise Refused.of(result.refused)
    return result


def fence_of(message: wire.Fence) -> Fence:
    """A fence as a comparable row."""
    return Fence(message.db_epoch, message.generation, message.lease_token)


def fence_message(fence: Fence) -> wire.Fence:
    """A fence as it crosses the wire."""
    return wire.Fence(
        db_epoch=fence.db_epoch, generation=fence.generation, lease_token=fence.lease_token
    )


def topic_spec_of(message: wire.PutTopic) -> TopicSpec:
    """The spec of a topic, unchecked."""
    return TopicSpec(
        topic_id=message.topic_id,
        organization_id=message.organization_id,
        project_id=message.project_id,
        project=message.project,
        stream=message.stream,
        topic=message.topic,
        partitions=message.partitions,
        replication_factor=message.replication_factor,
        retention_ms=message.retention_ms,
        retention_bytes=message.retention_bytes,
        segment_bytes=message.segment_bytes,
        codec=message.codec,
        message_bytes_max=message.message_bytes_max,
        retention_ms_min=message.retention_ms_min,
    )


def topic_message(spec: TopicSpec) -> wire.PutTopic:
    """The spec of a topic as it crosses the wire."""
    return wire.PutTopic(
        topic_id=spec.topic_id,
        organization_id=spec.organization_id,
        project_id=spec.project_id,
        project=spec.project,
        stream=spec.stream,
        topic=spec.topic,
        partitions=spec.partitions,
        replication_factor=spec.replication_factor,
        retention_ms=spec.retention_ms,
        retention_bytes=spec.retention_bytes,
        segment_bytes=spec.segment_bytes,
        codec=spec.codec,
        message_bytes_max=spec.message_bytes_max,
        retention_ms_min=spec.retention_ms_min,
    )


def key_spec_of(message: wire.PutKey) -> KeySpec:
    """The spec of a key, unchecked."""
    return KeySpec(
        key_id=message.key_id,
        public_id=message.public_id,
        secret_sha256=message.secret_sha256,
        organization_id=message.organization_id,
        project_id=message.project_id,
        role=message.role,
        expires_at_us=message.expires_at_us,
    )


def key_message(spec: KeySpec) -> wire.PutKey:
    """The spec of a key as it crosses the wire."""
    return wire.PutKey(
        key_id=spec.key_id,
        public_id=spec.public_id,
        secret_sha256=spec.secret_sha256,
        organization_id=spec.organization_id,
        project_id=spec.project_id,
        role=spec.role,
        expires_at_us=spec.expires_at_us,
    )
