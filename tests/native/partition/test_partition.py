"""partition.c: offsets, fences, checkpoints; groups against a small model."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import (
    BATCH,
    CLOSE,
    COMMIT,
    FREEZE,
    IN_FLIGHT,
    METER_CLOSE,
    Applied,
    Partition,
    Pools,
    client_part,
    name,
    stored_batch,
    words,
)

if TYPE_CHECKING:
    from native._engine_sim import CData

GROUPS_MAX = 64
SEGMENTS_MAX = 4096


@dataclass
class Row:
    """A group as one partition knows it."""

    owner: int = 0
    frozen: int = 0
    in_flight: int = 0
    intent: int = 0
    committed: int | None = None


class Groups:
    """Rules G1 to G3 and T1."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}

    def owned(self, row: Row, generation: int) -> str:
        if generation < row.owner:
            return "FENCED"
        return "OK" if generation == row.owner else "GROUP_PENDING"

    def commit(self, group: int, generation: int, offset: int, end: int) -> str:
        row = self.rows.get(group, Row())
        status = self.owned(row, generation)
        if status == "OK" and offset > end:
            return "OFFSET_BEYOND_END"
        if status == "OK":
            row.committed = offset
            self.rows[group] = row
        return status

    def in_flight(self, group: int, generation: int) -> str:
        row = self.rows.get(group, Row())
        status = self.owned(row, generation)
        if status == "OK" and generation < row.frozen:
            return "FENCED"
        if status == "OK":
            row.in_flight = generation
        return status

    def fence(self, kind: int, group: int, generation: int, intent: int) -> str:
        row = self.rows.get(group, Row())
        if intent < row.intent:
            return "STALE_INTENT"
        if generation < row.owner:
            return "FENCED"
        row.intent = intent
        row.frozen = max(row.frozen, generation)
        if kind == CLOSE:
            row.owner = generation
        self.rows[group] = row
        return "OK"

    def fetch(self, group: int, generation: int) -> str:
        row = self.rows.get(group, Row())
        status = self.owned(row, generation)
        if status == "OK" and generation < row.frozen:
            return "FENCED"
        if status == "OK" and generation and row.in_flight != generation:
            return "GROUP_PENDING"
        return status


steps = st.one_of(
    st.tuples(st.just(COMMIT), st.integers(1, 3), st.integers(0, 5), st.integers(0, 12)),
    st.tuples(st.just(IN_FLIGHT), st.integers(1, 3), st.integers(0, 5), st.just(0)),
    st.tuples(
        st.sampled_from([FREEZE, CLOSE]), st.integers(1, 3), st.integers(1, 5), st.integers(1, 9)
    ),
)


@settings(max_examples=150)
@given(st.lists(steps, max_size=40))
def test_groups_follow_the_model(history: list[tuple[int, int, int, int]]) -> None:
    model, partition = Groups(), Partition()
    partition.append(client_part(10))
    for kind, group, generation, last in history:
        if kind == COMMIT:
            expected = model.commit(group, generation, last, 10)
            applied = partition.commit(group, generation, last)
        elif kind == IN_FLIGHT:
            expected = model.in_flight(group, generation)
            applied = partition.in_flight(group, generation)
        else:
            expected = model.fence(kind, group, generation, last)
            applied = partition.fence(kind, group, generation, last)
        row = model.rows.get(group, Row())
        assert applied.status == expected
        assert (applied.committed, applied.generation) == (row.committed, row.owner)
        assert applied.closed == (row.owner > 0 and row.frozen <= row.owner)
        for asked in range(6):
            status = lib.partition_group_fetch(partition.struct, group, asked)
            assert name(status) == model.fetch(group, asked)


