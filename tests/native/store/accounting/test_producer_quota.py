"""producer_quota.c: one tenant cannot fill the shard's table of producers, and nobody for ever."""

from __future__ import annotations

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import EXPIRE, Partition, client_part
from tests.support.builders.store import EXTENT_BYTES, TOPIC, Disk, Store

OTHER = TOPIC + 1
HOUR_US = 3_600_000_000
SERVER_HEADER_BYTES = 96


def opened(disk: Disk | None = None) -> Store:
    store = Store(disk or Disk(), producers=64)
    assert store.status == "OK", store.detail
    store.tables(topic=OTHER, organization=2)
    return store


def produce(store: Store, number: int, *, topic: int = TOPIC, sequence: int = 0) -> str:
    part = client_part(1, producer=number.to_bytes(16, "big"), sequence=sequence)
    token = store.produce(part, topic=topic)
    return token if isinstance(token, str) else store.wait(token).status


def filled(store: Store, *, topic: int = TOPIC, first: int = 1) -> int:
    """How many new producers were taken before one was refused for its organization's share."""
    for count in range(65):
        if (status := produce(store, first + count, topic=topic)) != "OK":
            assert status == "PRODUCERS_SHARE"
            return count
    raise AssertionError("nobody was refused")


def test_alone_an_organization_gets_half_and_the_next_half_of_the_rest() -> None:
    store = opened()
    assert filled(store) == 32
    assert filled(store, topic=OTHER, first=100) == 16
    assert store.statistics().refused_producers_share == 2
    assert produce(store, 5, sequence=1) == "OK"  # known: takes no room


def test_shares_are_counted_after_a_restart_too() -> None:
    disk = Disk()
    before = opened(disk)
    filled(before)
    disk.crash()
    after = opened(disk)
    assert produce(after, 99) == "PRODUCERS_SHARE"
    assert produce(after, 99, topic=OTHER) == "OK"


def test_silent_producers_make_room_by_an_operation_of_their_own_log() -> None:
    disk = Disk()
    store = opened(disk)
    filled(store)
    store.pass_time(HOUR_US - 60_000_000)
    store.run()
    assert produce(store, 99) == "PRODUCERS_SHARE"
    assert produce(store, 7, sequence=1) == "OK"
    store.pass_time(60_001_000)
    store.run()
    store.pass_time(1)
    store.run()
    assert store.statistics().producers_used == 1
    assert produce(store, 99) == "OK"
    assert produce(store, 7, sequence=2) == "OK"
    assert produce(store, 8, sequence=1) == "SESSION_EXPIRED"
    disk.crash()
    after = opened(disk)
    assert after.statistics().producers_used == 2


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="A partition forgets a producer behind 256 newer ones, and its first batch looks new.",
)
def test_a_repeated_first_batch_is_stored_once_however_many_producers_came_between() -> None:
    store = Store(Disk(), producers=4096, extents=12, extent_bytes=4 * EXTENT_BYTES)
    assert produce(store, 1) == "OK"
    first = store.log()[0][SERVER_HEADER_BYTES:]
    for number in range(lib.PARTITION_PRODUCERS_MAX):
        assert produce(store, 2 + number) == "OK"
    produce(store, 1)  # answered as a duplicate, or refused
    assert [batch[SERVER_HEADER_BYTES:] for batch in store.log()].count(first) == 1


def test_nobody_is_woken_while_there_is_room() -> None:
    store = opened()
    for number in range(20):
        assert produce(store, number + 1) == "OK"
    store.pass_time(2_000_000)
    store.run()  # the window's close
    entries = store.statistics().entries
    for _ in range(5):
        store.pass_time(HOUR_US)
        store.run()
    assert store.statistics().entries == entries


def test_nothing_expires_while_the_clock_is_not_believed() -> None:
    store = opened()
    filled(store)
    store.now.wall_us += 2 * HOUR_US
    store.pass_time(1)
    store.run()
    assert store.statistics().producers_used == 32
    assert produce(store, 8, sequence=1) == "OK"


def test_the_operations_own_time_bounds_what_is_forgotten() -> None:
    partition = Partition()
    begin = partition.now_us
    for number in (1, 2):
        part = client_part(1, producer=number.to_bytes(16, "big"), sequence=0)
        partition.append(part, append_us=begin + number * HOUR_US)
    body = ffi.new("uint8_t[16]")
    lib.partition_encode_expire(ffi.new("struct partition_expire *", [begin * 2]), body)
    partition.apply(EXPIRE, bytes(body), append_us=begin + 3 * HOUR_US - 1)
    assert partition.struct.producers.remembered_count == 1
    partition.apply(EXPIRE, bytes(body), append_us=begin + 3 * HOUR_US)
    assert partition.struct.producers.remembered_count == 0
