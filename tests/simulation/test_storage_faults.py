"""Damage to bytes that were durable: told apart from torn writes, named, remembered, contained."""

from __future__ import annotations

import pytest

from native._engine_sim import ffi, lib
from tests.support.storage import client_part
from tests.support.store import EXTENT_BYTES, FILE_HEADER_BYTES, REVISION, TOPIC, Disk, Store

BLOCK = 4096
DAMAGED = 3


def round_blocks(disk: Disk) -> list[tuple[int, int, int, int]]:
    """(file offset, lsn, number, blocks) of every valid round block, in file order."""
    journal = disk.read("journal")
    found = []
    for at in range(FILE_HEADER_BYTES, len(journal), BLOCK):
        block = journal[at : at + BLOCK]
        if block[:4] != b"HRJB" or int.from_bytes(block[42:44], "little") != 3:
            continue
        lsn = int.from_bytes(block[24:32], "little")
        number = int.from_bytes(block[32:36], "little")
        found.append((at, lsn, number, int.from_bytes(block[36:40], "little")))
    return found


def rot(disk: Disk, offset: int, *, at: int = 200, size: int = 40) -> None:
    """Flip bytes of a block, away from the sectors' stamps."""
    data = disk.read("journal")[offset + at : offset + at + size]
    disk.poke("journal", offset + at, bytes(byte ^ 0xFF for byte in data))


def filled(disk: Disk) -> Store:
    """Two partitions with three rounds each, alternating."""
    store = Store(disk)
    for index in range(6):
        store.append(client_part(1, size=100 + index), index % 2)
    store.run()
    return store


def state(store: Store, partition: int) -> int:
    found = ffi.new("struct engine_partition_state *")
    assert lib.store_describe(store.store, store.id(partition), found) == 0
    return int(found.state)


def test_rot_below_the_witness_stops_its_group_by_name_and_no_other() -> None:
    disk = Disk()
    filled(disk)
    blocks = round_blocks(disk)
    rot(disk, blocks[2][0])  # the second batch of partition 0
    after = Store(disk)
    assert after.status == "OK"
    assert state(after, 0) == DAMAGED
    assert after.produce(client_part(1), 0) == "DAMAGED"
    assert after.read(0, 0) == "DAMAGED"
    assert len(after.log(1)) == 3
    assert after.append(client_part(1), 1).base_offset == 3


def test_damage_is_remembered_after_its_bytes_are_gone() -> None:
    disk = Disk()
    filled(disk)
    rot(disk, round_blocks(disk)[2][0])
    after = Store(disk)
    for _ in range(400):
        token = after.produce(client_part(1, size=3000), 1)
        after.run()
        assert isinstance(token, int), token
    assert after.statistics().extents_released > 8
    disk.crash()
    again = Store(disk)
    assert state(again, 0) == DAMAGED
    assert len(again.log(1)) == 403


def test_a_torn_last_round_is_cut_and_nobody_is_stopped() -> None:
    disk = Disk()
    store = filled(disk)
    token = store.produce(client_part(1, size=9000), 0)
    lib.store_flush(store.store, store.now[0])
    assert token not in store.outcomes
    before = disk.read("journal")
    store.run()
    last = [block for block in round_blocks(disk) if block[1] == round_blocks(disk)[-1][1]]
    assert len(last) == 3
    # The middle block never reached the disk: half of it is still what was there before.
    at = last[1][0] + 1024
    disk.poke("journal", at, before[at : at + 2048])
    after = Store(disk)
    assert state(after, 0) == 1
    assert len(after.log(0)) == 3
    assert after.append(client_part(1), 0).base_offset == 3


def test_rot_in_the_last_round_is_unknown_and_stops_those_it_names() -> None:
    disk = Disk()
    store = filled(disk)
    store.append(client_part(1, size=9000), 0)
    last = [block for block in round_blocks(disk) if block[1] == round_blocks(disk)[-1][1]]
    assert len(last) == 3
    rot(disk, last[1][0])
    after = Store(disk)
    assert state(after, 0) == DAMAGED
    assert len(after.log(1)) == 3


def test_rot_of_a_whole_last_round_stops_everybody_it_may_concern() -> None:
    disk = Disk()
    filled(disk)
    rot(disk, round_blocks(disk)[-1][0])
    after = Store(disk)
    assert state(after, 1) == DAMAGED  # its directory was lost with it
    assert state(after, 0) == DAMAGED


def test_rot_of_a_last_round_that_opened_its_extent_is_no_silence() -> None:
    disk = Disk()
    store = Store(disk)
    second = FILE_HEADER_BYTES + EXTENT_BYTES
    while disk.read("journal")[second : second + 4] != b"HRJB":
        store.append(client_part(1, size=100), 0)
    rot(disk, second + BLOCK)
    after = Store(disk)
    assert state(after, 0) == DAMAGED
    assert state(after, 1) == DAMAGED  # nobody knows whose the round was


