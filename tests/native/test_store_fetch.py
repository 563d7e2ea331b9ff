"""store_fetch.c and store_time.c over the simulated disk: what a reader gets from where."""

from tests.support.storage import client_part
from tests.support.store import Disk, Store

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
