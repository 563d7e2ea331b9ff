"""The codec in C: the door to ``headrace._codec``.

Crosses into C once a batch: a call costs some 100 ns, too much to pay for every record.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace._codec import ffi, lib
from headrace.codec.layout import (
    CLIENT_HEADER_BYTES,
    CODECS,
    RECORD_HEADERS_MAX,
    RECORDS_COUNT_MAX,
    Batch,
    CodecError,
    Decoded,
    Record,
)

if TYPE_CHECKING:
    from headrace._codec import CData

_INT32_ZERO = array("i", [0])
_UINT32_ZERO = array("I", [0])
_INT64_ZERO = array("q", [0])


def _checked(status: int) -> int:
    """The number C returned, unless it is a status."""
    if status < 0:
        name = ffi.string(lib.codec_status_name(status)).decode()
        raise CodecError(name, ffi.string(lib.codec_status_text(status)).decode())
    return status


def _sizes(fields: Sequence[bytes | None]) -> array[int]:
    return array("i", [-1 if field is None else len(field) for field in fields])


def _joined(fields: Sequence[bytes | None]) -> bytes:
    return b"".join([field for field in fields if field])


class _Source:
    """``struct codec_source`` and everything it points to."""

    def __init__(
        self,
        records: Sequence[Record],
        codec: int,
        producer_id: bytes,
        producer_epoch: int,
        base_sequence: int,
    ) -> None:
        keys = [record[0] for record in records]
        values = [record[1] for record in records]
        try:
            self.timestamps = array("q", [record[2] for record in records])
        except OverflowError as error:
            message = "a timestamp does not fit 64 bits"
            raise CodecError("BATCH_TIMESTAMP", message) from error
        self.keys = _joined(keys)
        self.key_sizes = _sizes(keys)
        self.values = _joined(values)
        self.value_sizes = _sizes(values)
        self.headers: list[bytes | None] = []
        self.header_counts: array[int] | None = None
        if any(record[3] for record in records):
            self.header_counts = array("I", [len(record[3]) for record in records])
            for record in records:
                for name, value in record[3]:
                    self.headers += (name.encode(), value)
        self.header_bytes = _joined(self.headers)
        self.header_sizes = _sizes(self.headers)
        self.struct = ffi.new("struct codec_source *")
        self._fill(codec, producer_id, producer_epoch, base_sequence)

    def _fill(
        self, codec: int, producer_id: bytes, producer_epoch: int, base_sequence: int
    ) -> None:
        # Each pointer keeps its buffer alive only as long as it lives itself: so they stay here.
        self.pointers: dict[str, CData] = {
            "timestamps_us": ffi.from_buffer("int64_t *", self.timestamps),
            "keys": ffi.from_buffer("uint8_t *", self.keys),
            "key_sizes": ffi.from_buffer("int32_t *", self.key_sizes),
            "values": ffi.from_buffer("uint8_t *", self.values),
            "value_sizes": ffi.from_buffer("int32_t *", self.value_sizes),
            "headers": ffi.from_buffer("uint8_t *", self.header_bytes),
            "header_sizes": ffi.from_buffer("int32_t *", self.header_sizes),
        }
        if self.header_counts is not None:
            self.pointers["header_counts"] = ffi.from_buffer("uint32_t *", self.header_counts)
        for name, pointer in self.pointers.items():
            setattr(self.struct, name, pointer)
        for name, value in (
            ("records_count", len(self.timestamps)),
            ("codec", codec),
            ("producer_id", producer_id),
            ("producer_epoch", producer_epoch),
            ("base_sequence", base_sequence),
        ):
            setattr(self.struct, name, value)


def encode(
    records: Sequence[Record],
    codec: int,
    producer_id: bytes,
    producer_epoch: int,
    base_sequence: int,
) -> bytes:
    """A client part. Raises CodecError when the records fit in none."""
    if not 0 < len(records) <= RECORDS_COUNT_MAX:
        raise CodecError("BATCH_COUNT", f"a batch holds 1 to {RECORDS_COUNT_MAX} records")
    source = _Source(records, codec, producer_id, producer_epoch, base_sequence)
    if source.header_counts is not None and max(source.header_counts) > RECORD_HEADERS_MAX:
        raise CodecError("BATCH_RECORD", f"a record has at most {RECORD_HEADERS_MAX} headers")
    records_bytes = _checked(lib.codec_measure(source.struct))
    target = bytearray(lib.codec_bound(records_bytes, codec))
    scratch = bytearray(records_bytes if codec else 1)
    size = _checked(
        lib.codec_encode(
            source.struct,
            records_bytes,
            ffi.from_buffer(scratch),
            ffi.from_buffer(target),
            len(target),
        )
    )
    return bytes(memoryview(target)[:size])


def _batch(found: CData, stored: memoryview, client: memoryview) -> Batch:
    return Batch(
        size_bytes=found.size_bytes,
        base_offset=found.base_offset,
        append_time_us=found.append_time_us,
        op=found.op,
        first_view=found.first_view,
        principal=found.principal,
        cumulative_bytes=found.cumulative_bytes,
        record_count=found.record_count,
        producer_id=bytes(client[16:32]),
        producer_epoch=found.producer_epoch,
        base_sequence=found.base_sequence,
        base_timestamp_us=found.base_timestamp_us,
        max_timestamp_us=found.max_timestamp_us,
        records_bytes=found.records_bytes,
        codec=CODECS[found.codec],
        stored=stored,
        client=client,
    )


def stored_batch(view: memoryview, seed: int) -> Batch | None:
    """The stored batch at the front of ``view``; None if it ends behind it. Raises CodecError."""
    found = ffi.new("struct codec_batch *")
    size = _checked(lib.codec_next(ffi.from_buffer(view), len(view), seed, found))
    if size == 0:
        return None
    return _batch(found, view[:size], view[size - found.client_bytes : size])


def client_batch(view: memoryview) -> Batch:
    """The bare client part that ``view`` is. Raises CodecError."""
    found = ffi.new("struct codec_batch *")
    _checked(lib.codec_client(ffi.from_buffer(view), len(view), found))
    return _batch(found, view[:0], view)


def decode(batch: Batch) -> Decoded:
    """Take the batch's records apart. Raises CodecError."""
    count = batch.record_count
    if batch.codec == "none":
        records = batch.client[CLIENT_HEADER_BYTES:]
        target = ffi.NULL
    else:
        opened = bytearray(batch.records_bytes)
        records = memoryview(opened)
        target = ffi.from_buffer(opened)
    decoded = Decoded(
        records=records,
        timestamps_us=_INT64_ZERO * count,
        key_positions=_UINT32_ZERO * count,
        key_sizes=_INT32_ZERO * count,
        value_positions=_UINT32_ZERO * count,
        value_sizes=_INT32_ZERO * count,
        header_positions=_UINT32_ZERO * count,
        header_counts=_UINT32_ZERO * count,
    )
    header = ffi.new(
        "struct codec_batch *",
        {
            "client_bytes": len(batch.client),
            "records_bytes": batch.records_bytes,
            "record_count": count,
        },
    )
    pointers = {
        "timestamps_us": ffi.from_buffer("int64_t *", decoded.timestamps_us),
        "key_positions": ffi.from_buffer("uint32_t *", decoded.key_positions),
        "key_sizes": ffi.from_buffer("int32_t *", decoded.key_sizes),
        "value_positions": ffi.from_buffer("uint32_t *", decoded.value_positions),
        "value_sizes": ffi.from_buffer("int32_t *", decoded.value_sizes),
        "header_positions": ffi.from_buffer("uint32_t *", decoded.header_positions),
        "header_counts": ffi.from_buffer("uint32_t *", decoded.header_counts),
    }
    columns = ffi.new("struct codec_columns *", pointers)
    _checked(lib.codec_decode(ffi.from_buffer(batch.client), header, target, columns))
    return decoded


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """CRC32C (Castagnoli) of the bytes."""
    return lib.codec_crc32c(ffi.from_buffer(data), len(data))
