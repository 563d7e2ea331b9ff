"""segment.c: where batches go, when a segment is sealed, and what a walk finds out."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import FOOTER_SEED, Partition, Pools, client_part, name, walk

if TYPE_CHECKING:
    from native._engine_sim import CData


def segments_of(partition: Partition) -> list[CData]:
    found: list[CData] = []
    while segment := lib.partition_segment(partition.struct, len(found)):
        found.append(segment)
    return found


@settings(max_examples=40)
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=30), st.integers(300, 5000))
def test_segments_hold_all_batches_end_to_end(sizes: list[int], segment_bytes: int) -> None:
    partition = Partition(segment_bytes=segment_bytes)
    for size in sizes:
        assert partition.append(client_part(2, size=size)).status == "OK"
    segments = segments_of(partition)
    assert segments[0].base_offset == 0
    for before, after in pairwise(segments):
        assert before.end_offset == after.base_offset
        assert before.sealed == 1
        # Sealed as soon as the next batch would begin at or beyond the limit, and not before.
        assert before.data_bytes >= segment_bytes
    assert segments[-1].sealed == 0
    assert segments[-1].end_offset == 2 * len(sizes)
    files = [partition.log.files[segment.base_offset] for segment in segments]
    assert [len(file) for file in files] == [
        segment.data_bytes + 96 * segment.sealed for segment in segments
    ]


def test_the_footer_is_the_segments() -> None:
    partition = Partition(segment_bytes=500)
    for _ in range(4):
        partition.append(client_part(1, size=300))
    segment = segments_of(partition)[0]
    file = bytes(partition.log.files[0])
    footer = ffi.new("struct segment_footer *")
    assert lib.segment_footer_decode(file[-96:], 96, FOOTER_SEED, footer) == 0
    assert lib.segment_footer_check(footer, segment) == 0
    assert footer.record_count == 2
    again = ffi.new("uint8_t[96]")
    lib.segment_footer_encode(footer, FOOTER_SEED, again)
    assert bytes(ffi.buffer(again)) == file[-96:]
    assert lib.segment_footer_check(footer, segments_of(partition)[1]) != 0


def test_every_byte_of_a_footer_counts() -> None:
    partition = Partition(segment_bytes=200)
    partition.append(client_part(1, size=300))
    partition.append(client_part(1, size=300))
    footer = bytes(partition.log.files[0][-96:])
    target = ffi.new("struct segment_footer *")
    for at in range(96):
        changed = bytearray(footer)
        changed[at] ^= 0x40
        status = lib.segment_footer_decode(bytes(changed), 96, FOOTER_SEED, target)
        assert name(status) == "FOOTER_DAMAGED", at


@settings(max_examples=25)
@given(st.integers(1, 20), st.integers(1, 5), st.integers(100, 3000))
def test_a_walk_restores_what_a_restart_forgot(count: int, more: int, piece: int) -> None:
    partition = Partition(segment_bytes=2500)
    for _ in range(count):
        partition.append(client_part(3, size=200))
    other = partition.restored()
    other.walk(piece_bytes=piece)
    for _ in range(more):
        partition.append(client_part(3, size=200))
        other.append(client_part(3, size=200))
    # Same bytes, footers with their digests included.
    assert partition.log == other.log
    assert partition.checkpoint() == other.checkpoint()


def test_a_walk_stops_at_the_first_damaged_batch() -> None:
    partition = Partition()
    for _ in range(3):
        partition.append(client_part(1, size=100))
    segment = segments_of(partition)[0]
    data = bytearray(partition.log.files[0])
    data[len(data) // 2] ^= 1
    segments = ffi.addressof(partition.struct, "segments")
    lib.segment_walk_begin(segments, segment)
    consumed = ffi.new("size_t *")
    status = lib.segment_walk(segments, segment, bytes(data), len(data), consumed)
    assert name(status) == "BATCH_CHECKSUM"
    assert consumed[0] == len(data) // 3


def test_a_walk_finds_batches_that_are_whole_but_not_in_their_place() -> None:
    partition = Partition()
    for _ in range(3):
        partition.append(client_part(1, size=100))
    segment = segments_of(partition)[0]
    data = bytes(partition.log.files[0])
    third = len(data) // 3
    swapped = data[third : 2 * third] + data[:third] + data[2 * third :]
    repeated = data[:third] + data[:third] + data[2 * third :]
    segments = ffi.addressof(partition.struct, "segments")
    for wrong in (swapped, repeated):
        lib.segment_walk_begin(segments, segment)
        status = lib.segment_walk(segments, segment, wrong, len(wrong), ffi.new("size_t *"))
        assert name(status) == "SEGMENT_DAMAGED"
    lib.segment_walk_begin(segments, segment)
    walk(partition.struct, segment, data, 100)


def test_every_offset_is_found_in_its_segment_near_its_batch() -> None:
    partition = Partition(segment_bytes=300_000)
    for _ in range(40):
        partition.append(client_part(10, size=3000))
    for offset in range(0, 400, 7):
        place = lib.partition_find(partition.struct, offset)
        file = partition.log.files[place.segment_base_offset]
        at = place.position
        while struct.unpack_from("<Q", file, at + 16)[0] + 10 <= offset:
            at += struct.unpack_from("<I", file, at + 4)[0]
        assert struct.unpack_from("<Q", file, at + 16)[0] <= offset
        assert at - place.position < place.stride_bytes + 31_000
        assert at < place.segment_data_bytes


def test_names_are_twenty_digits() -> None:
    text = ffi.new("char[32]")
    lib.segment_name(336776, text)
    assert ffi.string(text) == b"00000000000000336776.log"


@pytest.mark.parametrize("metered", [False, True])
def test_segments_go_back_to_the_pool(metered: bool) -> None:
    pools = Pools(segments=64, blocks=8)
    partition = Partition(pools, segment_bytes=1, metered=metered)
    for _ in range(40):
        partition.append(client_part(1))
    assert pools.pools.segments.free_count == 1
    partition.deinit()
    assert pools.pools.segments.free_count == pools.pools.segments.count
    assert pools.pools.index.free_count == pools.pools.index.count
