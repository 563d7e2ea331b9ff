"""trim.c, retention.c, trim.c: where a log begins, against a small model."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import (
    PURGE,
    SEAL,
    SET_HOLD,
    SIZE,
    TIME,
    TRIM,
    Partition,
    Pools,
    client_part,
    name,
    words,
)

EVENTS_MAX = 8
DAY_US = 86_400_000_000


def filled(count: int = 10, *, segment_bytes: int = 1, pools: Pools | None = None) -> Partition:
    """``count`` batches of two records each; by default each in a segment of its own."""
    partition = Partition(pools, segment_bytes=segment_bytes)
    for _ in range(count):
        assert partition.append(client_part(2, size=100)).status == "OK"
    return partition


def test_a_trim_takes_whole_segments_and_leaves_its_event() -> None:
    partition = filled()
    gone = [lib.partition_segment(partition.struct, index) for index in range(3)]
    size = sum(segment.data_bytes for segment in gone)
    times = (gone[0].min_time_us, gone[2].max_time_us)
    applied = partition.trim(6, cause=TIME, policy=9)
    assert (applied.status, applied.trimmed, applied.base_offset) == ("OK", True, 6)
    assert partition.segments()[0] == (6, 8)
    (event,) = partition.events()
    assert (event.sequence, event.trim_op, event.policy_version) == (1, partition.op, 9)
    assert (event.from_offset, event.to_offset, event.cause) == (0, 6, TIME)
    assert (event.bytes, event.records, event.segments) == (size, 6, 3)
    assert (event.min_time_us, event.max_time_us) == times
    assert event.trimmed_at_us == partition.now_us
    assert name(lib.partition_find(partition.struct, 5).status) == "TRUNCATED"
    assert name(lib.partition_find(partition.struct, 6).status) == "OK"


def test_a_segment_that_is_cut_counts_with_the_trim_that_takes_the_rest() -> None:
    partition = filled(6, segment_bytes=1000)
    (base, end), *_ = partition.segments()
    assert base == 0
    assert partition.trim(end - 1).trimmed
    assert partition.trim(end).trimmed
    cut, rest = partition.events()
    assert (cut.bytes, cut.records, cut.segments, cut.min_time_us) == (0, 0, 0, 0)
    assert (rest.from_offset, rest.to_offset, rest.records) == (end - 1, end, end)


def test_a_log_that_is_trimmed_to_its_end_goes_on() -> None:
    partition = filled(5, segment_bytes=1 << 20)
    assert partition.trim(10).trimmed
    assert partition.segments() == []
    restored = partition.restored()
    for one in (partition, restored):
        applied = one.append(client_part(1))
        assert (applied.base_offset, applied.segment, applied.opened) == (10, 10, True)
        assert not applied.sealed
    assert restored.checkpoint() == partition.checkpoint()


@pytest.mark.parametrize(
    ("log_start", "status", "expected"),
    [(21, "OFFSET_BEYOND_END", 20), (0, "TRIM_BELOW", 0), (4, "TRIM_BELOW", 0)],
)
def test_a_start_goes_only_up_and_never_beyond_the_end(
    log_start: int, status: str, expected: int
) -> None:
    partition = filled()
    partition.trim(4)
    refused = partition.trim(log_start)
    assert (refused.status, refused.expected, refused.trimmed) == (status, expected, False)
    assert (partition.struct.log_start, len(partition.events())) == (4, 1)


def test_a_sealed_log_is_not_trimmed() -> None:
    partition = filled()
    partition.apply(SEAL, words(77))
    assert partition.trim(4).status == "CLOSED"
    assert partition.hold(78).status == "OK"


# ---- holds ----


def test_what_is_held_stays_until_it_is_released() -> None:
    partition = filled()
    assert partition.hold(100, from_offset=6).status == "OK"
    refused = partition.trim(8)
    assert (refused.status, refused.expected) == ("HELD", 6)
    assert partition.trim(6).trimmed
    assert partition.hold(101, held=False).status == "OK"
    assert partition.trim(8).trimmed


def test_a_delayed_release_of_an_earlier_hold_changes_nothing() -> None:
    partition = filled()
    partition.hold(100)
    partition.hold(101, held=False)
    partition.hold(102)
    assert partition.hold(101, held=False).status == "STALE_INTENT"
    assert partition.trim(2).status == "HELD"
    assert partition.hold(102).status == "OK"
    assert partition.restored().trim(2).status == "HELD"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (TRIM, words(1, 0, 0, 0)),
        (TRIM, words(1, 4, 0, 0)),
        (TRIM, words(1, 1, 0)),
        (SET_HOLD, words(0, 1, 0)),
        (SET_HOLD, words(1, 2, 0)),
        (SET_HOLD, words(1, 0, 5)),
    ],
)
def test_a_body_that_no_release_writes_stops_the_group(kind: int, body: bytes) -> None:
    partition = filled(2)
    result = ffi.new("struct partition_result *")
    buffer = ffi.new("uint8_t[]", body)
    status = lib.partition_apply(
        partition.struct, partition.op + 1, kind, 1, buffer, len(body), result
    )
    assert name(status) == "OP_MALFORMED"


# ---- events ----


def test_nothing_is_removed_while_its_event_would_have_no_place() -> None:
    partition = filled(12)
    for index in range(EVENTS_MAX):
        assert partition.trim(index + 1).trimmed
    assert partition.trim(20).status == "TRIMS_FULL"
    assert partition.trim(20, acked=3).trimmed
    assert [event.sequence for event in partition.events()] == [4, 5, 6, 7, 8, 9]


def test_an_ack_is_heard_here_and_honoured_by_the_log() -> None:
    partition = filled()
    for log_start in (2, 4, 6):
        partition.trim(log_start)
    before = partition.checkpoint()
    lib.retention_ack(ffi.addressof(partition.struct, "retention"), 2)
    assert [event.sequence for event in partition.events()] == [3]
    assert partition.checkpoint() == before
    assert partition.trim(1, acked=2).status == "TRIM_BELOW"
    assert partition.struct.retention.events_count == 1


# ---- the model ----


@dataclass
class Model:
    """What trims and holds may do."""

    log_start: int = 0
    end: int = 0
    intent: int = 0
    held_from: int | None = None
    events: list[tuple[int, int]] = field(default_factory=list)
    acked: int = 0

    def trim(self, log_start: int, acked: int) -> str:
        self.acked = max(self.acked, min(acked, len(self.events)))
        if log_start > self.end:
            return "OFFSET_BEYOND_END"
        if log_start <= self.log_start:
            return "TRIM_BELOW"
        if self.held_from is not None and log_start > self.held_from:
            return "HELD"
        if len(self.events) - self.acked == EVENTS_MAX:
            return "TRIMS_FULL"
        self.events.append((self.log_start, log_start))
        self.log_start = log_start
        return "OK"

    def hold(self, intent: int, held_from: int | None) -> str:
        if intent < self.intent:
            return "STALE_INTENT"
        self.intent, self.held_from = intent, held_from
        return "OK"


steps = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4), st.just(0)),
    st.tuples(st.just("trim"), st.integers(0, 60), st.integers(0, 12)),
    st.tuples(st.just("hold"), st.integers(1, 9), st.integers(0, 60)),
    st.tuples(st.just("release"), st.integers(1, 9), st.just(0)),
    st.tuples(st.just("restart"), st.just(0), st.just(0)),
)


@settings(max_examples=200)
@given(st.lists(steps, max_size=50), st.sampled_from([1, 700, 100_000]))
def test_trims_and_holds_follow_the_model(
    history: list[tuple[str, int, int]], segment_bytes: int
) -> None:
    model, partition = Model(), Partition(segment_bytes=segment_bytes)
    for what, first, second in history:
        if what == "append":
            partition.append(client_part(first, size=100))
            model.end += first
        elif what == "trim":
            assert partition.trim(first, acked=second).status == model.trim(first, second)
        elif what == "hold":
            status = partition.hold(first, from_offset=second).status
            assert status == model.hold(first, second)
        elif what == "release":
            assert partition.hold(first, held=False).status == model.hold(first, None)
        else:
            partition = partition.restored()
        assert partition.struct.log_start == model.log_start
        found = [(event.from_offset, event.to_offset) for event in partition.events()]
        assert found == model.events[model.acked :]
        segments = partition.segments()
        assert all(end > model.log_start for _, end in segments)
        assert partition.struct.segments.chunks.used == -(-len(segments) // 16)


# ---- chunks ----


def test_what_a_trim_gave_back_is_kept_for_a_replay_until_a_checkpoint_has_it() -> None:
    pools = Pools(segments=48)
    one = filled(32, pools=pools)
    other = Partition(pools, segment_bytes=1)
    one.trim(64)
    assert pools.pools.segments.free_count == 3
    segments = ffi.addressof(one.struct, "segments")
    for _ in range(16):
        assert admit(other) == "OK"
        assert other.append(client_part(1)).status == "OK"
    assert admit(other) == "SEGMENT_POOL_FULL"
    lib.segment_checkpoint_begun(segments)
    assert admit(other) == "SEGMENT_POOL_FULL"
    lib.segment_checkpoint_done(segments)
    assert admit(other) == "OK"


def admit(partition: Partition) -> str:
    """What a batch that begins a segment is told."""
    segments = ffi.addressof(partition.struct, "segments")
    limit = ffi.new("struct segment_limit *", {"bytes": 1})
    return name(lib.segment_admit(segments, limit, 200, 0))


def test_pools_are_whole_again_after_all_partitions_went() -> None:
    pools = Pools(segments=48)
    one = filled(20, pools=pools)
    one.trim(10)
    one.deinit()
    segments = pools.pools.segments
    assert (segments.free_count, segments.reserved) == (segments.count, 0)


# ---- what is due ----


def due(
    partition: Partition, now_us: int, *, time_us: int = 0, size: int = 0, young_us: int = 0
) -> tuple[int, int, int, int]:
    """(log start or 0, cause, when to look again, bytes held)."""
    policy = ffi.new(
        "struct partition_policy *",
        {"time_us": time_us, "bytes": size, "time_us_min": young_us, "version": 4},
    )
    found = lib.partition_retention_due(partition.struct, policy, now_us)
    start = found.trim.log_start if found.due else 0
    return start, found.trim.cause, found.next_us, found.held_bytes


def aged() -> Partition:
    """Five segments of two records, a day apart, the last one a moment ago."""
    partition = Partition(segment_bytes=1)
    for _ in range(5):
        partition.append(client_part(2, size=100), append_us=partition.now_us + DAY_US)
    return partition


def test_time_takes_what_is_old_and_names_the_next() -> None:
    partition = aged()
    now_us = partition.now_us
    assert due(partition, now_us, time_us=2 * DAY_US) == (6, TIME, now_us + DAY_US, 0)
    assert due(partition, now_us, time_us=9 * DAY_US) == (0, 0, now_us + 5 * DAY_US, 0)
    assert due(partition, now_us) == (0, 0, 0, 0)


def test_time_takes_the_active_segment_of_a_log_that_nobody_writes_to() -> None:
    partition = aged()
    assert due(partition, partition.now_us + DAY_US, time_us=DAY_US)[:2] == (10, TIME)


def test_size_leaves_at_least_what_is_kept_and_never_takes_the_young() -> None:
    partition = aged()
    each = lib.partition_segment(partition.struct, 0).data_bytes
    now_us = partition.now_us
    assert due(partition, now_us, size=3 * each)[:2] == (4, SIZE)
    assert due(partition, now_us, size=3 * each + 1)[:2] == (2, SIZE)
    assert due(partition, now_us, size=1)[:2] == (8, SIZE)
    young = due(partition, now_us, size=3 * each, young_us=5 * DAY_US)
    assert young == (0, 0, now_us + DAY_US, 0)


def test_a_trim_has_one_cause_and_the_rest_comes_at_once() -> None:
    partition = aged()
    each = lib.partition_segment(partition.struct, 0).data_bytes
    now_us = partition.now_us
    first = due(partition, now_us, time_us=3 * DAY_US, size=2 * each)
    assert first == (4, TIME, now_us, 0)
    partition.trim(4, cause=TIME)
    assert due(partition, now_us, time_us=3 * DAY_US, size=2 * each)[:2] == (6, SIZE)


def test_what_is_held_is_counted_and_not_proposed() -> None:
    partition = aged()
    each = lib.partition_segment(partition.struct, 0).data_bytes
    partition.hold(50, from_offset=2)
    start, _, _, held = due(partition, partition.now_us, time_us=2 * DAY_US)
    assert (start, held) == (2, 2 * each)
    partition.trim(2, cause=PURGE)
    assert due(partition, partition.now_us, time_us=2 * DAY_US)[::3] == (0, 2 * each)
