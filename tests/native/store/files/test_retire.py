"""retire.c: a partition whose topic is gone leaves, whole, whatever stands in its way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from native._engine_sim import lib
from tests.support.builders.storage import client_part
from tests.support.builders.store import TOPIC, Disk, Store, folder_of


def folder(partition: int = 0, topic: int = TOPIC) -> str:
    return folder_of(partition, topic=topic)


def opened(disk: Disk | None = None, *, topic: bool = True, **changes: int) -> Store:
    store = Store(disk or Disk(), topic=topic, metered=True, **changes)
    assert store.status == "OK", store.detail
    return store


def filled(store: Store, count: int = 5, *, partition: int = 0, size: int = 500) -> None:
    for _ in range(count):
        store.append(client_part(1, size=size), partition)
    store.run()


def groups(store: Store) -> int:
    """Without the metadata group."""
    return int(store.statistics().replicas_live) - 1


def test_the_floor_and_the_tombstone_are_durable_before_a_file_goes() -> None:
    disk = Disk()
    store = opened(disk)
    filled(store)
    assert store.tables(op=7, gone=True) == "OK"
    copies: list[Disk] = []
    while store.turn() or lib.store_work(store.store):
        copies.append(disk.copied())
    assert disk.listed(folder()) == []
    for copy in copies:
        if not copy.listed(folder()):
            copy.power_cut()
            after = opened(copy, topic=False)
            assert groups(after) == 0
            assert after.store != store.store


def test_a_topic_goes_though_the_ring_has_no_room() -> None:
    disk = Disk()
    store = opened(disk, prepares_bytes=1 << 18)
    disk.storage.disk_full = 1
    while not isinstance(store.produce(client_part(1, size=3000)), str):
        store.run()
    for partition in range(3):
        store.produce(client_part(1, size=100), partition)
    assert store.tables(op=7, gone=True) == "OK"
    store.run()
    assert groups(store) == 0
    assert disk.listed(folder()) == []


def test_deleting_on_a_full_disk_makes_room_for_others() -> None:
    disk = Disk()
    store = opened(disk, prepares_bytes=1 << 18)
    store.tables(topic=TOPIC + 1)
    disk.storage.disk_full = 1
    while not isinstance(store.produce(client_part(1, size=3000)), str):
        store.run()
    store.pass_time(600_000)
    refused = {store.produce(client_part(1), topic=TOPIC + 1) for _ in range(3)}
    assert refused <= {"BUSY", "STORAGE_FULL"} or all(isinstance(one, int) for one in refused)
    store.tables(op=7, gone=True)
    store.run()
    store.pass_time(600_000)
    token = store.produce(client_part(1), topic=TOPIC + 1)
    assert isinstance(token, int)
    assert store.wait(token).status == "OK"


@pytest.mark.parametrize("turns", range(30))
def test_a_checkpoint_on_its_way_does_not_bring_a_partition_back(turns: int) -> None:
    disk = Disk()
    store = opened(disk)
    filled(store)
    for partition in range(3):
        store.produce(client_part(1, size=2000), partition)
    lib.store_checkpoint_all(store.store)
    for _ in range(turns):
        store.turn()
    store.tables(op=7, gone=True)
    store.run()
    assert groups(store) == 0
    disk.crash()
    after = opened(disk, topic=False)
    assert groups(after) == 0
    assert [disk.listed(folder(partition)) for partition in range(3)] == [[], [], []]


def test_entries_appended_again_do_not_bring_a_partition_back() -> None:
    disk = Disk()
    store = opened(disk, inline_bytes=1, extents=6)
    store.tables(topic=TOPIC + 1)
    filled(store, 2)
    for index in range(200):
        while isinstance(store.produce(client_part(1, size=2500), topic=TOPIC + 1), str):
            store.turn()
        if index == 150:
            store.tables(op=7, gone=True)
        store.turn()
    store.run()
    assert groups(store) == 1
    disk.crash()
    after = opened(disk, topic=False, inline_bytes=1, extents=6)
    assert groups(after) == 1
    assert disk.listed(folder()) == []


def test_fetches_that_wait_are_told_when_the_topic_goes() -> None:
    store = opened()
    filled(store)
    store.advanced.clear()
    store.tables(op=7, gone=True)
    store.turn()
    assert store.advanced == [(TOPIC, 0)]
    assert store.read(5) == "TOPIC_NOT_FOUND"


def test_many_files_all_go() -> None:
    disk = Disk()
    store = opened(disk, segment_bytes=1, segments=1024)
    for _ in range(70):
        tokens = [store.produce(client_part(1, size=20)) for _ in range(7)]
        assert all(isinstance(token, int) for token in tokens)
        store.run()
    assert len(disk.listed(folder())) == 490
    store.tables(op=7, gone=True)
    store.run()
    assert disk.listed(folder()) == []
    assert groups(store) == 0


def test_the_next_partition_in_the_slot_has_its_own_files() -> None:
    disk = Disk()
    store = opened(disk, segment_bytes=2000)
    filled(store, 12)
    store.tables(op=7, gone=True)
    store.tables(op=8, topic=TOPIC + 1, segment_bytes=2000)
    kept = [client_part(1, size=300 + index) for index in range(12)]
    for part in kept:
        token = store.produce(part, topic=TOPIC + 1)
        assert isinstance(token, int)
        store.wait(token)
    store.run()
    disk.crash()
    after = opened(disk, topic=False)
    after.tables(topic=TOPIC + 1, segment_bytes=2000)
    assert groups(after) == 1
    assert disk.listed(folder()) == []
    assert len(disk.listed(folder(0, TOPIC + 1))) > 1


def test_descriptors_of_removed_partitions_serve_others() -> None:
    store = opened(segment_bytes=1, segments=1024)
    for round_ in range(8):
        store.tables(op=10 + round_, topic=100 + round_, segment_bytes=1)
        for _ in range(100):
            part = client_part(1, size=20)
            while isinstance(token := store.produce(part, topic=100 + round_), str):
                assert token == "BUSY"
                store.turn()
            store.wait(token)
        store.run()
        store.tables(op=10 + round_, topic=100 + round_, gone=True)
        store.run()
        assert groups(store) == 0


def test_a_failed_unlink_is_repeated_later_and_later_and_seen() -> None:
    disk = Disk()
    store = opened(disk)
    filled(store)
    disk.unlinks_fail = True
    store.tables(op=7, gone=True)
    store.run()
    failures = [int(store.statistics().removal_failures)]
    pauses_ms = [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
    for pause_ms in pauses_ms:
        assert lib.store_idle(store.store)
        store.pass_time(pause_ms * 1000 - 1)
        store.run()
        assert store.statistics().removal_failures == failures[-1]
        store.pass_time(1)
        store.run()
        failures.append(int(store.statistics().removal_failures))
    assert failures == list(range(1, len(failures) + 1))
    assert store.statistics().replicas_removing == groups(store) == 1
    assert store.produce(client_part(1)) == "TOPIC_NOT_FOUND"
    disk.unlinks_fail = False
    store.pass_time(60_000_000)
    store.run()
    assert store.statistics().replicas_removing == groups(store) == 0
    assert disk.listed(folder()) == []


def test_a_removal_that_fails_holds_nobody_up() -> None:
    disk = Disk()
    store = opened(disk)
    filled(store)
    store.tables(topic=TOPIC + 1)
    store.append(client_part(1), 1)
    disk.unlinks_fail = True
    store.tables(op=7, gone=True)
    store.run()
    assert groups(store) == 2
    token = store.produce(client_part(1), topic=TOPIC + 1)
    assert isinstance(token, int)
    assert store.wait(token).status == "OK"


def test_a_tombstone_outlives_its_extent_while_files_are_left() -> None:
    disk = Disk()
    store = opened(disk)
    filled(store)
    store.tables(topic=TOPIC + 1)
    disk.unlinks_fail = True
    store.tables(op=7, gone=True)
    store.run()
    for _ in range(300):
        while isinstance(store.produce(client_part(1, size=3000), topic=TOPIC + 1), str):
            store.turn()
    store.run()
    assert store.statistics().extents_released > 8
    assert disk.listed(folder()) != []
    disk.unlinks_fail = False
    disk.kill()
    assert disk.listed(folder()) != []
    after = opened(disk, topic=False)
    assert disk.listed(folder()) == []
    assert groups(after) == 1


def gone_and_replayed(disk: Disk) -> Store:
    """A start, as the host makes it: the rows of the snapshot, then the op that deleted one."""
    store = opened(disk)
    store.tables(topic=TOPIC + 1)
    store.tables(op=7, gone=True)
    lib.store_tables_complete(store.store, 7)
    store.run()
    return store


def only_the_rest(disk: Disk) -> Store:
    """A start whose snapshot is younger than the deletion."""
    store = opened(disk, topic=False)
    store.tables(topic=TOPIC + 1)
    lib.store_tables_complete(store.store, 7)
    store.run()
    return store


@pytest.mark.parametrize("start", [gone_and_replayed, only_the_rest])
@pytest.mark.parametrize("end", [Disk.kill, Disk.power_cut, Disk.crash])
def test_a_restart_at_any_point_goes_on(
    start: Callable[[Disk], Store], end: Callable[[Disk], None]
) -> None:
    disk = Disk()
    store = opened(disk, segment_bytes=1500)
    store.tables(topic=TOPIC + 1)
    filled(store, 8)
    filled(store, 3, partition=1)
    token = store.produce(client_part(1), topic=TOPIC + 1)
    assert isinstance(token, int)
    store.run()
    store.tables(op=7, gone=True)
    moments = 0
    while True:
        moments += 1
        copy = disk.copied()
        end(copy)
        after = start(copy)
        assert groups(after) == 1
        assert [copy.listed(folder(partition)) for partition in range(2)] == [[], []]
        if not store.turn() and not lib.store_work(store.store):
            break
    assert moments > 15


def test_a_number_above_all_known_ones_is_never_taken_for_deleted() -> None:
    disk = Disk()
    store = opened(disk)
    filled(store)
    disk.crash()
    after = opened(disk, topic=False)
    after.tables(topic=TOPIC - 1)
    lib.store_tables_complete(after.store, 7)
    after.run()
    assert groups(after) == 1
    assert disk.listed(folder()) != []