def test_rot_of_the_first_round_of_all_stops_partitions_that_nobody_has_seen() -> None:
    disk = Disk()
    Store(disk).append(client_part(1), 0)
    rot(disk, FILE_HEADER_BYTES + BLOCK)
    for _ in range(3):
        after = Store(disk)
        assert after.produce(client_part(1), 0) == "DAMAGED"
        assert [state(after, partition) for partition in (0, 1)] == [DAMAGED, DAMAGED]
        after.run()
        disk.crash()


def test_a_witness_round_names_whose_the_last_round_was() -> None:
    disk = Disk()
    store = filled(disk)
    store.pass_time(50_000)
    store.run()
    blocks = round_blocks(disk)
    rot(disk, blocks[-2][0])
    after = Store(disk)
    assert state(after, 1) == DAMAGED
    assert len(after.log(0)) == 3


def test_damage_in_extents_given_back_concerns_nobody() -> None:
    disk = Disk()
    store = Store(disk)
    for index in range(200):
        while isinstance(store.produce(client_part(1, size=3000), index % 2), str):
            store.turn()
    store.run()
    released = int(store.statistics().extents_released)
    assert released > 2
    generations: dict[int, int] = {}
    journal = disk.read("journal")
    for at in range(FILE_HEADER_BYTES, len(journal), EXTENT_BYTES):
        generations[int.from_bytes(journal[at + 16 : at + 24], "little")] = at
    dead = [at for generation, at in generations.items() if 0 < generation <= released]
    assert dead
    for at in dead:
        rot(disk, at + BLOCK)
    after = Store(disk)
    assert [state(after, partition) for partition in (0, 1)] == [1, 1]
    assert sum(len(after.log(partition)) for partition in (0, 1)) == 200


def test_a_damaged_extent_header_costs_nothing() -> None:
    disk = Disk()
    filled(disk)
    rot(disk, FILE_HEADER_BYTES)
    after = Store(disk)
    assert [len(after.log(partition)) for partition in (0, 1)] == [3, 3]


def test_one_of_two_file_headers_is_enough() -> None:
    disk = Disk()
    filled(disk)
    for copy in (0, BLOCK):  # the first start mends what the second would miss
        rot(disk, copy)
        assert Store(disk).status == "OK"
    rot(disk, 0)
    rot(disk, BLOCK)
    after = Store(disk)
    assert after.status == "JOURNAL_DAMAGED"
    assert "header" in after.detail


@pytest.mark.parametrize("partition", [0, 1])
def test_rot_in_a_segment_is_found_by_the_read_and_never_served(partition: int) -> None:
    disk = Disk()
    store = Store(disk)
    behind = 70  # batches: more than a fetch looks back for in memory
    for index in range(2 * behind):
        store.append(client_part(1, size=500), index % 2)
    store.run()
    path = f"topics/{TOPIC:016x}-{REVISION}-{partition}/{0:020d}.log"
    disk.poke(path, 300, b"rot")
    assert store.read(0, partition) == "CORRUPT"
    assert store.read(behind - 1, partition) == "CORRUPT"
    assert len(store.log(1 - partition)) == behind


def test_rot_below_a_checkpoint_stops_the_partition_at_the_start() -> None:
    disk = Disk()
    store = Store(disk)
    for index in range(10):
        store.append(client_part(1, size=500), index % 2)
    lib.store_checkpoint_all(store.store)
    store.run()
    disk.poke(f"topics/{TOPIC:016x}-{REVISION}-0/{0:020d}.log", 300, b"rot")
    after = Store(disk)
    assert state(after, 0) == DAMAGED
    assert len(after.log(1)) == 5


def test_a_lost_segment_file_stops_its_partition_only() -> None:
    disk = Disk()
    store = Store(disk, segment_bytes=4096)
    for index in range(40):
        store.append(client_part(1, size=500), index % 2)
    lib.store_checkpoint_all(store.store)
    store.run()
    path = f"topics/{TOPIC:016x}-{REVISION}-1/{0:020d}.log"
    footer = len(disk.read(path)) - 96
    disk.poke(path, footer + 20, b"no footer")
    after = Store(disk, segment_bytes=4096)
    assert state(after, 1) == DAMAGED
    assert len(after.log(0)) == 20


def test_a_journal_of_another_node_is_refused() -> None:
    disk = Disk()
    filled(disk)
    header = bytearray(disk.read("journal")[:FILE_HEADER_BYTES])
    header[8] ^= 1
    header[BLOCK + 8] ^= 1
    disk.poke("journal", 0, bytes(header))
    assert Store(disk).status == "JOURNAL_DAMAGED"


def test_recovery_of_the_same_bytes_gives_the_same_bytes() -> None:
    disk = Disk()
    store = filled(disk)
    store.produce(client_part(1, size=5000), 0)
    store.turn()
    disk.crash()
    copy = disk.copied()
    Store(disk)
    Store(copy)
    assert disk.digest() == copy.digest()
    again = disk.copied()
    before = again.digest()
    Store(again)
    assert again.digest() == before
