"""What goes in and what comes out: values, keys and headers as bytes; Message, Batch, Ack. Knows no
transport."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from headrace.codec import Columns, Record
from headrace.errors import Invalid

Value = bytes | bytearray | memoryview | str | Mapping[str, object] | Sequence[object] | None
"""Bytes go as they are, text as UTF-8, dict and list as compact JSON, None as a null value."""
Key = bytes | str | None
Headers = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US_MIN = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_US_MAX = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_INT64 = range(-(1 << 63), 1 << 63)
_NO_HEADERS: tuple[tuple[str, bytes | None], ...] = ()
# Per record on the wire, at most: sizes, deltas, counts.
RECORD_OVERHEAD_BYTES = 28


def value_bytes(value: Value) -> bytes | None:
    """The bytes of a value."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return _encoded(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (Mapping, list, tuple)):
        try:
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        except RecursionError:
            raise Invalid("The value is nested too deeply", hint="Send bytes instead.") from None
        except (TypeError, ValueError) as error:
            raise Invalid(f"The value is not JSON: {error}", hint="Send bytes instead.") from None
    raise Invalid(
        f"A value of type {type(value).__name__} cannot be sent",
        hint="Send bytes, str, or a JSON-able dict or list.",
    )


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(
            f"Unpaired surrogate at character {error.start}: the value is not valid text",
            hint="Send bytes instead.",
        ) from None


def key_bytes(key: Key) -> bytes | None:
    """The bytes of a key."""
    if key is None or isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return _encoded(key)
    raise Invalid(f"A key of type {type(key).__name__} cannot be sent", hint="Send bytes or str.")


def header_pairs(headers: Headers | None) -> tuple[tuple[str, bytes | None], ...]:
    """Headers in order; names may repeat."""
    if not headers:
        return _NO_HEADERS
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((_checked(name), _encoded(v) if isinstance(v, str) else v) for name, v in pairs)


def _checked(name: str) -> str:
    _encoded(name)
    return name


def now_us() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def timestamp_us(timestamp: datetime | int | None) -> int:
    """A time in microseconds; None is now; a datetime without a zone is refused."""
    if timestamp is None:
        return now_us()
    if isinstance(timestamp, int):
        if timestamp not in _INT64:
            raise Invalid("The timestamp does not fit 64 bits", hint="Send microseconds.")
        return timestamp
    if timestamp.tzinfo is None:
        raise Invalid("The timestamp has no time zone", hint="Use datetime.now(timezone.utc).")
    return (timestamp - _EPOCH) // timedelta(microseconds=1)


def instant_of(when: datetime | timedelta) -> datetime:
    """A moment: itself, or so long before now. Refused without a time zone, or in the future."""
    if isinstance(when, timedelta):
        if when < timedelta(0):
            raise Invalid(
                f"{when!r} is in the future", hint="Pass timedelta(hours=1) for an hour ago."
            )
        return datetime.now(UTC) - when
    timestamp_us(when)
    return when


def datetime_of(us: int) -> datetime:
    """A UTC datetime of microseconds since 1970. A producer's clock may be anywhere in 64 bits:
    a time beyond the years 1 to 9999 becomes their first or last moment."""
    return _EPOCH + timedelta(microseconds=min(max(us, _US_MIN), _US_MAX))


def record_of(
    value: Value,
    key: Key = None,
    headers: Headers | None = None,
    timestamp: datetime | int | None = None,
) -> Record:
    """One record as the codec takes it."""
    return Record(
        key_bytes(key), value_bytes(value), timestamp_us(timestamp), header_pairs(headers)
    )


def size_of(record: Record) -> int:
    """An upper bound of the record's bytes in a batch."""
    size = RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) * 4 + len(value or b"") + 10
    return size


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


@dataclass(frozen=True, slots=True)
class Ack:
    """A record is stored: synced on a quorum of its partition's members."""

    topic: str
    partition: int
    offset: int
    """-1: stored by an earlier attempt, and the node no longer remembers where."""
    timestamp: datetime
    """When the node appended it, UTC."""
    persisted: int
    replicas: int


