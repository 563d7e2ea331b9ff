"""segment_promise.c, and segments that end for their age: the same on every replica, and there is
always room for what was promised."""

from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.storage import TIME, Partition, Pools, client_part, name, stored_batch

DAY_US = 86_400_000_000


def test_a_segment_ends_when_a_batch_comes_too_long_after_its_first() -> None:
    partition = Partition(segment_us=DAY_US)
    begin_us = partition.now_us
    for later_us in (0, DAY_US - 1, DAY_US, DAY_US + 1, 3 * DAY_US):
        partition.append(client_part(), append_us=begin_us + 1 + later_us)
    assert partition.segments() == [(0, 2), (2, 4), (4, 5)]
    # Decided by what is in the log: a replay and a checkpoint come to the same files.
    other = Partition(segment_us=DAY_US)
    for at, later_us in enumerate((0, DAY_US - 1, DAY_US)):
        other.append(client_part(), append_us=begin_us + 1 + later_us)
        assert other.op == at + 1
    restored = other.restored()
    for later_us in (DAY_US + 1, 3 * DAY_US):
        restored.append(client_part(), append_us=begin_us + 1 + later_us)
    assert restored.checkpoint() == partition.checkpoint()
    assert restored.log.files == partition.log.files


def test_a_trickle_is_trimmed_in_time_however_large_its_segment_may_be() -> None:
    partition, trims = Partition(segment_us=DAY_US // 8), 0
    for _ in range(100):
        partition.append(client_part(), append_us=partition.now_us + DAY_US // 20)
        policy = ffi.new("struct partition_policy *", {"time_us": DAY_US, "version": 4})
        found = lib.partition_retention_due(partition.struct, policy, partition.now_us)
        if found.due:
            partition.trim(found.trim.log_start, cause=TIME, acked=trims)
            trims += 1
        oldest = lib.partition_segment(partition.struct, 0).min_time_us
        assert partition.now_us - oldest <= DAY_US + DAY_US // 8 + DAY_US // 20
    assert partition.struct.log_start > 0


def test_a_partition_with_many_segments_begins_none_for_its_age() -> None:
    partition = Partition(segment_us=1)
    for _ in range(lib.SEGMENT_AGED_COUNT_MAX + 10):
        partition.append(client_part(), append_us=partition.now_us + DAY_US)
    assert len(partition.segments()) == lib.SEGMENT_AGED_COUNT_MAX


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.integers(40, 400), st.booleans()), min_size=1, max_size=80
    ),
    st.integers(0, 60),
    st.integers(100, 2000),
)
def test_what_was_promised_suffices_whenever_its_batches_come(
    batches: list[tuple[int, int, bool]], segment_us: int, segment_bytes: int
) -> None:
    """Two partitions share a small pool; batches are admitted, wait, and are applied later."""
    pools = Pools(segments=64)
    both = [Partition(pools, segment_bytes=segment_bytes, segment_us=segment_us) for _ in range(2)]
    limit = ffi.new("struct segment_limit *", {"bytes": segment_bytes, "time_us": segment_us})
    waiting: list[tuple[int, bytes, int]] = []
    now_us = both[0].now_us
    for later_us, size, drain in batches:
        now_us += later_us
        which = size % 2
        part = client_part(size=size)
        segments = ffi.addressof(both[which].struct, "segments")
        stored = len(stored_batch(part, op=1, append_us=now_us, principal=16))
        if name(lib.segment_admit(segments, limit, stored, now_us)) == "OK":
            lib.segment_promise(segments, limit, stored, now_us)
            waiting.append((which, part, now_us))
        if drain:
            for index, each, at_us in waiting:
                assert both[index].append(each, append_us=at_us).status == "OK"
            waiting.clear()
    for index, each, at_us in waiting:
        assert both[index].append(each, append_us=at_us).status == "OK"
    assert pools.pools.segments.promised <= pools.pools.segments.free_count
