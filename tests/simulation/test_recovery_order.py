"""What must be durable before what, one crash at a time: rules J3 and J7 over the C store.

The seeds of test_recovery.py cannot see these orders broken: with free extents to spare nobody
writes over one that was given back too early, and without damage a round that was synced is never
lost. Here the crash, the moment and the damage are chosen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from native._engine_sim import ffi, lib
from tests.simulation.test_storage_faults import BLOCK, rot, round_blocks, state
from tests.support.builders.storage import client_part
from tests.support.builders.store import Disk, Store

SECTOR = 512


def killed_between_write_and_sync(disk: Disk, partition: int = 0, size: int = 100) -> None:
    """A batch of each partition is acknowledged, another one's round is in the page cache only."""
    store = Store(disk)
    store.append(client_part(1), 0)
    store.append(client_part(1), 1)
    store.run()
    token = store.produce(client_part(1, size=size), partition)
    assert isinstance(token, int)
    lib.store_flush(store.store, store.now[0])
    assert token not in store.outcomes
    disk.kill()


@pytest.mark.parametrize("size", [100, 9000])
def test_what_recovery_read_in_the_page_cache_outlives_the_next_power_cut(size: int) -> None:
    disk = Disk()
    killed_between_write_and_sync(disk, size=size)
    after = Store(disk)
    served = after.log(0)
    assert len(served) == 2
    disk.power_cut()
    again = Store(disk)
    assert state(again, 0) == 1
    assert again.log(0) == served
    assert len(again.log(1)) == 1


def test_what_nobody_read_may_go_with_the_power() -> None:
    disk = Disk()
    killed_between_write_and_sync(disk)
    disk.power_cut()
    after = Store(disk)
    assert [state(after, partition) for partition in (0, 1)] == [1, 1]
    assert [len(after.log(partition)) for partition in (0, 1)] == [1, 1]


def test_recovery_ends_with_a_round_that_witnesses_what_it_read() -> None:
    disk = Disk()
    killed_between_write_and_sync(disk)
    last = round_blocks(disk)[-1]
    assert Store(disk).status == "OK"
    rot(disk, last[0])
    after = Store(disk)
    # A later round names whose it was: nobody else is stopped.
    assert state(after, 0) == 3
    assert len(after.log(1)) == 1


class Watch:
    """Looks at a store's counters after every step of a turn."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.checkpoints = 0
        self.released = 0
        self.checkpoint_lsn = 0

    def look(self) -> None:
        """An extent was given back: a round above the last checkpoint's is durable."""
        found = self.store.statistics()
        if found.checkpoints > self.checkpoints:
            self.checkpoint_lsn = max(lsn for _, lsn, _, _ in round_blocks(self.store.disk))
        if found.extents_released > self.released:
            durable = max(lsn for _, lsn, _, _ in round_blocks(self.store.disk))
            assert durable > self.checkpoint_lsn > 0
        self.checkpoints = found.checkpoints
        self.released = found.extents_released

    def turn(self) -> None:
        """A turn, looked at before and after its request completes."""
        lib.store_flush(self.store.store, self.store.now[0])
        self.look()
        self.store.turn()
        self.look()


def test_an_extent_is_given_back_only_behind_the_witness_of_its_checkpoints() -> None:
    store = Store(Disk())
    watch = Watch(store)
    for index in range(3000):
        if watch.released >= 12:
            break
        store.produce(client_part(1, size=3000), index % 2)
        watch.turn()
    assert watch.released >= 12


def snapshot(store: Store, text: bytes) -> None:
    """Two metadata ops, applied; the snapshot behind the second."""
    due, op, at = ffi.new("uint64_t *"), ffi.new("uint64_t *"), ffi.new("int64_t *")
    command, size = ffi.new("const uint8_t **"), ffi.new("size_t *")
    for index in range(2):
        body = struct.pack("<Q", index)
        assert lib.store_metadata_submit(store.store, body, len(body), store.token()) == 0
        store.run()
        assert lib.store_metadata_next(store.store, op, at, command, size)
        wanted = lib.store_metadata_snapshot_due(store.store, due)
        assert lib.store_metadata_applied(store.store, op[0], b"", 0) == 0
        if wanted:
            assert lib.store_metadata_snapshot(store.store, due[0], text, len(text)) == 0


def test_the_old_snapshot_stays_until_the_new_ones_entry_is_witnessed() -> None:
    disk = Disk()
    store = Store(disk, snapshot_ops=2)
    snapshot(store, b"first")
    store.run()
    assert store.statistics().checkpoints == 1
    snapshot(store, b"second")
    store.run(until=lambda: store.statistics().checkpoints == 2)
    while lib.sim_storage_step(disk.storage) != ffi.NULL:
        pass
    # The round of the new entry is the last, and goes bad: only the old entry is left.
    rot(disk, max(round_blocks(disk), key=lambda block: block[1])[0])
    after = Store(disk, snapshot_ops=2)
    assert after.status == "OK", after.detail
    op, last = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    data, size = ffi.new("const uint8_t **"), ffi.new("size_t *")
    lib.store_metadata_recovery(after.store, op, data, size, last)
    assert (op[0], bytes(ffi.buffer(data[0], size[0]))) == (2, b"first")


def test_damaged_metadata_hands_out_what_is_intact_at_every_start() -> None:
    disk = Disk()
    store = Store(disk)
    for index in range(3):
        body = struct.pack("<Q", index)
        assert lib.store_metadata_submit(store.store, body, len(body), store.token()) == 0
        store.run()
    last = max(round_blocks(disk), key=lambda block: block[1])
    store.append(client_part(1), 0)
    store.append(client_part(1), 0)
    rot(disk, last[0])
    for _ in range(3):
        after = Store(disk)
        assert after.status == "OK"
        found = []
        op, at = ffi.new("uint64_t *"), ffi.new("int64_t *")
        command, size = ffi.new("const uint8_t **"), ffi.new("size_t *")
        while lib.store_metadata_next(after.store, op, at, command, size):
            found.append(op[0])
            assert lib.store_metadata_applied(after.store, op[0], b"", 0) == 0
        assert found == [1, 2]
        assert lib.store_metadata_submit(after.store, b"x" * 8, 8, after.token()) != 0
        assert len(after.log(0)) == 2


def contents_of(disk: Disk, at: int) -> Iterator[bytes]:
    """What a block of the journal durably holds before each request of the next start."""
    points = 0
    while True:
        copy = disk.copied()
        copy.storage.crash_at = copy.storage.requests + points + 1
        if Store(copy, topic=False).status == "OK":
            return
        points += 1
        copy.power_cut()
        yield copy.read("journal")[at : at + BLOCK]


@pytest.mark.parametrize("sector", range(8))
def test_a_round_torn_over_a_torn_round_is_cut_as_well(sector: int) -> None:
    disk = Disk()
    killed_between_write_and_sync(disk)
    at = round_blocks(disk)[-1][0]
    # As if the power had gone in the middle of it: the first of its sectors was not written.
    disk.poke("journal", at, bytes(SECTOR))
    contents = list(contents_of(disk, at))
    assert Store(disk, topic=False).status == "OK"
    witness = disk.read("journal")[at : at + BLOCK]
    remains = [content for content in contents if content != witness][-1]
    # As if it had gone in the witness round of that start, too: all sectors are new but one.
    start = sector * SECTOR
    disk.poke("journal", at + start, remains[start : start + SECTOR])
    after = Store(disk)
    assert [state(after, partition) for partition in (0, 1)] == [1, 1]
    assert [len(after.log(partition)) for partition in (0, 1)] == [1, 1]
