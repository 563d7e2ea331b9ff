"""Every frozen layout of the storage core: its golden file read, and written again byte for byte.

Twice: by the C of the node, and by Python, here or in headrace/, that follows docs/internals/ and
not the C. The files in tests/data/ were made once and never change: a new layout is a new version
with a file of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import codec
from headrace.codec import python_codec
from headrace.codec.layout import Batch, Record
from native._engine_sim import ffi, lib
from tests.support.builders.storage import FOOTER_SEED, Partition, client_part, name
from tests.support.builders.storage import SEED as BUILDER_SEED

DATA = Path(__file__).resolve().parent.parent / "data"
SEED = codec.partition_seed("cl_06f0000000000000000000000a", 16, 3, 2)
"""Of the golden batches."""

ROWS = [
    Record(
        b"user-1",
        b"first",
        1_700_000_000_000_000,
        [("trace", b"abc"), ("trace", None), ("größe", b"")],
    ),
    Record(None, b"", 1_700_000_000_000_007),
    Record(b"", None, 1_699_999_999_999_993),
    Record(b"user-1", bytes(range(256)), 1_700_000_000_000_007),
]
MANY = [
    Record(
        b"user-%d" % (index % 7),
        b"the same words again and again %d" % (index % 5),
        1_700_000_000_000_000 + index,
    )
    for index in range(50)
]


def golden(file: str) -> bytes:
    return (DATA / file).read_bytes()


def reseal(data: bytes, at: int, begin: int, seed: int = 0) -> bytes:
    """The bytes with the CRC32C at ``at`` computed anew over everything from ``begin`` on."""
    return data[:at] + struct.pack("<I", python_codec.crc32c(data[begin:], seed)) + data[at + 4 :]


# ---- batches ----


def rows_of(batch: Batch, decode: Callable[[Batch], codec.Columns]) -> list[Record]:
    columns = decode(batch)
    assert list(columns.offsets) == list(range(42, 42 + len(columns)))
    return [
        Record(key, value, timestamp_us, columns.headers(index))
        for index, (key, value, timestamp_us) in enumerate(
            zip(columns.keys, columns.values, columns.timestamps_us, strict=True)
        )
    ]


def decode_python(batch: Batch) -> codec.Columns:
    return codec.Columns(batch.base_offset, python_codec.decode(batch))


@pytest.mark.parametrize("decode", [codec.decode, decode_python])
@pytest.mark.parametrize(("form", "rows"), [("none", ROWS), ("lz4", MANY), ("zstd", MANY)])
def test_a_golden_batch_holds_its_records(
    form: str, rows: list[Record], decode: Callable[[Batch], codec.Columns]
) -> None:
    (batch,) = codec.batches(golden(f"batch_v1_{form}.bin"), SEED)
    again = python_codec.stored_batch(memoryview(golden(f"batch_v1_{form}.bin")), SEED)
    assert batch == again
    assert (batch.op, batch.first_view, batch.principal, batch.cumulative_bytes) == (
        77,
        5,
        16,
        123456,
    )
    assert (batch.append_time_us, batch.codec) == (1_700_000_001_000_000, form)
    assert (batch.producer_id, batch.producer_epoch) == (bytes(range(1, 17)), 3)
    assert (batch.base_sequence, batch.record_count) == (12, len(rows))
    expected = [row._replace(headers=list(row.headers)) for row in rows]
    assert rows_of(batch, decode) == expected


def digest_of(data: bytes | memoryview) -> bytes:
    """XXH3-128, the low half first."""
    digest = ffi.new("uint8_t[16]")
    lib.vsr_digest(bytes(data), len(data), digest)
    return bytes(ffi.buffer(digest))


def server_header_c(batch: Batch) -> bytes:
    server = ffi.new(
        "struct batch_server *",
        {
            "size_bytes": batch.size_bytes,
            "base_offset": batch.base_offset,
            "append_time_us": batch.append_time_us,
            "op": batch.op,
            "first_view": batch.first_view,
            "principal": batch.principal,
            "cumulative_bytes": batch.cumulative_bytes,
            "client_crc": int.from_bytes(batch.client[4:8], "little"),
            "digest": digest_of(batch.client),
        },
    )
    target = ffi.new("uint8_t[96]")
    lib.batch_encode_server(server, SEED, target)
    return bytes(ffi.buffer(target))


def server_header_python(batch: Batch) -> bytes:
    front = struct.pack("<4sI", b"HRB1", batch.size_bytes)
    rest = struct.pack(
        "<HHQqQQIIQ12x16sI",
        1,
        0,
        batch.base_offset,
        batch.append_time_us,
        batch.op,
        batch.first_view,
        batch.principal,
        0,
        batch.cumulative_bytes,
        digest_of(batch.client),
        int.from_bytes(batch.client[4:8], "little"),
    )
    return front + struct.pack("<I", python_codec.crc32c(front + rest, SEED)) + rest


def encode_python(rows: list[Record], batch: Batch) -> bytes:
    return python_codec.encode(rows, 0, batch.producer_id, batch.producer_epoch, 12)


def encode_c(rows: list[Record], batch: Batch) -> bytes:
    return codec.encode(
        rows,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )


@pytest.mark.parametrize("server_header", [server_header_c, server_header_python])
@pytest.mark.parametrize("encode", [encode_c, encode_python])
def test_a_golden_batch_is_written_again(
    server_header: Callable[[Batch], bytes], encode: Callable[[list[Record], Batch], bytes]
) -> None:
    stored = golden("batch_v1_none.bin")
    (batch,) = codec.batches(stored, SEED)
    assert server_header(batch) + encode(ROWS, batch) == stored


@pytest.mark.parametrize("form", ["lz4", "zstd"])
def test_headers_of_compressed_golden_batches_are_written_again(form: str) -> None:
    # What a compressor writes may change with its release; the format is what it can read.
    stored = golden(f"batch_v1_{form}.bin")
    (batch,) = codec.batches(stored, SEED)
    assert server_header_c(batch) == server_header_python(batch) == stored[:96]


def test_the_codec_under_test_is_the_compiled_one() -> None:
    assert codec.ACCELERATED


# ---- segments ----


def test_the_golden_segment_is_its_batches_and_its_footer() -> None:
    data = golden("segment_v1.bin")
    partition = Partition(segment_bytes=600)
    for index in range(3):
        part = client_part(2, size=150, producer=b"p" * 16, sequence=2 * index)
        partition.append(part, append_us=1_700_000_001_000_000 + index)
    assert bytes(partition.log.files[0]) == data
    footer = data[-96:]
    fields = list(struct.unpack("<4sIH6xQQQQQqqQQQ", footer))
    assert fields[0] == b"HRSF"
    assert fields[3:8] == [0, 4, len(data) - 96, 1, 2]
    assert fields[8:10] == [1_700_000_001_000_000, 1_700_000_001_000_001]
    assert fields[12] == 4
    assert reseal(struct.pack("<4sIH6xQQQQQqqQQQ", *fields), 4, 8, FOOTER_SEED) == footer
    found = ffi.new("struct segment_footer *")
    assert lib.segment_footer_decode(footer, 96, FOOTER_SEED, found) == 0
    again = ffi.new("uint8_t[96]")
    lib.segment_footer_encode(found, FOOTER_SEED, again)
    assert bytes(ffi.buffer(again)) == footer


# ---- the node's identity ----


def test_the_golden_identity_is_read_and_written_again() -> None:
    data = golden("node_identity_v1.bin")
    found = ffi.new("struct node_identity *")
    assert lib.node_identity_decode(data, found) == 0
    assert (found.shards_count, found.layout, found.boot_counter) == (2, 3, 4)
    assert ffi.string(found.cluster_id) == b"cl_06f0000000000000000000000a"
    again = ffi.new("uint8_t[256]")
    lib.node_identity_encode(found, again)
    assert bytes(ffi.buffer(again)) == data
    assert found.formatted == 1
    form = "<4sIHHIQQQ48s48sI116x"
    assert reseal(struct.pack(form, *struct.unpack(form, data)), 4, 8) == data


# ---- operations of a partition ----

OPERATIONS = {
    "commit_offset": ("commit", {"group": 7, "generation": 3, "offset": 336776}),
    "in_flight": ("in_flight", {"group": 7, "generation": 3}),
    "freeze": ("fence", {"group": 7, "generation": 4, "intent_op": 1001}),
    "close": ("fence", {"group": 7, "generation": 4, "intent_op": 1001}),
    "expire_producers": ("expire", {"used_until_us": 1_700_000_000_000_000}),
    "seal": ("seal", {"intent_op": 1001}),
    "trim": ("trim", {"log_start": 336776, "cause": 2, "policy_version": 5, "acked": 7}),
    "set_hold": ("hold", {"intent_op": 1002, "held": 1, "from_offset": 336776}),
    "configure": (
        "configure",
        {
            "segment_bytes": 1 << 28,
            "segment_us": 3_600_000_000,
            "producers_max": 200,
            "groups_max": 60,
            "metered": 1,
        },
    ),
    "meter_close": (
        "meter_close",
        {"sequence": 9, "window_end_us": 1_700_000_060_000_000, "acked": 7},
    ),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_golden_operations_are_read_and_written_again(operation: str) -> None:
    data = golden(f"op_{operation}_v1.bin")
    kind, fields = OPERATIONS[operation]
    found = ffi.new(f"struct partition_{kind} *")
    assert getattr(lib, f"partition_decode_{kind}")(data, len(data), found) == 0
    assert {field: getattr(found, field) for field in fields} == fields
    again = ffi.new("uint8_t[]", len(data))
    getattr(lib, f"partition_encode_{kind}")(found, again)
    assert bytes(ffi.buffer(again)) == data
    assert struct.pack(f"<B7x{len(fields)}Q", 1, *fields.values()) == data


# ---- checkpoints ----


def test_the_golden_checkpoint_is_read_and_written_again() -> None:
    data = golden("partition_checkpoint_v1.bin")
    partition = Partition(segment_bytes=1500)
    assert name(lib.partition_checkpoint_decode(partition.struct, data, len(data))) == "OK"
    assert partition.checkpoint() == data
    assert (partition.op, partition.struct.next_offset) == (31, 41)
    assert (partition.struct.log_start, partition.struct.seal_intent_op) == (22, 1001)
    held = partition.struct.retention
    assert (held.hold_intent_op, held.held, held.held_from_offset) == (1002, 1, 22)
    assert (held.sequence, held.acked) == (3, 1)
    assert [event.to_offset for event in partition.events()] == [15, 22]
    assert CheckpointReader(data).again() == data


class CheckpointReader:
    """A checkpoint by its page, docs/internals/groups.md: every field in, every field out."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 8
        self.out = bytearray(data[:4] + bytes(4))

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        self.out += struct.pack(form, *values)
        return values

    def again(self) -> bytes:
        version, size = self.take("<II")
        assert size == len(self.data)
        assert version == 1
        self.take("<QQQQqQ")
        self.take("<B7xQqQQQ")  # configuration
        for _ in range(self.take("<I")[0]):  # producers
            remembered = self.take("<16sIIQq")[2]
            for _ in range(remembered):
                self.take("<QQqI")
        for _ in range(self.take("<I")[0]):  # groups
            self.take("<QQQQQQB7x")
        closes, sums, _ = self.take("<QQqqQIII")[5:]
        for _ in range(closes):
            self.take("<QQQqqI")
        for _ in range(sums):
            self.take("<IQQQ")
        for _ in range(self.take("<QQQQQI")[5]):  # trims
            self.take("<QQQQQQQqqqII")
        for _ in range(self.take("<I")[0]):  # segments
            self.take("<QQQQQqqQB")
        assert self.at == len(self.data)
        return reseal(bytes(self.out), 4, 8, BUILDER_SEED)
