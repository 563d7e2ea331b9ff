"""What both engines of the codec share: names, limits, shapes and the one error.

Owns no bytes: the layout is drawn in docs/internals/log-format.md and written by
``_codec_native`` (C) or ``_codec_python``.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

SERVER_HEADER_BYTES: Final = 96
CLIENT_HEADER_BYTES: Final = 72
CLIENT_BYTES_MAX: Final = 8 * 1024 * 1024
RECORDS_BYTES_MAX: Final = 64 * 1024 * 1024
RECORDS_COUNT_MAX: Final = 1_000_000
RECORD_HEADERS_MAX: Final = 256

CODECS: Final = ("none", "lz4", "zstd")
NO_PRODUCER: Final = bytes(16)


class CodecError(ValueError):
    """Bytes that are no batch, or records that fit in none; ``code`` names the first fault."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Record(NamedTuple):
    """A record to be sent. ``timestamp_us``: the producer's clock, microseconds since 1970 UTC."""

    key: bytes | None
    value: bytes | None
    timestamp_us: int
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """A checked batch, its records still compressed.

    Of a bare client part, what the server adds is zero.
    """

    size_bytes: int  # of the stored batch: what is billed
    base_offset: int
    append_time_us: int  # agreed time, microseconds since 1970 UTC
    op: int
    first_view: int
    principal: int
    cumulative_bytes: int
    record_count: int
    producer_id: bytes
    producer_epoch: int
    base_sequence: int
    base_timestamp_us: int
    max_timestamp_us: int
    records_bytes: int  # before compression
    codec: str
    stored: memoryview  # both headers and the records; empty for a bare client part
    client: memoryview  # the client part

    @property
    def last_offset_delta(self) -> int:
        """Offset of the last record, from the base offset."""
        return self.record_count - 1


@dataclass(frozen=True, slots=True)
class Decoded:
    """A batch's records, and where in them everything lies; sizes of -1 are null."""

    records: memoryview
    timestamps_us: array[int]
    key_positions: array[int]
    key_sizes: array[int]
    value_positions: array[int]
    value_sizes: array[int]
    header_positions: array[int]
    header_counts: array[int]
