"""A spool: closed windows, or trims, on disk between the engine and the topic `_usage`.

Owns data_dir/spool: append-only segments, each self-contained. An entry is durable before it
counts and is one batch of `_usage`, now and on every retry, so that the same bytes under the same
sequence are published again after a crash and the partition recognises them. Refuses to run on with
damage in the middle: what is owed would be lost in silence.

    segment := frame(HEAD) frame*             named by its first record number, 20 digits, `.spool`
    frame   := u32 size of the payload | u32 crc32 of the payload | payload
    payload := u8 kind | body, little-endian

    HEAD      u16 version | u64 number_next | u64 published | producer
              | u32 count | count * (partition | u64 sequence)
    RECORDS   u64 first number
              | u32 count | count * (partition | u64 sequence | i64 time us | u32 size | value)
    PUBLISHED u64 number: all records below it are in `_usage`
    PRODUCER  producer
    producer  := 16 bytes id | u64 number at which its sequence 0 stands
    partition := u64 topic | u64 created_revision | u32 partition

Every start and every failed write begins a new segment. Its head is the truth about everything
before it, so a torn last frame of an earlier segment does not matter. A segment goes once
everything in it is published.
"""

import errno
import os
import struct
import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dataplane.engine.frames import PartitionId
from dataplane.evidence.folder import sync_folder

SPOOL_VERSION: Final = 1
SEGMENT_BYTES_MAX: Final = 4 * 1024 * 1024
PENDING_BYTES_MAX: Final = 64 * 1024 * 1024

_FRAME: Final = struct.Struct("<II")
_HEAD: Final = struct.Struct("<BHQQ16sQI")
_SEQUENCE: Final = struct.Struct("<QQIQ")
_RECORDS: Final = struct.Struct("<BQI")
_RECORD: Final = struct.Struct("<QQIQqI")
_PUBLISHED: Final = struct.Struct("<BQ")
_PRODUCER: Final = struct.Struct("<B16sQ")
_KIND_HEAD, _KIND_RECORDS, _KIND_PUBLISHED, _KIND_PRODUCER = 1, 2, 3, 4


class SpoolDamaged(Exception):
    """A segment fails its checksum where it once was whole."""


class SpoolFull(Exception):
    """So much waits to be published that no more is taken; the engine keeps and repeats it."""


class Record(NamedTuple):
    """One value for `_usage` and the window it stands for."""

    partition: PartitionId
    sequence: int
    time_us: int
    value: bytes


class Entry(NamedTuple):
    """One batch of `_usage`. `number` is that of its first record."""

    number: int
    records: tuple[Record, ...]

    def end(self) -> int:
        """The number after its last record."""
        return self.number + len(self.records)


class Producer(NamedTuple):
    """Under which name entries are published; record `number` has sequence number - base."""

    id: bytes
    base: int


