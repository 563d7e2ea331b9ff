"""Batches of records: in C (native/src/batch/batch.c) or in Python.

    part = encode([Record(b"key", b"value", timestamp_us)], codec="lz4")  # for a produce request
    seed = partition_seed(cluster_id, topic, created_revision, partition)
    for batch in batches(reply.batches, seed):  # of a fetch reply
        columns = decode(batch)
        columns.offsets, columns.keys, columns.values, columns.headers(0)

Owns the format on the client's side: ``headrace._codec`` if it was compiled, otherwise Python.
Both read and write the same bytes and pass the same golden files. Refuses to know the origin of
batches.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, Protocol, overload

from headrace.codec import python_codec
from headrace.codec.layout import (
    CLIENT_BYTES_MAX,
    CODECS,
    NO_PRODUCER,
    RECORDS_COUNT_MAX,
    Batch,
    CodecError,
    Decoded,
    Record,
)

__all__ = [
    "ACCELERATED",
    "CLIENT_BYTES_MAX",
    "RECORDS_COUNT_MAX",
    "Batch",
    "CodecError",
    "Columns",
    "Fields",
    "Record",
    "batches",
    "client_batch",
    "crc32c",
    "decode",
    "encode",
    "partition_seed",
]


class _Engine(Protocol):
    """What ``_codec_native`` and ``_codec_python`` both are."""

    def encode(
        self,
        records: Sequence[Record],
        codec: int,
        producer_id: bytes,
        producer_epoch: int,
        base_sequence: int,
    ) -> bytes: ...
    def stored_batch(self, view: memoryview, seed: int) -> Batch | None: ...
    def client_batch(self, view: memoryview) -> Batch: ...
    def decode(self, batch: Batch) -> Decoded: ...
    def crc32c(self, data: bytes | bytearray | memoryview) -> int: ...


def _found() -> tuple[_Engine, bool]:
    try:
        from headrace.codec import native_codec
    except ImportError:
        return python_codec, False
    return native_codec, True


_engine, ACCELERATED = _found()
_PLACE: Final = struct.Struct("<48sQQI")


class Fields(Sequence[bytes | None]):
    """Keys or values of a batch, cut out of its records when looked at."""

    __slots__ = ("_positions", "_records", "_sizes")

    def __init__(self, records: memoryview, positions: array[int], sizes: array[int]) -> None:
        self._records = records
        self._positions = positions
        self._sizes = sizes

    def __len__(self) -> int:
        return len(self._sizes)

    @overload
    def __getitem__(self, index: int) -> bytes | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes | None]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes | None] | None:
        if isinstance(index, slice):
            return self._cut(self._positions[index], self._sizes[index])
        size = self._sizes[index]
        if size < 0:
            return None
        position = self._positions[index]
        return bytes(self._records[position : position + size])

    def __iter__(self) -> Iterator[bytes | None]:
        return iter(self._cut(self._positions, self._sizes))

    def _cut(self, positions: array[int], sizes: array[int]) -> list[bytes | None]:
        # One copy of all records, then slices of bytes: half the price of a view for each field.
        records = bytes(self._records)
        return [
            None if size < 0 else records[position : position + size]
            for position, size in zip(positions, sizes, strict=True)
        ]


class Columns:
    """A batch's records as columns, all of ``len(columns)`` entries.

    ``offsets`` and ``timestamps_us`` are arrays of int64; ``keys`` and ``values`` are sequences of
    bytes or None.
    """

    __slots__ = ("_decoded", "keys", "offsets", "timestamps_us", "values")

    def __init__(self, base_offset: int, decoded: Decoded) -> None:
        count = len(decoded.timestamps_us)
        self._decoded = decoded
        self.offsets: array[int] = array("q", range(base_offset, base_offset + count))
        self.timestamps_us = decoded.timestamps_us
        self.keys = Fields(decoded.records, decoded.key_positions, decoded.key_sizes)
        self.values = Fields(decoded.records, decoded.value_positions, decoded.value_sizes)

    def __len__(self) -> int:
        return len(self.timestamps_us)

    @property
    def header_counts(self) -> array[int]:
        """How many headers each record has: most have none, and need not be asked one by one."""
        return self._decoded.header_counts

    def headers(self, index: int) -> list[tuple[str, bytes | None]]:
        """Headers of one record, in their order; names may repeat."""
        decoded = self._decoded
        return python_codec.headers(
            decoded.records, decoded.header_positions[index], decoded.header_counts[index]
        )


def encode(
    records: Sequence[Record],
    *,
    codec: str = "none",
    producer_id: bytes = NO_PRODUCER,
    producer_epoch: int = 0,
    base_sequence: int = 0,
) -> bytes:
    """The client part of one batch. Raises CodecError when the records fit in none."""
    if codec not in CODECS:
        raise CodecError("BATCH_CODEC", f"{codec!r} is not a codec: use none, lz4 or zstd")
    if len(producer_id) != len(NO_PRODUCER):
        raise CodecError("BATCH_PRODUCER", "a producer id has 16 bytes")
    number = CODECS.index(codec)
    try:
        return _engine.encode(records, number, producer_id, producer_epoch, base_sequence)
    except UnicodeEncodeError as error:
        raise CodecError("BATCH_RECORD", "a header name is not text") from error


def partition_seed(cluster_id: str, topic: int, created_revision: int, partition: int) -> int:
    """What binds a stored batch to its partition: the CRC of its server header begins with it.

    Take the handle that you asked the node for: bytes of another partition are then refused,
    whole as they are.
    """
    place = _PLACE.pack(cluster_id.encode(), topic, created_revision, partition)
    return _engine.crc32c(place)


def batches(buffer: bytes | bytearray | memoryview, seed: int) -> Iterator[Batch]:
    """Walk stored batches end to end, each checked with both its CRCs.

    ``seed``: ``partition_seed`` of the partition that they were asked of. The batches borrow
    ``buffer``. Raises CodecError at the first that is damaged, cut off or of another partition.
    """
    view = memoryview(buffer).toreadonly()
    while view:
        batch = _engine.stored_batch(view, seed)
        if batch is None:
            raise CodecError("BATCH_SHORT", "the bytes end in the middle of a batch")
        yield batch
        view = view[batch.size_bytes :]


def client_batch(part: bytes | bytearray | memoryview) -> Batch:
    """A bare client part, checked: what ``encode`` made. Raises CodecError."""
    return _engine.client_batch(memoryview(part).toreadonly())


def decode(batch: Batch) -> Columns:
    """The records of a batch. Raises CodecError when they contradict its header."""
    return Columns(batch.base_offset, _engine.decode(batch))


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """CRC32C (Castagnoli): ``crc32c(b"123456789") == 0xE3069283``."""
    return _engine.crc32c(data)
