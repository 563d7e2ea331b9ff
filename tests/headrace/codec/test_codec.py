"""The codec: both engines say the same, and what lies is refused by name."""

from __future__ import annotations

import struct
import subprocess
import sys
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import codec
from headrace.codec import CodecError, Record, native_codec, python_codec
from headrace.codec.layout import CODECS

ENGINES = [native_codec, python_codec]
PLACE = ("cl_a", 16, 3, 0)
SEED = codec.partition_seed(*PLACE)
PRODUCER = bytes(range(16))

names = st.text(alphabet=st.characters(codec="utf-8"), max_size=6)
fields = st.none() | st.binary(max_size=60)
records = st.builds(
    Record,
    key=fields,
    value=fields,
    timestamp_us=st.integers(-(2**61), 2**61),
    headers=st.lists(st.tuples(names, fields), max_size=3),
)
batches_of_records = st.lists(records, min_size=1, max_size=12)
forms = st.sampled_from(CODECS)


def rows_of(engine: ModuleType, part: bytes) -> list[Record]:
    batch = engine.client_batch(memoryview(part))
    columns = codec.Columns(batch.base_offset, engine.decode(batch))
    return [
        Record(*columns_of(columns, index), columns.headers(index)) for index in range(len(columns))
    ]


def columns_of(columns: codec.Columns, index: int) -> tuple[bytes | None, bytes | None, int]:
    return columns.keys[index], columns.values[index], columns.timestamps_us[index]


@settings(max_examples=60, deadline=None)
@given(batches_of_records, forms)
def test_each_engine_reads_what_the_other_wrote(rows: list[Record], form: str) -> None:
    number = CODECS.index(form)
    parts = [engine.encode(rows, number, PRODUCER, 1, 2) for engine in ENGINES]
    for part in parts:
        for engine in ENGINES:
            assert rows_of(engine, part) == rows
    assert form != "none" or parts[0] == parts[1]


def refusal(engine: ModuleType, part: bytes) -> str:
    try:
        engine.decode(engine.client_batch(memoryview(part)))
    except CodecError as error:
        return error.code
    return "OK"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_both_engines_refuse_the_same_lies_by_the_same_name(data: st.DataObject) -> None:
    rows = [Record(b"key", b"value", 5, [("name", b"x")]), Record(None, None, 9)]
    part = bytearray(codec.encode(rows, producer_id=PRODUCER))
    for _ in range(data.draw(st.integers(1, 3))):
        part[data.draw(st.integers(8, len(part) - 1))] = data.draw(st.integers(0, 255))
    struct.pack_into("<I", part, 4, codec.crc32c(bytes(part[8:])))
    assert refusal(native_codec, bytes(part)) == refusal(python_codec, bytes(part))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_refused_alike(noise: bytes) -> None:
    answers = {refusal(engine, noise) for engine in ENGINES}
    assert len(answers) == 1
    assert answers != {"OK"}


def stored(part: bytes, base_offset: int) -> bytes:
    size = len(part) + 96
    front = struct.pack("<4sI", b"HRB1", size)
    rest = struct.pack("<HHQqQQIIQ28x", 1, 0, base_offset, 77, 3, 0, 16, 0, size) + part[4:8]
    crc = python_codec.crc32c(front + rest, SEED)
    return front + struct.pack("<I", crc) + rest + part


def test_a_walk_gives_every_batch_with_its_offsets() -> None:
    parts = [codec.encode([Record(None, b"x", 1)] * count) for count in (1, 2, 3)]
    buffer = stored(parts[0], 0) + stored(parts[1], 1) + stored(parts[2], 3)
    found = list(codec.batches(buffer, SEED))
    assert [batch.base_offset for batch in found] == [0, 1, 3]
    assert [bytes(batch.client) for batch in found] == parts
    assert b"".join(bytes(batch.stored) for batch in found) == buffer
    assert [list(codec.decode(batch).offsets) for batch in found] == [[0], [1, 2], [3, 4, 5]]
    assert [batch.last_offset_delta for batch in found] == [0, 1, 2]