@dataclass(frozen=True, slots=True)
class BatchAck:
    """A batch is stored; its records have the offsets base_offset .. base_offset + count - 1."""

    topic: str
    partition: int
    base_offset: int
    count: int
    append_time_us: int
    persisted: int
    replicas: int
    duplicate: bool
    """An earlier attempt had stored it; it is there once."""

    def of(self, index: int) -> Ack:
        """The ack of one record of the batch."""
        return Ack(
            topic=self.topic,
            partition=self.partition,
            offset=self.base_offset + index if self.base_offset >= 0 else -1,
            timestamp=datetime_of(self.append_time_us),
            persisted=self.persisted,
            replicas=self.replicas,
        )


class Message(NamedTuple):
    """One record as it is read. A named tuple: making one costs a third of a frozen dataclass."""

    topic: str
    partition: int
    offset: int
    timestamp_us: int
    """The producer's clock."""
    append_time_us: int
    """The node's agreed time, strictly increasing within a partition."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def timestamp(self) -> datetime:
        """When the producer made it, UTC; a clock beyond the years 1 to 9999 shows as their end."""
        return datetime_of(self.timestamp_us)

    def json(self) -> object:
        """The value read as JSON. Raises Invalid when it is not."""
        if self.value is None:
            return None
        try:
            decoded: object = json.loads(self.value)
        except (RecursionError, ValueError) as error:
            raise Invalid(
                f"{self.topic}[{self.partition}]@{self.offset} is not JSON: {error}"
            ) from None
        return decoded

    def text(self) -> str:
        """The value read as UTF-8."""
        return (self.value or b"").decode()

    def __repr__(self) -> str:
        key = f" key={_shown(self.key)}" if self.key is not None else ""
        more = f" headers={len(self.headers)}" if self.headers else ""
        when = self.timestamp.replace(tzinfo=None).isoformat(timespec="seconds")
        return (
            f"<Message {self.topic}[{self.partition}]@{self.offset} "
            f"{when}Z{key} value={_shown(self.value)}{more}>"
        )


def _shown(data: bytes | None, limit: int = 48) -> str:
    if data is None:
        return "null"
    head = data[:limit]
    try:
        text = repr(head.decode())
    except UnicodeDecodeError:
        text = repr(head)
    return text if len(data) <= limit else f"{text}.. ({len(data)} bytes)"


class Batch:
    """Columns of one stored batch, from the position that was asked for: the fast way to read.

    `offsets`, `timestamps_us`, `keys`, `values` are equally long; `headers(i)` belongs to row i.
    """

    __slots__ = ("_columns", "_first", "append_time_us", "partition", "topic")

    def __init__(
        self, topic: str, partition: int, append_time_us: int, columns: Columns, first: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.append_time_us = append_time_us
        self._columns = columns
        self._first = first

    def __len__(self) -> int:
        return len(self._columns.offsets) - self._first

    @property
    def offsets(self) -> Sequence[int]:
        """Offsets, ascending."""
        return self._columns.offsets[self._first :]

    @property
    def timestamps_us(self) -> Sequence[int]:
        """The producer's times, microseconds."""
        return self._columns.timestamps_us[self._first :]

    @property
    def keys(self) -> Sequence[bytes | None]:
        """Keys."""
        return self._columns.keys[self._first :] if self._first else self._columns.keys

    @property
    def values(self) -> Sequence[bytes | None]:
        """Values."""
        return self._columns.values[self._first :] if self._first else self._columns.values

    def headers(self, index: int) -> tuple[tuple[str, bytes | None], ...]:
        """The headers of row `index`, in order."""
        return tuple(self._columns.headers(self._first + index))

    def messages(self) -> list[Message]:
        """The rows as messages."""
        topic, partition, appended = self.topic, self.partition, self.append_time_us
        counts = self._columns.header_counts[self._first :]
        return [
            Message(
                topic,
                partition,
                offset,
                time_us,
                appended,
                key,
                value,
                self.headers(i) if counts[i] else _NO_HEADERS,
            )
            for i, (offset, time_us, key, value) in enumerate(
                zip(self.offsets, self.timestamps_us, self.keys, self.values, strict=True)
            )
        ]
