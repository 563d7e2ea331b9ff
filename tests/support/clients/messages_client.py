"""Named topics and an ordinary client of Publish and FetchMessages, for the engine's gRPC tests.

Owns the rows that are there beside `grpc_client.ROWS` and how a call is made. Organization 1 has
the projects `default` (1) and `other` (9), organization 2 has `default` (3).
"""

import grpc

from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support.clients.grpc_client import EDITOR, TOPIC, WAIT_S, bearer
from tests.support.processes.engine_host import project_row, topic_row

EVENTS, OTHERS, THEIRS, TINY, LONE = 40, 41, 42, 43, 44
PARTITIONS = 6
NAMED_ROWS = (
    project_row(1, "default"),
    project_row(9, "other"),
    project_row(3, "default", organization=2),
    topic_row(EVENTS, revision=3, partitions=PARTITIONS, name="default/events"),
    topic_row(OTHERS, revision=3, project=9, name="trades/ticks"),
    topic_row(THEIRS, revision=3, organization=2, project=3, name="default/secrets"),
    topic_row(TINY, revision=3, message_bytes_max=256, name="default/tiny"),
    topic_row(LONE, revision=3, partitions=3, name="default/lone"),
)
assert TOPIC not in {EVENTS, OTHERS, THEIRS, TINY, LONE}


def message(
    value: bytes | None = b"v",
    key: bytes | None = None,
    *,
    headers: tuple[tuple[str, bytes | None], ...] = (),
    timestamp_us: int = 0,
) -> wire.Message:
    """A message as people would write it."""
    return wire.Message(
        key=key,
        value=value,
        headers=[wire.Header(key=name, value=content) for name, content in headers],
        timestamp_us=timestamp_us,
    )


def publish(
    channel: grpc.Channel,
    *messages: wire.Message,
    topic: str = "events",
    project: str = "",
    partition: int | None = None,
    key_id: str = EDITOR,
    producer: tuple[bytes, int, int] = (b"", 0, 0),
) -> wire.PublishReply:
    """One Publish; `producer` is (id, epoch, sequence)."""
    request = wire.PublishRequest(
        project=project,
        topic=topic,
        partition=partition,
        messages=messages,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    )
    reply: wire.PublishReply = stubs.StreamStub(channel).Publish(
        request, metadata=bearer(key_id), timeout=WAIT_S
    )
    return reply


def fetch_messages(
    channel: grpc.Channel,
    *,
    topic: str = "events",
    project: str = "",
    key_id: str = EDITOR,
    **fields: int,
) -> wire.FetchMessagesReply:
    """One FetchMessages."""
    request = wire.FetchMessagesRequest(project=project, topic=topic, **fields)
    reply: wire.FetchMessagesReply = stubs.StreamStub(channel).FetchMessages(
        request, metadata=bearer(key_id), timeout=WAIT_S
    )
    return reply


def end_of(channel: grpc.Channel, partition: int = 0, topic: str = "events") -> int:
    """The first offset not yet committed."""
    return fetch_messages(channel, partition=partition, topic=topic).high_watermark