@pytest.mark.parametrize("size", [1, 95, 96, 200])
def test_a_walk_over_a_cut_off_batch_says_so(size: int) -> None:
    buffer = stored(codec.encode([Record(None, b"x" * 100, 1)]), 0)[:size]
    with pytest.raises(CodecError) as error:
        list(codec.batches(buffer, SEED))
    assert error.value.code == "BATCH_SHORT"


@pytest.mark.parametrize(
    "place", [("cl_b", 16, 3, 0), ("cl_a", 17, 3, 0), ("cl_a", 16, 4, 0), ("cl_a", 16, 3, 1)]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_of_another_place_is_refused_whole_as_it_is(
    engine: ModuleType, place: tuple[str, int, int, int]
) -> None:
    good = stored(codec.encode([Record(b"k", b"v", 1)]), 7)
    assert engine.stored_batch(memoryview(good), SEED)
    with pytest.raises(CodecError) as error:
        engine.stored_batch(memoryview(good), codec.partition_seed(*place))
    assert error.value.code == "BATCH_CHECKSUM"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_header_before_another_client_part_is_refused(engine: ModuleType) -> None:
    first, second = (stored(codec.encode([Record(None, value, 1)]), 7) for value in (b"a", b"b"))
    with pytest.raises(CodecError) as error:
        engine.stored_batch(memoryview(first[:96] + second[96:]), SEED)
    assert error.value.code == "BATCH_CHECKSUM"


def test_every_byte_of_a_stored_batch_counts_for_both_engines() -> None:
    good = stored(codec.encode([Record(b"k", b"v", 1)]), 7)
    for at in range(len(good)):
        changed = bytearray(good)
        changed[at] ^= 1
        codes = set()
        for engine in ENGINES:
            try:
                codes.add("OK" if engine.stored_batch(memoryview(changed), SEED) else "SHORT")
            except CodecError as error:
                codes.add(error.code)
        assert len(codes) == 1
        assert codes != {"OK"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([], "BATCH_COUNT"),
        ([Record(None, None, 1, [("h", None)] * 257)], "BATCH_RECORD"),
        ([Record(None, None, -(2**63)), Record(None, None, 2**63 - 1)], "BATCH_TIMESTAMP"),
        ([Record(None, None, 2**63)], "BATCH_TIMESTAMP"),
        ([Record(None, bytes(8 * 1024 * 1024), 1)], "MESSAGE_TOO_LARGE"),
    ],
)
def test_records_that_fit_in_no_batch_are_refused_by_name(
    engine: ModuleType, rows: list[Record], code: str
) -> None:
    with pytest.raises(CodecError) as error:
        engine.encode(rows, 0, bytes(16), 0, 0)
    assert error.value.code == code


def test_an_unknown_codec_is_refused_by_name() -> None:
    with pytest.raises(CodecError, match="BATCH_CODEC"):
        codec.encode([Record(None, None, 1)], codec="snappy")


def test_an_epoch_without_a_producer_is_refused() -> None:
    for engine in ENGINES:
        with pytest.raises(CodecError, match="BATCH_PRODUCER"):
            engine.encode([Record(None, None, 1)], 0, bytes(16), 1, 0)


def test_fields_are_sequences_that_can_be_sliced() -> None:
    rows = [Record(None if index % 2 else b"%d" % index, b"v", 1) for index in range(6)]
    columns = codec.decode(codec.client_batch(codec.encode(rows)))
    assert columns.keys[1:4] == [None, b"2", None]
    assert list(columns.keys) == [row.key for row in rows]
    assert columns.keys[-2] == b"4"
    assert len(columns.values) == 6


def test_without_the_compiled_module_the_codec_still_works() -> None:
    script = """
import sys
sys.modules["headrace._codec"] = None
from headrace import codec
part = codec.encode([codec.Record(b"k", b"v", 1)], codec="lz4")
columns = codec.decode(codec.client_batch(part))
print(codec.ACCELERATED, columns.keys[0], columns.values[0], hex(codec.crc32c(b"123456789")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False b'k' b'v' 0xe3069283\n"