def test_a_hand_over_goes_by_freeze_close_in_flight() -> None:
    partition = Partition()
    partition.append(client_part(10))
    assert partition.fence(CLOSE, 7, 1, 100).status == "OK"
    assert partition.commit(7, 1, 3).committed == 3
    assert partition.fence(FREEZE, 7, 2, 200).closed is False
    assert partition.in_flight(7, 1).status == "FENCED"
    assert partition.commit(7, 1, 6).committed == 6
    closed = partition.fence(CLOSE, 7, 2, 200)
    assert (closed.generation, closed.committed, closed.closed) == (2, 6, True)
    assert partition.commit(7, 1, 9).status == "FENCED"
    assert name(lib.partition_group_fetch(partition.struct, 7, 2)) == "GROUP_PENDING"
    assert lib.partition_in_flight_due(partition.struct, 7, 2) == 1
    assert partition.in_flight(7, 2).status == "OK"
    assert lib.partition_in_flight_due(partition.struct, 7, 2) == 0
    assert name(lib.partition_group_fetch(partition.struct, 7, 2)) == "OK"


def test_a_delayed_fence_of_an_earlier_decision_is_refused() -> None:
    partition = Partition()
    assert partition.fence(CLOSE, 7, 3, 300).status == "OK"
    assert partition.fence(CLOSE, 7, 4, 299).status == "STALE_INTENT"
    assert partition.fence(FREEZE, 7, 2, 301).status == "FENCED"
    assert partition.fence(CLOSE, 7, 3, 300).status == "OK"


def test_a_commit_beyond_the_end_is_refused_not_clamped() -> None:
    partition = Partition()
    partition.append(client_part(10))
    refused = partition.commit(7, 0, 11)
    assert (refused.status, refused.expected, refused.committed) == ("OFFSET_BEYOND_END", 10, None)
    assert partition.commit(7, 0, 10).committed == 10


def test_the_group_table_is_bounded() -> None:
    partition = Partition()
    for group in range(1, GROUPS_MAX + 1):
        assert partition.commit(group, 0, 0).status == "OK"
    assert partition.commit(1000, 0, 0).status == "TOO_MANY_GROUPS"
    assert partition.fence(CLOSE, 1000, 1, 1).status == "TOO_MANY_GROUPS"
    assert partition.commit(GROUPS_MAX, 0, 0).status == "OK"


# ---- batches ----


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 20), st.booleans()), min_size=1, max_size=30))
def test_offsets_count_up_by_records_and_bytes_add_up(history: list[tuple[int, bool]]) -> None:
    partition = Partition(segment_bytes=2000)
    expected, total, sequence = 0, 0, 0
    for count, repeated in history:
        part = client_part(count, producer=b"p" * 16, sequence=sequence)
        applied = partition.append(part)
        total += len(applied.body)
        assert (applied.status, applied.base_offset, applied.append) == ("OK", expected, True)
        assert struct.unpack_from("<Q", applied.body, 16) == (expected,)
        assert struct.unpack_from("<Q", applied.body, 56) == (total,)
        if repeated:
            again = partition.append(part)
            assert (again.duplicate, again.base_offset, again.append) == (True, expected, False)
        expected += count
        sequence += count
    assert partition.struct.next_offset == expected
    assert partition.struct.cumulative_bytes == total


def test_replicas_with_the_same_log_have_the_same_bytes() -> None:
    one, other = Partition(segment_bytes=900), Partition(segment_bytes=900)
    for partition in (one, other):
        for index in range(12):
            partition.append(client_part(2, producer=b"p" * 16, sequence=2 * index, size=100))
        partition.fence(CLOSE, 7, 1, 1)
        partition.commit(7, 1, 4)
    assert one.log == other.log
    assert one.checkpoint() == other.checkpoint()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (COMMIT, words(1, 2)),
        (COMMIT, words(1, 2, 3, 4)),
        (IN_FLIGHT, b"\x02" + words(1, 2)[1:]),
        (CLOSE, words(1, 2, 3)[:-1]),
        (METER_CLOSE, b"\x01\x01" + words(1, 2, 3)[2:]),
        (BATCH, b"no batch"),
    ],
)
def test_a_body_of_the_wrong_shape_stops_the_group(kind: int, body: bytes) -> None:
    partition = Partition()
    result = ffi.new("struct partition_result *")
    buffer = ffi.new("uint8_t[]", body)
    status = lib.partition_apply(partition.struct, 1, kind, 1, buffer, len(body), result)
    assert name(status) == "OP_MALFORMED"
    assert partition.op == 0


