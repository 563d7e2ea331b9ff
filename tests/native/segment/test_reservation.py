"""reservation.c, and segments that end for their age: the same on every replica, and there is
always room for what was reserved."""

from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import TIME, Partition, Pools, client_part, name, stored_batch

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


CHUNK = 16  # segments


def full_chunk(pools: Pools, segment_us: int) -> Partition:
    """A partition whose next segment needs another chunk."""
    partition = Partition(pools, segment_us=segment_us)
    for _ in range(CHUNK):
        partition.append(client_part(), append_us=partition.now_us + segment_us)
    assert len(partition.segments()) == CHUNK
    return partition


def admitted(partition: Partition, size_bytes: int, now_us: int) -> bool:
    """Promise room to a batch, if there is any."""
    segments = ffi.addressof(partition.struct, "segments")
    config = partition.config
    limit = {"bytes": config.limits.segment_bytes, "time_us": config.limits.segment_us}
    kept = ffi.new("struct segment_limit *", limit)
    if name(lib.segment_admit(segments, kept, size_bytes, now_us)) != "OK":
        return False
    lib.segment_reserve(segments, kept, size_bytes, now_us)
    return True


def test_a_segment_that_may_end_for_its_age_has_its_chunk_before_anybody_else() -> None:
    pools = Pools(segments=2 * CHUNK)
    old, young = full_chunk(pools, DAY_US), Partition(pools)
    stored = len(stored_batch(client_part(), op=1, append_us=1, principal=16))
    later_us = old.now_us + 3 * DAY_US
    assert admitted(old, stored, later_us)
    assert not admitted(young, stored, later_us), "the last chunk is reserved"
    assert old.append(client_part(), append_us=later_us).opened
    assert pools.pools.segments.reserved == 0


BATCH = st.tuples(st.booleans(), st.integers(1, 30), st.sampled_from([False] * 30 + [True]))


@settings(max_examples=60)
@given(st.lists(BATCH, min_size=40, max_size=90))
def test_what_was_promised_suffices_whenever_its_batches_come(
    batches: list[tuple[bool, int, bool]],
) -> None:
    """Two partitions share a small pool; batches are admitted, wait, and are applied later."""
    pools = Pools(segments=4 * CHUNK)
    both = [full_chunk(pools, 10) for _ in range(2)]
    stored = len(stored_batch(client_part(), op=1, append_us=1, principal=16))
    waiting: list[tuple[Partition, int]] = []
    now_us = max(each.now_us for each in both)
    for which, later_us, drain in [*batches, (False, 1, True)]:
        now_us += later_us
        if admitted(both[which], stored, now_us):
            waiting.append((both[which], now_us))
        if drain:
            for partition, at_us in waiting:
                assert partition.append(client_part(), append_us=at_us).status == "OK"
            waiting.clear()
    assert pools.pools.segments.reserved <= pools.pools.segments.free_count
