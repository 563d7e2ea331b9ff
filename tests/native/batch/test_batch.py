"""batch.c and batch_records.c: what goes in comes out, and what was changed is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import codec
from headrace.codec import Record
from native._engine_sim import ffi, lib
from tests.support.builders.storage import SEED, client_part, name, stored_batch

PRODUCER = bytes(range(16))
MEBIBYTE = 1 << 20


def check_client(part: bytes, limit: int = 8 * MEBIBYTE) -> str:
    return name(lib.batch_check_client(part, len(part), limit, ffi.new("struct batch_client *")))


def check_stored(stored: bytes, seed: int = SEED) -> str:
    server, client = ffi.new("struct batch_server *"), ffi.new("struct batch_client *")
    return name(lib.batch_check_stored(stored, len(stored), seed, server, client))


def sealed(part: bytearray) -> bytes:
    """The part with a CRC that fits: what a hostile or broken client would send."""
    struct.pack_into("<I", part, 4, codec.crc32c(bytes(part[8:])))
    return bytes(part)


def patched(form: str, at: int, value: int, part: bytes | None = None) -> bytes:
    """A good client part with one field changed and its CRC made to fit."""
    changed = bytearray(part or client_part(3, producer=PRODUCER, sequence=5))
    struct.pack_into(form, changed, at, value)
    return sealed(changed)


def test_a_good_batch_is_taken() -> None:
    part = client_part(3, producer=PRODUCER, sequence=5)
    client = ffi.new("struct batch_client *")
    assert lib.batch_check_client(part, len(part), len(part), client) == 0
    assert client.record_count == 3
    assert client.base_sequence == 5
    assert bytes(client.producer_id) == PRODUCER
    assert client.idempotent == 1
    assert check_stored(stored_batch(part, op=9, append_us=1)) == "OK"
    assert check_stored(stored_batch(part, op=9, append_us=1), SEED + 1) == "BATCH_CHECKSUM"


@pytest.mark.parametrize(
    ("form", "at", "value", "status"),
    [
        ("<I", 0, 71, "BATCH_SIZE"),
        ("<I", 0, 1 << 31, "BATCH_SIZE"),
        ("<B", 8, 2, "BATCH_VERSION"),
        ("<B", 9, 3, "BATCH_CODEC"),
        ("<H", 10, 1, "BATCH_RESERVED"),
        ("<I", 12, 0, "BATCH_COUNT"),
        ("<I", 12, 4, "BATCH_COUNT"),
        ("<I", 12, 1_000_001, "BATCH_COUNT"),
        ("<I", 44, 3, "BATCH_COUNT"),
        ("<Q", 32, 2**64 - 2, "BATCH_PRODUCER"),
        ("<q", 56, -1, "BATCH_TIMESTAMP"),
        ("<I", 64, 0, "BATCH_COUNT"),
        ("<I", 64, 64 * MEBIBYTE + 1, "BATCH_SIZE"),
        ("<I", 64, 60, "BATCH_SIZE"),
        ("<I", 68, 1, "BATCH_RESERVED"),
    ],
)
def test_a_header_that_lies_is_refused_by_name(form: str, at: int, value: int, status: str) -> None:
    assert check_client(patched(form, at, value)) == status


def test_an_epoch_or_sequence_needs_a_producer() -> None:
    assert check_client(patched("<I", 40, 1, client_part(1))) == "BATCH_PRODUCER"
    assert check_client(patched("<Q", 32, 1, client_part(1))) == "BATCH_PRODUCER"


def test_a_part_above_the_topics_limit_is_too_large() -> None:
    part = client_part(1, size=1000)
    assert check_client(part, len(part)) == "OK"
    assert check_client(part, len(part) - 1) == "MESSAGE_TOO_LARGE"


@given(st.data())
def test_any_flipped_bit_of_a_stored_batch_is_refused(data: st.DataObject) -> None:
    stored = bytearray(stored_batch(client_part(4, producer=PRODUCER), op=7, append_us=11))
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= 1 << data.draw(st.integers(0, 7))
    assert check_stored(bytes(stored)) != "OK"


def test_every_byte_of_a_stored_batch_counts() -> None:
    stored = stored_batch(client_part(2, producer=PRODUCER), op=7, append_us=11)
    for at in range(len(stored)):
        changed = bytearray(stored)
        changed[at] ^= 0xFF
        assert check_stored(bytes(changed)) != "OK", at


@given(st.integers(0, 300))
def test_a_batch_that_is_cut_off_is_short(size: int) -> None:
    stored = stored_batch(client_part(20), op=7, append_us=11)
    assert size < len(stored)
    assert check_stored(stored[:size]) == "BATCH_SHORT"


@given(st.binary(max_size=400))
def test_noise_is_never_a_batch(noise: bytes) -> None:
    assert check_client(noise) != "OK"
    assert check_stored(noise) != "OK"


def test_assigning_offsets_renews_the_headers_sum() -> None:
    stored = stored_batch(client_part(2), op=7, append_us=11)
    buffer = ffi.new("uint8_t[]", stored)
    lib.batch_assign(buffer, SEED, 1000, 5000)
    assigned = bytes(ffi.buffer(buffer, len(stored)))
    assert check_stored(assigned) == "OK"
    assert assigned == stored_batch(
        client_part(2), op=7, append_us=11, base_offset=1000, cumulative_bytes=5000
    )


# ---- records, through batch/codec.c ----

texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)
fields = st.none() | st.binary(max_size=40)
records = st.builds(
    Record,
    key=fields,
    value=fields,
    timestamp_us=st.integers(-(2**62), 2**62 - 1),
    headers=st.lists(st.tuples(texts, fields), max_size=3),
)


def opened(part: bytes) -> str:
    """What taking the records apart says."""
    header = ffi.new("struct codec_batch *")
    size = lib.codec_client(part, len(part), header)
    if size < 0:
        return name(size)
    count = header.record_count
    arrays = {
        "timestamps_us": ffi.new("int64_t[]", count),
        "key_positions": ffi.new("uint32_t[]", count),
        "key_sizes": ffi.new("int32_t[]", count),
        "value_positions": ffi.new("uint32_t[]", count),
        "value_sizes": ffi.new("int32_t[]", count),
        "header_positions": ffi.new("uint32_t[]", count),
        "header_counts": ffi.new("uint32_t[]", count),
    }
    target = ffi.new("uint8_t[]", header.records_bytes)
    return name(lib.codec_decode(part, header, target, ffi.new("struct codec_columns *", arrays)))


@settings(max_examples=50)
@given(st.lists(records, min_size=1, max_size=20), st.sampled_from(["none", "lz4", "zstd"]))
def test_what_was_encoded_is_taken_apart(rows: list[Record], form: str) -> None:
    assert opened(codec.encode(rows, codec=form)) == "OK"


def body(*, at: int, value: int) -> bytes:
    """A batch of two records, ``k`` and ``v`` each, with one byte of its records changed."""
    rows = [Record(b"k", b"v", 10), Record(b"k", b"v", 12)]
    changed = bytearray(codec.encode(rows))
    changed[72 + at] = value
    return sealed(changed)


@pytest.mark.parametrize(
    ("at", "value", "status"),
    [
        (0, 6, "BATCH_RECORD"),  # the body is shorter than what is in it
        (0, 8, "BATCH_RECORD"),  # .. or longer
        (0, 200, "BATCH_RECORD"),  # .. or its size does not end
        (1, 1, "BATCH_RECORD"),  # offsets begin at 0
        (2, 2, "BATCH_TIMESTAMP"),  # the first timestamp is the base
        (3, 9, "BATCH_RECORD"),  # a key that runs over
        (7, 1, "BATCH_RECORD"),  # a header that is not there
        (10, 8, "BATCH_TIMESTAMP"),  # the largest timestamp is stated
    ],
)
def test_a_record_that_lies_is_refused_by_name(at: int, value: int, status: str) -> None:
    assert opened(body(at=at, value=value)) == status


def test_fewer_or_more_records_than_stated_are_refused() -> None:
    rows = [Record(b"k", b"v", 10), Record(b"k", b"v", 12)]
    for count in (1, 3):
        part = bytearray(codec.encode(rows))
        struct.pack_into("<I", part, 12, count)
        struct.pack_into("<I", part, 44, count - 1)
        assert opened(sealed(part)) in {"BATCH_COUNT", "BATCH_TIMESTAMP"}


@pytest.mark.parametrize("form", ["lz4", "zstd"])
@pytest.mark.parametrize("difference", [-1, 1, 1000])
def test_decompression_is_held_to_the_stated_size(form: str, difference: int) -> None:
    part = bytearray(codec.encode([Record(None, b"a" * 5000, 1)], codec=form))
    (size,) = struct.unpack_from("<I", part, 64)
    struct.pack_into("<I", part, 64, size + difference)
    assert opened(sealed(part)) == "BATCH_COMPRESSION"


@given(st.sampled_from(["lz4", "zstd"]), st.data())
def test_a_damaged_frame_is_a_status_never_a_crash(form: str, data: st.DataObject) -> None:
    part = bytearray(codec.encode([Record(b"key", bytes(range(200)) * 5, 1)] * 4, codec=form))
    for _ in range(data.draw(st.integers(1, 4))):
        part[data.draw(st.integers(72, len(part) - 1))] = data.draw(st.integers(0, 255))
    assert opened(sealed(part)) in {
        "OK",
        "BATCH_COMPRESSION",
        "BATCH_RECORD",
        "BATCH_COUNT",
        "BATCH_TIMESTAMP",
    }


def test_a_second_zstd_frame_is_refused() -> None:
    part = codec.encode([Record(None, b"a" * 500, 1)], codec="zstd")
    empty = codec.encode([Record(None, b"", 1)], codec="zstd")[72:]
    changed = bytearray(part + empty)
    struct.pack_into("<I", changed, 0, len(changed))
    assert opened(sealed(changed)) == "BATCH_COMPRESSION"


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]
)
def test_a_header_name_that_is_not_utf8_is_refused(text: bytes) -> None:
    part = bytearray(codec.encode([Record(None, None, 1, [("x" * len(text), None)])]))
    at = bytes(part).index(b"x" * len(text))
    part[at : at + len(text)] = text
    assert opened(sealed(part)) == "BATCH_RECORD"