def test_an_operation_of_a_later_release_stops_the_group() -> None:
    result = ffi.new("struct partition_result *")
    partition = Partition()
    status = lib.partition_apply(partition.struct, 1, 31, 1, ffi.new("uint8_t[8]"), 8, result)
    assert name(status) == "OP_UNKNOWN"


def test_append_times_must_grow() -> None:
    partition = Partition()
    partition.append(client_part(1), append_us=1000)
    stored = stored_batch(client_part(1), op=2, append_us=1000)
    result = ffi.new("struct partition_result *")
    buffer = ffi.new("uint8_t[]", stored)
    status = lib.partition_apply(partition.struct, 2, BATCH, 1000, buffer, len(stored), result)
    assert name(status) == "OP_MALFORMED"


def admitted(partition: Partition, part: bytes, principal: int = 16) -> CData:
    client = ffi.new("struct batch_client *")
    assert lib.batch_check_client(part, len(part), len(part), client) == 0
    admission: CData = lib.partition_admit_batch(partition.struct, client, principal)
    return admission


def test_admission_answers_a_durable_duplicate_without_the_journal() -> None:
    partition = Partition()
    part = client_part(4, producer=b"p" * 16)
    assert name(admitted(partition, part).status) == "OK"
    partition.append(part)
    again = admitted(partition, part)
    assert (name(again.status), again.duplicate, again.base_offset) == ("OK", 1, 0)


def test_the_segment_behind_the_last_is_refused_by_every_replica_alike() -> None:
    partition = Partition(Pools(segments=2 * SEGMENTS_MAX), segment_bytes=1)
    for _ in range(SEGMENTS_MAX - 1):
        partition.append(client_part(1))
    part = client_part(1, producer=b"p" * 16)
    following = client_part(1, producer=b"p" * 16, sequence=1)
    assert name(admitted(partition, part).status) == "OK"
    assert name(admitted(partition, following).status) == "OK"
    assert partition.append(part).status == "OK"
    refused = partition.append(following)
    assert (refused.status, refused.append) == ("SEGMENTS_FULL", False)
    assert name(admitted(partition, following).status) == "SEGMENTS_FULL"
    again = admitted(partition, part)
    assert (name(again.status), again.duplicate) == ("OK", 1)
    other = partition.restored()
    assert other.append(following).status == "SEGMENTS_FULL"
    assert partition.commit(1, 0, 7).status == "OK"


def test_the_last_segment_is_filled_before_a_batch_is_refused() -> None:
    partition = Partition(Pools(segments=16), segment_bytes=1000)
    while partition.struct.segments.count < 16:
        partition.append(client_part(1, size=400))
    while partition.pools.pools.segments.free_count == 0:
        part = client_part(1, size=400)
        if name(admitted(partition, part).status) != "OK":
            break
        assert partition.append(part).status == "OK"
    last = lib.partition_segment(partition.struct, 15)
    assert last.data_bytes >= 1000
    assert name(admitted(partition, client_part(1)).status) == "SEGMENT_POOL_FULL"


def test_the_last_chunk_is_promised_once() -> None:
    pools = Pools(segments=32)
    one, other = (Partition(pools, segment_bytes=1) for _ in range(2))
    for _ in range(16):
        one.append(client_part(1))
    assert name(admitted(one, client_part(1)).status) == "OK"
    assert name(admitted(other, client_part(1)).status) == "SEGMENT_POOL_FULL"
    assert one.append(client_part(1)).status == "OK"
    assert pools.pools.segments.reserved == 0


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(8, 900), st.booleans()), max_size=150),
    st.sampled_from([1, 700, 2000]),
)
def test_what_was_admitted_always_finds_a_chunk(
    history: list[tuple[int, int, bool]], segment_bytes: int
) -> None:
    pools = Pools(segments=48)
    partitions = [Partition(pools, segment_bytes=segment_bytes) for _ in range(3)]
    waiting: list[list[bytes]] = [[], [], []]
    for index, size, applies in history:
        part = client_part(1, size=size)
        if name(admitted(partitions[index], part).status) == "OK":
            waiting[index].append(part)
        if applies and waiting[index]:
            assert partitions[index].append(waiting[index].pop(0)).status == "OK"
        segments = pools.pools.segments
        assert segments.reserved <= segments.free_count
    for partition, parts in zip(partitions, waiting, strict=True):
        for part in parts:
            assert partition.append(part).status == "OK"
    assert pools.pools.segments.reserved == 0


