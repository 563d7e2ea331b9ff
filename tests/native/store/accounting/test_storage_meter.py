"""storage_meter.c: byte-seconds are what was stored times how long, to the last one."""

from __future__ import annotations

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import client_part
from tests.support.builders.store import REVISION, TOPIC, Disk, Store

SECOND_US = 1_000_000
SEGMENT = 1500


def told(store: Store, *, all_rows: bool = True) -> list[tuple[int, int, int]]:
    """(topic, delta, cumulative) of a window that ends now."""
    row = ffi.new("struct engine_counter *")
    end_us = int(lib.store_window_us(store.store))
    found = []
    lib.store_stored_turn(store.store)
    while lib.store_stored_next(store.store, all_rows, 0, end_us, row):
        assert row.meter == lib.ENGINE_METER_STORED_BYTE_SECONDS
        assert row.window_start_us < end_us
        found.append((row.topic, row.delta, row.cumulative))
    return found


def held(store: Store) -> int:
    """What the accounts say that the topic stores."""
    return int(lib.store_stored_bytes(store.store, TOPIC, REVISION))


def size_of(store: Store) -> int:
    """What its segments hold."""
    return sum(int(store.state(partition).bytes) for partition in range(4))


def fill(store: Store, count: int, partition: int = 0) -> None:
    for _ in range(count):
        store.append(client_part(1, size=600), partition)
    store.run()


def test_an_integral_rises_with_bytes_and_time_and_is_told_once() -> None:
    store = Store(Disk())
    fill(store, 3)
    fill(store, 2, partition=1)
    size = size_of(store)
    assert held(store) == size > 0
    store.pass_time(10 * SECOND_US)
    assert told(store) == [(TOPIC, 10 * size, 10 * size)]
    assert told(store) == []
    # What changed is told at the next window, what only grew after a minute or when all is.
    store.pass_time(10 * SECOND_US)
    assert told(store, all_rows=False) == []
    store.pass_time(51 * SECOND_US)
    assert told(store, all_rows=False) == [(TOPIC, 61 * size, 71 * size)]
    store.pass_time(SECOND_US)
    fill(store, 1)
    store.pass_time(2 * SECOND_US)
    more = 2 * size_of(store) + size
    assert told(store, all_rows=False) == [(TOPIC, more, 71 * size + more)]


def test_less_than_a_byte_second_is_carried_on() -> None:
    store = Store(Disk())
    fill(store, 1)
    size, passed_ms, sum_told = held(store), 0, 0
    for step_ms in [1, 7, 3, 500, 489]:
        store.pass_time(step_ms * 1000)
        passed_ms += step_ms
        sum_told += sum(delta for _, delta, _ in told(store))
        assert sum_told == size * passed_ms // 1000
    assert sum_told == size


def test_what_a_trim_takes_costs_nothing_any_more() -> None:
    store = Store(Disk(), segment_bytes=SEGMENT)
    fill(store, 8)
    before = held(store)
    store.pass_time(SECOND_US)
    store.purge(0)
    store.run()
    assert held(store) == size_of(store) == 0
    store.pass_time(100 * SECOND_US)
    assert told(store) == [(TOPIC, before, before)]
    fill(store, 1)
    store.pass_time(SECOND_US)
    assert told(store) == [(TOPIC, held(store), before + held(store))]


@pytest.mark.parametrize("how", ["power_cut", "kill"])
def test_a_start_finds_what_is_stored_and_begins_to_count_anew(how: str) -> None:
    disk = Disk()
    store = Store(disk)
    fill(store, 5)
    store.pass_time(10 * SECOND_US)
    size = held(store)
    getattr(disk, how)()
    store = Store(disk)
    assert held(store) == size_of(store) == size
    store.pass_time(3 * SECOND_US)
    assert told(store) == [(TOPIC, 3 * size, 3 * size)]


def test_a_deleted_topic_pays_up_to_its_deletion_and_its_successor_for_itself() -> None:
    store = Store(Disk())
    fill(store, 2)
    size = held(store)
    store.pass_time(4 * SECOND_US)
    assert store.tables(op=REVISION + 1, gone=True) == "OK"
    store.pass_time(9 * SECOND_US)
    store.run()
    assert told(store) == [(TOPIC, 4 * size, 4 * size)]
    assert store.tables(op=REVISION + 2, topic=TOPIC + 1, revision=REVISION + 2) == "OK"
    token = store.produce(client_part(1, size=600), topic=TOPIC + 1, revision=REVISION + 2)
    assert isinstance(token, int)
    store.wait(token)
    store.pass_time(SECOND_US)
    ((topic, delta, _),) = told(store)
    assert (topic, delta) == (
        TOPIC + 1,
        lib.store_stored_bytes(store.store, TOPIC + 1, REVISION + 2),
    )


def test_topics_come_and_go_and_their_accounts_with_them() -> None:
    store = Store(Disk(), topic=False)
    for number in range(TOPIC, TOPIC + 100):
        assert store.tables(op=number, topic=number, revision=number) == "OK"
        token = store.produce(client_part(1, size=600), topic=number, revision=number)
        assert isinstance(token, int), token
        store.wait(token)
        store.pass_time(SECOND_US)
        size = lib.store_stored_bytes(store.store, number, number)
        assert told(store) == [(number, size, size)]
        assert store.tables(op=number, topic=number, revision=number, gone=True) == "OK"
        store.run()
        assert told(store) == []


def test_more_topics_than_accounts_are_nobodys_and_counted() -> None:
    store = Store(Disk(), topic=False)
    total = 0
    for number in range(TOPIC, TOPIC + 60):
        # Never told, so never forgotten.
        assert store.tables(op=number, topic=number, revision=number) == "OK"
        token = store.produce(client_part(1, size=600), topic=number, revision=number)
        assert isinstance(token, int), token
        store.wait(token)
        size = int(store.state_of(number, number).bytes)
        store.pass_time(SECOND_US)
        total += size
        assert store.tables(op=number, topic=number, revision=number, gone=True) == "OK"
        store.run()
    rows = told(store)
    assert sum(delta for _, delta, _ in rows) == total
    assert [topic for topic, _, _ in rows].count(0) == 1
    statistics = ffi.new("struct store_statistics *")
    lib.store_statistics(store.store, statistics)
    assert statistics.stored_unattributed > 0


def test_a_topic_of_the_system_stores_for_nothing() -> None:
    store = Store(Disk(), metered=False)
    fill(store, 3)
    store.pass_time(10 * SECOND_US)
    assert told(store) == []


def test_what_was_prepared_before_its_topic_went_is_paid_for_by_none() -> None:
    store = Store(Disk())
    fill(store, 3)
    token = store.produce(client_part(1, size=600), 0)
    assert isinstance(token, int)
    assert store.tables(op=9, gone=True) == "OK"
    assert held(store) == 0
    store.run(until=lambda: store.statistics().produce_batches == 4)
    assert held(store) == 0