class Spool:
    """One node's spool: state for one thread (the event loop), bytes for another.

    A change is made in two steps, one change at a time. `appending`, `publishing` and `rotating`
    say what is to be written; `store` makes it durable and touches only the disk, so it may block a
    thread of its own; `settle` makes it true here. What a crash leaves between the two is settled
    by the next start, which replays the same bytes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._folder = folder
        self._disk = threading.Lock()
        self._file: int = -1
        self._file_bytes = 0
        self._given_up = False
        self._closed = False
        self._segments: deque[tuple[int, Path]] = deque()
        self._pending_bytes = 0
        self.is_new = False
        self.number_next = 0
        self.published = 0
        self.producer = Producer(os.urandom(16), 0)
        self.pending: deque[Entry] = deque()
        self.sequences: dict[PartitionId, int] = {}
        self._waiting: dict[PartitionId, deque[int]] = {}
        self._open()

    def close(self) -> None:
        """Give the file back, once no write is under way; a later `store` fails."""
        with self._disk:
            self._closed = True
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def appending(self, records: Sequence[Record]) -> bytes | None:
        """The change that takes new records as one entry. Those already here are left out; None if
        none is new. Within a partition the sequences must rise.

        Raises SpoolFull.
        """
        if self._pending_bytes > PENDING_BYTES_MAX:
            raise SpoolFull(f"{self._pending_bytes} bytes wait to be published")
        fresh: list[Record] = []
        seen: dict[PartitionId, int] = {}
        for record in records:
            last = seen.get(record.partition, self.sequences.get(record.partition, -1))
            if record.sequence > last:
                seen[record.partition] = record.sequence
                fresh.append(record)
        return _pack_entry(Entry(self.number_next, tuple(fresh))) if fresh else None

    def publishing(self, entry: Entry) -> bytes:
        """The change after the oldest pending entry got into `_usage`."""
        if not self.pending or self.pending[0].number != entry.number:
            raise ValueError(f"entry {entry.number} is not the oldest that waits")
        return _PUBLISHED.pack(_KIND_PUBLISHED, entry.end())

    def rotating(self) -> bytes:
        """The change to a new name from the oldest pending entry on: the partition has forgotten
        the old one.
        """
        base = self.pending[0].number if self.pending else self.number_next
        return _PRODUCER.pack(_KIND_PRODUCER, os.urandom(16), base)

    def store(self, change: bytes) -> None:
        """Make a change durable. Blocks, in any thread. After an OSError nothing of it counts."""
        with self._disk:
            if self._closed:
                raise OSError(errno.EBADF, "the usage spool is closed")
            self._write(change)
            if change[0] == _KIND_PUBLISHED:
                self._release(_PUBLISHED.unpack(change)[1])

    def settle(self, change: bytes) -> None:
        """A stored change is true from here on."""
        self._replay(change)

    def holds(self, partition: PartitionId, sequence: int) -> bool:
        """Is this window, or a later one of its partition, durable here or published already?"""
        return self.sequences.get(partition, -1) >= sequence

    def is_published(self, partition: PartitionId, sequence: int) -> bool:
        """Are this window and all before it that came here in `_usage`?"""
        waiting = self._waiting.get(partition)
        return self.holds(partition, sequence) and (waiting is None or sequence < waiting[0])

    def forget(self, partition: PartitionId) -> None:
        """Nothing comes from this partition any more; heads no longer carry it, unless it waits."""
        if partition not in self._waiting:
            self.sequences.pop(partition, None)

    # ---- opening ----

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for leftover in self._folder.glob("*.new"):
            leftover.unlink()
        paths = sorted(self._folder.glob("*.spool"))
        for index, path in enumerate(paths):
            number = self._read_segment(path, first=index == 0)
            self._segments.append((number, path))
        if not paths:
            self.is_new = True
            self._begin_segment()
            return
        # Not appended to: whatever end it has was never proven by a sync of ours.
        self._given_up = True
        try:
            self._begin_segment()
        except OSError as error:
            # A node on a full disk must start: reads go on, and the first write tries again.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            return
        self._release(self.published)

    def _read_segment(self, path: Path, *, first: bool) -> int:
        """Replay one segment. Returns the number its head begins at.

        A torn end is passed over: the head of the next segment, or the engine, has what counts.
        """
        data = path.read_bytes()
        whole = number = 0
        for end, payload in _frames(data):
            if payload[0] == _KIND_HEAD:
                number = self._replay_head(path, payload, first=first)
            else:
                self._replay(payload)
            whole = end
        if whole == 0 or not _torn(data[whole:]):
            raise SpoolDamaged(
                f"{path} is damaged at byte {whole}: restore it from a copy, or move the folder "
                f"{path.parent} away and report the gap; windows still in the engine come again"
            )
        return number

    def _replay_head(self, path: Path, payload: bytes, *, first: bool) -> int:
        """A head is the truth about everything before it, also about a write that was given up."""
        _, version, number_next, published, producer_id, base, count = _HEAD.unpack_from(payload)
        if version != SPOOL_VERSION:
            raise SpoolDamaged(f"{path} has version {version}; this release reads {SPOOL_VERSION}")
        if not first and self.number_next < number_next:
            raise SpoolDamaged(
                f"records {self.number_next} to {number_next} are missing before {path}: restore "
                "the segment before it from a copy, or move the folder away and report the gap"
            )
        while self.pending and self.pending[-1].number >= number_next:
            self._give_up(self.pending.pop())
        self.number_next = number_next
        self._take_published(published)
        self.producer = Producer(producer_id, base)
        self.sequences.clear()
        for index in range(count):
            topic, revision, partition, sequence = _SEQUENCE.unpack_from(
                payload, _HEAD.size + index * _SEQUENCE.size
            )
            self.sequences[PartitionId(topic, revision, partition)] = sequence
        return int(number_next)

    def _replay(self, payload: bytes) -> None:
        kind = payload[0]
        if kind == _KIND_RECORDS:
            self._take(_unpack_entry(payload))
        elif kind == _KIND_PUBLISHED:
            self._take_published(_PUBLISHED.unpack(payload)[1])
        elif kind == _KIND_PRODUCER:
            _, producer_id, base = _PRODUCER.unpack(payload)
            self.producer = Producer(producer_id, base)

    # ---- state ----

    def _take(self, entry: Entry) -> None:
        self.pending.append(entry)
        self._pending_bytes += _value_bytes(entry)
        self.number_next = entry.end()
        for record in entry.records:
            self.sequences[record.partition] = record.sequence
            self._waiting.setdefault(record.partition, deque()).append(record.sequence)

    def _give_up(self, entry: Entry) -> None:
        """The newest pending entry was overruled by a later head."""
        self._pending_bytes -= _value_bytes(entry)
        for record in reversed(entry.records):
            self._waiting[record.partition].pop()
            self._forget_idle(record.partition)

    def _take_published(self, number: int) -> None:
        self.published = max(self.published, number)
        while self.pending and self.pending[0].number < self.published:
            entry = self.pending.popleft()
            self._pending_bytes -= _value_bytes(entry)
            for record in entry.records:
                self._waiting[record.partition].popleft()
                self._forget_idle(record.partition)

    def _forget_idle(self, partition: PartitionId) -> None:
        if not self._waiting[partition]:
            del self._waiting[partition]

    # ---- segments ----

    def _write(self, payload: bytes) -> None:
        """Make one frame durable. After an OSError nothing of it counts.

        What a failed write or sync left in the segment is unknown: it is given up, and the head of
        the next one overrules it.
        """
        if self._given_up or self._file_bytes > SEGMENT_BYTES_MAX:
            self._begin_segment()
        frame = _framed(payload)
        self._given_up = True
        _write_whole(self._file, frame)
        os.fdatasync(self._file)
        self._given_up = False
        self._file_bytes += len(frame)

    def _begin_segment(self) -> None:
        head = _HEAD.pack(
            _KIND_HEAD,
            SPOOL_VERSION,
            self.number_next,
            self.published,
            self.producer.id,
            self.producer.base,
            len(self.sequences),
        ) + b"".join(
            _SEQUENCE.pack(*partition, sequence)
            for partition, sequence in sorted(self.sequences.items())
        )
        path = self._folder / f"{self._segment_number():020d}.spool"
        fresh = path.with_suffix(".new")
        file = os.open(
            fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        frame = _framed(head)
        try:
            _write_whole(file, frame)
            os.fsync(file)
            os.rename(fresh, path)
            sync_folder(self._folder)
        except OSError:
            os.close(file)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file = file
        self._file_bytes = len(frame)
        self._given_up = False
        self._segments.append((self.number_next, path))

    def _segment_number(self) -> int:
        """number_next, moved past the last name: marks alone can fill a segment."""
        last = int(self._segments[-1][1].stem) if self._segments else -1
        return max(self.number_next, last + 1)

    def _release(self, published: int) -> None:
        """Remove every segment before the current one once nothing in them waits."""
        begins = self._segments[-1][0]
        if len(self._segments) < 2 or published < begins:
            return
        while len(self._segments) > 1:
            self._segments.popleft()[1].unlink()
        sync_folder(self._folder)


def _write_whole(file: int, data: bytes) -> None:
    written = os.write(file, data)
    if written != len(data):
        raise OSError(errno.ENOSPC, f"only {written} of {len(data)} bytes could be written")


def _value_bytes(entry: Entry) -> int:
    return sum(len(record.value) for record in entry.records)


def _torn(rest: bytes) -> bool:
    """Is this the rest of one write that never completed, and not damage with more behind it?"""
    if len(rest) < _FRAME.size or not any(rest):
        return True
    size, _ = _FRAME.unpack_from(rest)
    return _FRAME.size + int(size) >= len(rest)


def _framed(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def _frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(end, payload) of each whole frame from the front."""
    at = 0
    while at + _FRAME.size <= len(data):
        size, crc = _FRAME.unpack_from(data, at)
        payload = data[at + _FRAME.size : at + _FRAME.size + size]
        if size == 0 or len(payload) != size or zlib.crc32(payload) != crc:
            return
        at += _FRAME.size + size
        yield at, payload


def _pack_entry(entry: Entry) -> bytes:
    parts = [_RECORDS.pack(_KIND_RECORDS, entry.number, len(entry.records))]
    for record in entry.records:
        parts.append(
            _RECORD.pack(*record.partition, record.sequence, record.time_us, len(record.value))
        )
        parts.append(record.value)
    return b"".join(parts)


def _unpack_entry(payload: bytes) -> Entry:
    _, number, count = _RECORDS.unpack_from(payload)
    at = _RECORDS.size
    records = []
    for _ in range(count):
        topic, revision, partition, sequence, time_us, size = _RECORD.unpack_from(payload, at)
        at += _RECORD.size
        value = payload[at : at + size]
        at += size
        records.append(Record(PartitionId(topic, revision, partition), sequence, time_us, value))
    return Entry(number, tuple(records))
