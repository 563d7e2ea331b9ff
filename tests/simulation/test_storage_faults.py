"""Damage to bytes that were durable: told apart from torn writes, named, remembered, contained."""

from __future__ import annotations

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import client_part
from tests.support.builders.store import (
    EXTENT_BYTES,
    FILE_HEADER_BYTES,
    TOPIC,
    Disk,
    Store,
    folder_of,
)

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
    extent_cycles: dict[int, int] = {}
    journal = disk.read("journal")
    for at in range(FILE_HEADER_BYTES, len(journal), EXTENT_BYTES):
        extent_cycles[int.from_bytes(journal[at + 16 : at + 24], "little")] = at
    dead = [at for extent_cycle, at in extent_cycles.items() if 0 < extent_cycle <= released]
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
    path = f"{folder_of(partition)}/{0:020d}.log"
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
    disk.poke(f"{folder_of()}/{0:020d}.log", 300, b"rot")
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
    path = f"{folder_of(1)}/{0:020d}.log"
    footer = len(disk.read(path)) - 96
    disk.poke(path, footer + 20, b"no footer")
    after = Store(disk, segment_bytes=4096)
    assert state(after, 1) == DAMAGED
    assert len(after.log(0)) == 20


def given(holds: bool, what: str) -> None:
    """What a known fault begins with. Its absence is no AssertionError, which the mark expects."""
    if not holds:
        pytest.fail(what)


def segments(disk: Disk, partition: int = 0, *, topic: int = TOPIC) -> list[str]:
    """Paths of a partition's segments, the oldest first."""
    folder = folder_of(partition, topic=topic)
    return [f"{folder}/{name}" for name in disk.listed(folder)]


def hurt_old_segment(disk: Disk) -> Store:
    """Four segments of three batches; the first has rotted since the start and was just read."""
    store = Store(disk, segment_bytes=2 * BLOCK)
    for _ in range(12):
        store.append(client_part(1, size=3000))
    lib.store_checkpoint_all(store.store)
    store.run()
    disk.kill()
    after = Store(disk, segment_bytes=2 * BLOCK)
    disk.poke(segments(disk)[0], 1500, b"rot")
    given(after.read(0) == "CORRUPT", "the rot was not found")
    return after


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="One rotten batch in an old segment stops its whole partition, reads and writes.",
)
def test_rot_in_an_old_segment_leaves_the_others_to_readers_and_writers() -> None:
    store = hurt_old_segment(Disk())
    assert isinstance(store.read(9), bytes)
    assert isinstance(store.produce(client_part(1)), int)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="A start forgets the rot that a read had found, and takes writes until the next read.",
)
def test_rot_that_a_read_found_is_remembered_by_the_next_start() -> None:
    disk = Disk()
    store = hurt_old_segment(disk)
    store.run()
    found = state(store, 0)
    disk.kill()
    assert state(Store(disk, segment_bytes=2 * BLOCK), 0) == found


@pytest.mark.parametrize("segment", [0, 2], ids=["sealed", "active"])
def test_a_block_of_another_topic_is_never_served(segment: int) -> None:
    def part(owner: bytes, number: int, size: int) -> bytes:
        return client_part(1, producer=owner * 16, sequence=number, size=size)

    other = TOPIC + 1
    size = next(n for n in range(BLOCK) if 96 + len(part(b"a", 0, n)) == BLOCK)
    disk = Disk()
    store = Store(disk, segment_bytes=4 * BLOCK)
    store.tables(topic=other, organization=2, segment_bytes=4 * BLOCK)
    for number in range(10):
        store.append(part(b"a", number, size))
        token = store.produce(part(b"b", number, size), topic=other)
        given(isinstance(token, int), "the other topic takes no batch")
        store.run()
    lib.store_checkpoint_all(store.store)
    store.run()
    disk.kill()
    after = Store(disk, segment_bytes=4 * BLOCK)
    theirs = disk.read(segments(disk, topic=other)[segment])[BLOCK : 2 * BLOCK]
    given(b"b" * 16 in theirs, "it is no batch of the other topic")
    disk.poke(segments(disk)[segment], BLOCK, theirs)
    assert after.read(4 * segment + 1) in ("CORRUPT", "DAMAGED")


def first_rounds_lost(disk: Disk, partitions: int) -> list[int]:
    """Partitions with one round each, and partition 3 before and behind; where the rounds are."""
    store = Store(disk)
    store.append(client_part(1), 3)
    places = []
    for partition in range(partitions):
        store.append(client_part(1), partition)
        places.append(round_blocks(disk)[-1][0])
    for _ in range(3):
        store.append(client_part(1), 3)
    store.pass_time(30_000)
    store.run()
    disk.kill()
    return places


def test_damage_that_grows_gives_no_acknowledged_offset_out_again() -> None:
    disk = Disk()
    places = first_rounds_lost(disk, 3)
    rot(disk, places[0])
    Store(disk).run()
    disk.kill()
    rot(disk, places[1])
    rot(disk, places[2])
    assert Store(disk).produce(client_part(1), 1) == "DAMAGED"


def test_a_damaged_partition_whose_topic_is_deleted_leaves_no_files() -> None:
    disk = Disk()
    rot(disk, first_rounds_lost(disk, 1)[0])
    store = Store(disk)
    given(store.produce(client_part(1), 0) == "DAMAGED", "the loss was not found")
    given(store.tables(op=9, gone=True) == "OK", "the topic was not deleted")
    for _ in range(10):
        store.pass_time(1_000_000)
        store.run()
    assert [segments(disk, partition) for partition in (0, 3)] == [[], []]


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
