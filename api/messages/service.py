"""Which messages a page shows. Bounded whatever is asked: in messages, bytes and partitions."""

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api.db.database import microseconds
from api.http.errors import InvalidRequestError, Violation
from api.messages.schemas import (
    From,
    HeaderBody,
    MessageBody,
    MessagePage,
    MessagePublish,
    PartitionView,
    PublishedBody,
)
from api.node.messages import NodeReader, instant
from headrace.wire import stream_pb2

PAGE_BYTES_MAX: Final = 1 << 20
# Every one of them costs a call; who has more names the one to look at.
PARTITIONS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class View:
    """What is asked for. ``partition``: None for all."""

    start: From
    partition: int | None
    offset: int
    time: datetime | None
    limit: int


def read_page(reader: NodeReader, view: View) -> MessagePage:
    """The messages of a view, the oldest first; of the latest ones those that came last.

    However large messages are, one alone goes beyond PAGE_BYTES_MAX: of the partitions after it
    only the bounds are returned. ``next_offset`` leads to what is not shown.
    """
    indexes = wanted_partitions(view.partition, reader.place.partitions)
    if view.start == "time" and view.time is None:
        raise _missing("time", "a time such as 2026-01-31T12:00:00Z")
    share = PAGE_BYTES_MAX // len(indexes)
    size_bytes = 0
    messages: list[MessageBody] = []
    partitions: list[PartitionView] = []
    for index in indexes:
        offset = _start(reader, view, index)
        reply = reader.fetch(index, offset, messages=view.limit, size_bytes=share)
        if reply.status == stream_pb2.TRUNCATED:
            offset = reply.log_start
            reply = reader.fetch(index, offset, messages=view.limit, size_bytes=share)
        is_shown = size_bytes < PAGE_BYTES_MAX
        if is_shown:
            messages += [message_body(index, each) for each in reply.messages]
            size_bytes += sum(each.ByteSize() for each in reply.messages)
        partitions.append(
            PartitionView(
                partition=index,
                start_offset=reply.log_start,
                end_offset=reply.high_watermark,
                next_offset=max(reply.next_offset, offset) if is_shown else offset,
            )
        )
    messages.sort(key=lambda each: (each.append_time, each.partition, each.offset))
    if view.start == "latest":
        return MessagePage(messages=messages[-view.limit :], partitions=partitions)
    _go_back(partitions, messages[view.limit :])
    return MessagePage(messages=messages[: view.limit], partitions=partitions)


def _go_back(partitions: list[PartitionView], cut: list[MessageBody]) -> None:
    """A reader goes on at what was read and did not fit on the page."""
    first: dict[int, int] = {}
    for each in cut:
        first[each.partition] = min(each.offset, first.get(each.partition, each.offset))
    for view in partitions:
        view.next_offset = first.get(view.partition, view.next_offset)


def publish(reader: NodeReader, command: MessagePublish) -> PublishedBody:
    """Stores one message."""
    message = stream_pb2.Message(
        key=_bytes(command.key),
        value=_bytes(command.value),
        headers=[
            stream_pb2.Header(key=each.key, value=_bytes(each.value)) for each in command.headers
        ],
        timestamp_us=microseconds(command.timestamp) if command.timestamp else 0,
    )
    reply = reader.publish(command.partition, message)
    return PublishedBody(
        partition=reply.partition,
        offset=reply.base_offset,
        append_time=instant(reply.append_time_us),
    )


def message_body(partition: int, stored: stream_pb2.StoredMessage) -> MessageBody:
    """A stored message as it crosses HTTP."""
    message = stored.message
    return MessageBody(
        partition=partition,
        offset=stored.offset,
        append_time=instant(stored.append_time_us),
        timestamp=instant(message.timestamp_us),
        key=_text(message.key) if message.HasField("key") else None,
        value=_text(message.value) if message.HasField("value") else None,
        headers=[
            HeaderBody(key=each.key, value=_text(each.value) if each.HasField("value") else None)
            for each in message.headers
        ],
    )


def wanted_partitions(partition: int | None, count: int) -> list[int]:
    """The partitions to read.

    :raises InvalidRequestError: there is no such one, or there are too many to read at once.
    """
    if partition is None and count <= PARTITIONS_MAX:
        return list(range(count))
    if partition is None:
        raise _missing("partition", f"of {count}; at most {PARTITIONS_MAX} are read at once")
    if partition >= count:
        raise InvalidRequestError(
            f"The partition {partition} does not exist: the topic has {count}.",
            violations=[
                Violation("?partition", "NO_SUCH_PARTITION", "must exist", limit=str(count - 1))
            ],
        )
    return [partition]


def _start(reader: NodeReader, view: View, partition: int) -> int:
    match view.start:
        case "offset":
            return view.offset
        case "earliest":
            return 0
        case "time":
            assert view.time is not None
            return reader.offset_at(partition, view.time)
        case "latest":
            held = reader.fetch(partition, 0, messages=1, size_bytes=1)
            return max(held.log_start, held.high_watermark - view.limit)


def _missing(name: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{name} must be given: {what}.",
        violations=[Violation(f"?{name}", "MISSING", what)],
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
