"""fetch.c and time_search.c over the simulated disk: what a reader gets from where."""

import itertools

from native._engine_sim import ffi, lib
from tests.support.builders.storage import client_part
from tests.support.builders.store import Disk, Store

FETCH_BATCHES_MAX = 64


def applied(store: Store, count: int) -> None:
    """So many batches of two records, none of them in a file yet."""
    tokens = [store.produce(client_part(2)) for _ in range(count)]
    store.run(until=lambda: all(token in store.outcomes for token in tokens))


def test_more_batches_in_memory_than_one_fetch_takes_come_one_fetch_after_the_other() -> None:
    store = Store(Disk())
    applied(store, 3 * FETCH_BATCHES_MAX + 5)
    offset = 0
    counts = []
    while True:
        found = store.fetch(offset)
        assert found.status == 0
        if found.place == 0:
            break
        assert found.place == 1
        counts.append(found.batches_count)
        offset += 2 * found.batches_count
    assert offset == 2 * (3 * FETCH_BATCHES_MAX + 5)
    assert counts == [FETCH_BATCHES_MAX] * 3 + [5]


def time_find(store: Store, time_us: int) -> tuple[int, int]:
    """(answer, offset)."""
    found = ffi.new("struct store_time *")
    lib.store_time_find(store.store, store.id(), time_us, found)
    assert found.status == 0
    return found.answer, found.offset


def test_a_time_leads_to_a_segments_begin_or_to_a_batch_not_after_it() -> None:
    store = Store(Disk(), segment_bytes=4096)
    outcomes = [store.append(client_part(2, size=400)) for _ in range(40)]
    store.run()
    begins = set()
    for before, outcome in itertools.pairwise([outcomes[0], *outcomes]):
        for time_us in (before.append_time_us + 1, outcome.append_time_us):
            answer, offset = time_find(store, min(time_us, outcome.append_time_us))
            if answer == lib.STORE_TIME_FOUND:
                assert offset == outcome.base_offset
                begins.add(offset)
            else:
                assert answer == lib.STORE_TIME_WALK
                assert offset < outcome.base_offset
    assert len(begins) > 5
    assert time_find(store, 0) == (lib.STORE_TIME_FOUND, 0)
    assert time_find(store, outcomes[-1].append_time_us + 1) == (lib.STORE_TIME_NONE, 80)


def test_a_walk_finds_the_first_batch_that_late_and_nothing_before_the_logs_start() -> None:
    store = Store(Disk())
    outcomes = [store.append(client_part(2)) for _ in range(9)]
    data = store.read(0)
    assert isinstance(data, bytes)
    found = ffi.new("struct store_time *")
    for index, outcome in enumerate(outcomes):
        assert lib.store_time_scan(data, len(data), outcome.append_time_us, found) == 1
        assert (found.offset, found.append_time_us) == (2 * index, outcome.append_time_us)
    assert lib.store_time_scan(data, len(data), outcomes[-1].append_time_us + 1, found) == 0
    found.log_start = 7
    assert lib.store_time_scan(data, len(data), outcomes[3].append_time_us, found) == 1
    assert found.offset == 7
