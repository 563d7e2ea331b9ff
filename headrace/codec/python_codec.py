"""The codec in plain Python: where nothing was compiled, and the second opinion on the format.

Slow (some 5 MB/s) and complete: none and lz4 by itself, zstd through whichever of ``zstandard`` or
``pyarrow`` is installed. Checks what native/src/batch/batch.c checks, in the same order.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence

from headrace.codec import compression
from headrace.codec.layout import (
    CLIENT_BYTES_MAX,
    CLIENT_HEADER_BYTES,
    CODECS,
    NO_PRODUCER,
    RECORD_HEADERS_MAX,
    RECORDS_BYTES_MAX,
    RECORDS_COUNT_MAX,
    SERVER_HEADER_BYTES,
    Batch,
    CodecError,
    Decoded,
    Record,
)

_SERVER = struct.Struct("<4sIIHHQqQQIIQ12s16sI")
_CLIENT = struct.Struct("<IIBBHI16sQIIqqII")
_MAGIC = b"HRB1"
_VERSION = 1
_RECORD_BYTES_MIN = 6
_UINT64_MAX = 2**64 - 1
_INT64 = range(-(2**63), 2**63)


def _table() -> array[int]:
    table = array("I")
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_CRC32C = _table()


def crc32c(data: bytes | bytearray | memoryview, crc: int = 0) -> int:
    """CRC32C (Castagnoli) of the bytes, going on from ``crc``."""
    table = _CRC32C
    crc ^= 0xFFFFFFFF
    for byte in bytes(data):
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# ---- encoding ----


def _put_uvarint(target: bytearray, value: int) -> None:
    while value >= 0x80:
        target.append(value & 0x7F | 0x80)
        value >>= 7
    target.append(value)


def _put_field(target: bytearray, field: bytes | None) -> None:
    if field is None:
        target.append(0)
        return
    _put_uvarint(target, len(field) + 1)
    target += field


def _record(index: int, record: Record, base_timestamp_us: int) -> bytes:
    delta = record.timestamp_us - base_timestamp_us
    if record.timestamp_us not in _INT64 or delta not in _INT64:
        raise CodecError("BATCH_TIMESTAMP", "timestamps of a batch lie too far apart")
    if len(record.headers) > RECORD_HEADERS_MAX:
        raise CodecError("BATCH_RECORD", f"a record has at most {RECORD_HEADERS_MAX} headers")
    body = bytearray()
    _put_uvarint(body, index)
    _put_uvarint(body, (delta << 1) ^ (delta >> 63))
    _put_field(body, record.key)
    _put_field(body, record.value)
    _put_uvarint(body, len(record.headers))
    for name, value in record.headers:
        encoded = name.encode()
        _put_uvarint(body, len(encoded))
        body += encoded
        _put_field(body, value)
    sized = bytearray()
    _put_uvarint(sized, len(body))
    return bytes(sized + body)


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
    base_timestamp_us = records[0].timestamp_us
    content = b"".join(
        _record(index, record, base_timestamp_us) for index, record in enumerate(records)
    )
    if len(content) > RECORDS_BYTES_MAX:
        raise CodecError("MESSAGE_TOO_LARGE", f"records exceed {RECORDS_BYTES_MAX} bytes")
    stored = compression.compress(content, CODECS[codec])
    size_bytes = CLIENT_HEADER_BYTES + len(stored)
    if size_bytes > CLIENT_BYTES_MAX:
        raise CodecError("MESSAGE_TOO_LARGE", f"the batch exceeds {CLIENT_BYTES_MAX} bytes")
    header = _CLIENT.pack(
        size_bytes,
        0,
        _VERSION,
        codec,
        0,
        len(records),
        producer_id,
        base_sequence,
        producer_epoch,
        len(records) - 1,
        base_timestamp_us,
        max(record.timestamp_us for record in records),
        len(content),
        0,
    )
    part = header[:4] + struct.pack("<I", crc32c(header[8:] + stored)) + header[8:] + stored
    client_batch(memoryview(part))
    return part


# ---- headers ----


def _refuse(condition: bool, code: str, message: str) -> None:
    if condition:
        raise CodecError(code, message)


def _client_sizes(view: memoryview) -> None:
    _refuse(len(view) > CLIENT_BYTES_MAX, "MESSAGE_TOO_LARGE", "the client part is too large")
    _refuse(len(view) < CLIENT_HEADER_BYTES, "BATCH_SHORT", "the client part is too short")
    size, crc = struct.unpack_from("<II", view)
    _refuse(size != len(view), "BATCH_SIZE", "the size disagrees with the bytes")
    _refuse(size <= CLIENT_HEADER_BYTES, "BATCH_SIZE", "the batch has no records")
    _refuse(crc != crc32c(view[8:]), "BATCH_CHECKSUM", "the client part fails its CRC32C")


def _client_meaning(view: memoryview) -> None:
    fields = _CLIENT.unpack_from(view)
    size, _, version, codec, flags, count, producer_id, sequence, epoch, last_delta = fields[:10]
    base_us, max_us, records_bytes, reserved = fields[10:]
    _refuse(version != _VERSION, "BATCH_VERSION", f"version {version} is not known")
    _refuse(codec >= len(CODECS), "BATCH_CODEC", f"codec {codec} is not known")
    _refuse(flags != 0 or reserved != 0, "BATCH_RESERVED", "a reserved field is not zero")
    _refuse(not 0 < count <= RECORDS_COUNT_MAX, "BATCH_COUNT", f"{count} records")
    _refuse(last_delta != count - 1, "BATCH_COUNT", "the last offset disagrees with the count")
    _refuse(records_bytes > RECORDS_BYTES_MAX, "BATCH_SIZE", "the records are too large")
    _refuse(records_bytes < count * _RECORD_BYTES_MIN, "BATCH_COUNT", "too few bytes for the count")
    plain = codec == 0 and records_bytes != size - CLIENT_HEADER_BYTES
    _refuse(plain, "BATCH_SIZE", "the size disagrees with the records")
    unnamed = producer_id == NO_PRODUCER and (epoch != 0 or sequence != 0)
    _refuse(unnamed, "BATCH_PRODUCER", "an epoch or sequence without a producer")
    _refuse(sequence > _UINT64_MAX - count, "BATCH_PRODUCER", "the sequence overflows")
    _refuse(max_us < base_us, "BATCH_TIMESTAMP", "the largest timestamp is below the first")


def _client(view: memoryview, server: tuple[int, ...] | None, stored: memoryview) -> Batch:
    """Check a client part of exactly ``len(view)`` bytes, from the outside in."""
    _client_sizes(view)
    _client_meaning(view)
    fields = _CLIENT.unpack_from(view)
    size, _, _, codec, _, count, producer_id, sequence, epoch, _ = fields[:10]
    base_us, max_us, records_bytes, _ = fields[10:]
    base_offset, append_us, op, first_view, principal, cumulative = server or (0, 0, 0, 0, 0, 0)
    return Batch(
        size_bytes=len(stored) or size,
        base_offset=base_offset,
        append_time_us=append_us,
        op=op,
        first_view=first_view,
        principal=principal,
        cumulative_bytes=cumulative,
        record_count=count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        base_timestamp_us=base_us,
        max_timestamp_us=max_us,
        records_bytes=records_bytes,
        codec=CODECS[codec],
        stored=stored,
        client=view,
    )


def client_batch(view: memoryview) -> Batch:
    """The bare client part that ``view`` is. Raises CodecError."""
    return _client(view, None, view[:0])


def stored_batch(view: memoryview, seed: int) -> Batch | None:
    """The stored batch at the front of ``view``; None if it ends behind it. Raises CodecError."""
    if len(view) < SERVER_HEADER_BYTES:
        return None
    (
        magic,
        size,
        crc,
        version,
        flags,
        base_offset,
        append_us,
        op,
        first_view,
        principal,
        key_id,
        cumulative,
        nonce,
        _,
        client_crc,
    ) = _SERVER.unpack_from(view)
    _refuse(magic != _MAGIC, "BATCH_MAGIC", "no batch begins here")
    covered = bytes(view[:8]) + bytes(view[12:SERVER_HEADER_BYTES])
    _refuse(crc != crc32c(covered, seed), "BATCH_CHECKSUM", "the server header fails its CRC32C")
    _refuse(version != _VERSION, "BATCH_VERSION", f"version {version} is not known")
    unknown = flags != 0 or key_id != 0 or any(nonce)
    _refuse(unknown, "BATCH_RESERVED", "a reserved field is not zero")
    least = SERVER_HEADER_BYTES + CLIENT_HEADER_BYTES
    in_range = least < size <= SERVER_HEADER_BYTES + CLIENT_BYTES_MAX
    _refuse(not in_range, "BATCH_SIZE", f"{size} bytes")
    if size > len(view):
        return None
    server = (base_offset, append_us, op, first_view, principal, cumulative)
    batch = _client(view[SERVER_HEADER_BYTES:size], server, view[:size])
    (crc,) = struct.unpack_from("<I", batch.client, 4)
    _refuse(crc != client_crc, "BATCH_CHECKSUM", "the client part is not the header's")
    return batch


# ---- decoding ----


class _Reader:
    """A cursor over records that refuses to leave ``end``."""

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self.data = data
        self.at = at
        self.end = end

    def uvarint(self, bytes_max: int = 5) -> int:
        """The next varint, in its shortest form only."""
        value = 0
        for index in range(bytes_max):
            _refuse(self.at >= self.end, "BATCH_RECORD", "a number is cut off")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                _refuse(byte == 0 and index > 0, "BATCH_RECORD", "a number is longer than need be")
                _refuse(value > _UINT64_MAX, "BATCH_RECORD", "a number overflows")
                return value
        raise CodecError("BATCH_RECORD", "a number does not end")

    def skip(self, size: int) -> int:
        """Go on by ``size`` bytes; returns where they began."""
        at = self.at
        _refuse(size > self.end - at, "BATCH_RECORD", "a size runs over the record's end")
        self.at += size
        return at

    def field(self) -> tuple[int, int]:
        """Position and size of a nullable field; -1 = null."""
        size = self.uvarint() - 1
        return (self.skip(max(size, 0)), size)


def headers(records: memoryview, position: int, count: int) -> list[tuple[str, bytes | None]]:
    """The ``count`` headers that begin at ``position``."""
    reader = _Reader(records, position, len(records))
    found: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size = reader.uvarint()
        at = reader.skip(size)
        try:
            name = bytes(records[at : at + size]).decode()
        except UnicodeDecodeError as error:
            raise CodecError("BATCH_RECORD", "a header's name is not UTF-8") from error
        at, size = reader.field()
        found.append((name, None if size < 0 else bytes(records[at : at + size])))
    return found


def _read_record(decoded: Decoded, reader: _Reader, batch: Batch, index: int) -> None:
    size = reader.uvarint()
    end = reader.at + size
    _refuse(end > reader.end, "BATCH_RECORD", "a record runs over the end")
    body = _Reader(reader.data, reader.at, end)
    _refuse(body.uvarint() != index, "BATCH_RECORD", "offsets do not count up by one")
    zigzag = body.uvarint(10)
    delta = (zigzag >> 1) ^ -(zigzag & 1)
    timestamp_us = batch.base_timestamp_us + delta
    first = index == 0 and delta != 0
    _refuse(first or timestamp_us not in _INT64, "BATCH_TIMESTAMP", "a timestamp is out of range")
    decoded.timestamps_us.append(timestamp_us)
    for positions, sizes in (
        (decoded.key_positions, decoded.key_sizes),
        (decoded.value_positions, decoded.value_sizes),
    ):
        position, size = body.field()
        positions.append(position)
        sizes.append(size)
    count = body.uvarint()
    _refuse(count > RECORD_HEADERS_MAX, "BATCH_RECORD", "too many headers")
    decoded.header_positions.append(body.at)
    decoded.header_counts.append(count)
    for _ in range(count):
        size = body.uvarint()
        at = body.skip(size)
        try:
            bytes(body.data[at : at + size]).decode()
        except UnicodeDecodeError as error:
            raise CodecError("BATCH_RECORD", "a header's name is not UTF-8") from error
        body.field()
    _refuse(body.at != end, "BATCH_RECORD", "a record has bytes left over")
    reader.at = end


def decode(batch: Batch) -> Decoded:
    """Take the batch's records apart. Raises CodecError."""
    stored = batch.client[CLIENT_HEADER_BYTES:]
    content = compression.decompress(stored, batch.codec, batch.records_bytes)
    decoded = Decoded(
        records=memoryview(content),
        timestamps_us=array("q"),
        key_positions=array("I"),
        key_sizes=array("i"),
        value_positions=array("I"),
        value_sizes=array("i"),
        header_positions=array("I"),
        header_counts=array("I"),
    )
    reader = _Reader(decoded.records, 0, len(content))
    for index in range(batch.record_count):
        _refuse(reader.at == reader.end, "BATCH_COUNT", "fewer records than the header says")
        _read_record(decoded, reader, batch, index)
    _refuse(reader.at != reader.end, "BATCH_COUNT", "more bytes than the records take")
    largest = max(decoded.timestamps_us)
    _refuse(largest != batch.max_timestamp_us, "BATCH_TIMESTAMP", "the largest timestamp is wrong")
    return decoded