def test_finding_says_where_the_log_begins_and_ends() -> None:
    partition = Partition()
    assert name(lib.partition_find(partition.struct, 0).status) == "NOT_FOUND"
    partition.append(client_part(5))
    assert name(lib.partition_find(partition.struct, 4).status) == "OK"
    assert name(lib.partition_find(partition.struct, 5).status) == "NOT_FOUND"
    assert name(lib.partition_find(partition.struct, 6).status) == "OFFSET_OUT_OF_RANGE"


# ---- checkpoints ----


def lived() -> Partition:
    """A partition with something in every part of its state."""
    partition = Partition(segment_bytes=1500)
    for index in range(20):
        producer = bytes([1 + index % 3]) * 16
        part = client_part(2, producer=producer, sequence=2 * (index // 3), size=100)
        assert partition.append(part, principal=16 + index % 2).status == "OK"
    partition.fence(CLOSE, 7, 1, 10)
    partition.commit(7, 1, 4)
    partition.in_flight(7, 1)
    partition.fence(FREEZE, 9, 5, 11)
    partition.apply(METER_CLOSE, words(1, partition.now_us + 1, 0))
    partition.append(client_part(1))
    return partition


def history(partition: Partition) -> list[Applied]:
    """Some more operations, and what they answered."""
    return [
        partition.append(client_part(2, producer=b"\x01" * 16, sequence=14, size=500)),
        partition.append(client_part(2, producer=b"\x02" * 16, sequence=12, size=500)),
        partition.commit(7, 1, 9),
        partition.in_flight(9, 5),
        partition.fence(CLOSE, 9, 5, 12),
        partition.apply(METER_CLOSE, words(2, partition.now_us + 60_000_000, 1)),
        *[partition.append(client_part(1, size=900)) for _ in range(5)],
    ]


def test_a_restored_partition_goes_on_as_if_nothing_had_happened() -> None:
    partition = lived()
    other = partition.restored()
    assert other.checkpoint() == partition.checkpoint()
    assert history(other) == history(partition)
    assert other.checkpoint() == partition.checkpoint()
    assert other.log == partition.log


def test_admissions_are_not_in_a_checkpoint() -> None:
    partition = lived()
    before = partition.checkpoint()
    assert name(admitted(partition, client_part(1, producer=b"q" * 16)).status) == "OK"
    assert partition.checkpoint() == before


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_checkpoint_is_refused_and_leaves_nothing_behind(data: st.DataObject) -> None:
    encoded = bytearray(lived().checkpoint())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert refused(bytes(encoded)) in {"CHECKPOINT_DAMAGED", "CHECKPOINT_VERSION"}


@settings(max_examples=60)
@given(st.data())
def test_a_checkpoint_with_a_sum_that_fits_is_still_not_trusted(data: st.DataObject) -> None:
    encoded = bytearray(lived().checkpoint())
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(16, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    struct.pack_into("<I", encoded, 4, lib.crc32c(bytes(encoded[8:]), len(encoded) - 8))
    assert refused(bytes(encoded)) in {"OK", "CHECKPOINT_DAMAGED", "NO_MEMORY"}


def test_a_checkpoint_that_is_cut_off_is_refused() -> None:
    encoded = lived().checkpoint()
    for size in (0, 15, 55, len(encoded) - 1):
        assert refused(encoded[:size]) == "CHECKPOINT_DAMAGED"


def refused(encoded: bytes) -> str:
    """What decoding says; afterwards the pools must be full again."""
    pools = Pools()
    partition = Partition(pools, segment_bytes=1500)
    status = lib.partition_checkpoint_decode(partition.struct, encoded, len(encoded))
    partition.deinit()
    assert pools.pools.producers.free_count == pools.pools.producers.count
    assert pools.pools.segments.free_count == pools.pools.segments.count
    return name(status)
