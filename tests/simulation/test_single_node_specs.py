"""Specifications of one node by name: what a crash, a stray byte or a newer release leaves behind.

`crash_offset_reuse`, which needs a real process, is in
tests/scenarios/dataplane/test_crash_offset_reuse.py.
"""

from __future__ import annotations

import pytest

from native._engine_sim import ffi, lib
from tests.simulation.test_storage_faults import round_blocks
from tests.support.builders.storage import client_part
from tests.support.builders.store import Disk, Store, folder_of

BLOCK = 4096
BLOCK_HEADER = 112
PREPARE_AT = 64  # in an entry, behind its header
OPERATION_AT = PREPARE_AT + 84
BODY_AT = PREPARE_AT + 112
FUTURE = 4711
OP_UNKNOWN = 5  # engine_partition_state.state


def segment(partition: int) -> str:
    """The path of a partition's first segment."""
    return f"{folder_of(partition)}/{0:020d}.log"


def state(store: Store, partition: int) -> int:
    found = ffi.new("struct engine_partition_state *")
    assert lib.store_describe(store.store, store.id(partition), found) == 0
    return int(found.state)


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("garbage", [b"x", b"\0" * 10, bytes(range(250)), b"\x60\0\0\0" * 40])
def test_torn_segment_tail_is_cut_and_every_acknowledged_batch_is_readable(
    checkpointed: bool, garbage: bytes
) -> None:
    disk = Disk()
    store = Store(disk)
    for index in range(6):
        store.append(client_part(1, size=300), index % 2)
    if checkpointed:
        lib.store_checkpoint_all(store.store)
    store.run()
    before = [store.log(partition) for partition in (0, 1)]
    disk.kill()
    for partition in (0, 1):
        disk.poke(segment(partition), len(disk.read(segment(partition))), garbage)
    after = Store(disk)
    assert [after.log(partition) for partition in (0, 1)] == before
    for partition in (0, 1):
        assert after.append(client_part(1, size=200), partition).base_offset == 3
    after.run()
    disk.crash()
    again = Store(disk)
    assert [state(again, partition) for partition in (0, 1)] == [1, 1]
    assert [again.log(partition)[:3] for partition in (0, 1)] == before
    assert [len(again.log(partition)) for partition in (0, 1)] == [4, 4]


def test_torn_index_tail_changes_nothing_that_is_read() -> None:
    """There is no index on the disk to tear: stray bytes where one would lie change nothing."""
    disk = Disk()
    store = Store(disk, segment_bytes=4096)
    for index in range(40):
        store.append(client_part(1, size=500), index % 2)
    lib.store_checkpoint_all(store.store)
    store.run()
    disk.crash()
    before = [Store(disk.copied(), segment_bytes=4096).log(partition) for partition in (0, 1)]
    path = segment(0)
    footer = len(disk.read(path))
    disk.poke(path, footer, bytes(range(10)))  # ten stray bytes behind the footer
    for _ in range(2):
        after = Store(disk, segment_bytes=4096)
        assert [after.log(partition)[:20] for partition in (0, 1)] == before
        found = after.read(19, 0)
        assert isinstance(found, bytes), found
        assert found.startswith(before[0][19])
        after.append(client_part(1), 0)
        after.run()
        disk.crash()


def rewrite_last_entry(disk: Disk, at: int, data: bytes) -> None:
    """Bytes of the last round's only entry, a commit, as another release would have written them:
    every checksum holds.
    """
    place, _, _, blocks = max(round_blocks(disk), key=lambda block: block[1])
    assert blocks == 1
    block = ffi.new("uint8_t[]", disk.read("journal")[place : place + BLOCK])
    fields = ffi.new("struct journal_block *")
    journal_id = int.from_bytes(bytes(block[8:16]), "little")
    assert lib.journal_block_get(block, journal_id, place, fields)
    lib.journal_block_restore(block)
    own = int.from_bytes(bytes(block[BLOCK_HEADER + 12 : BLOCK_HEADER + 16]), "little")
    previous = int.from_bytes(bytes(block[BLOCK_HEADER + 16 : BLOCK_HEADER + 20]), "little")
    entry = block + BLOCK_HEADER + 80 + 64 * (own + previous)
    ffi.memmove(entry + at, data, len(data))
    prepare = entry + PREPARE_AT
    body_bytes = int.from_bytes(bytes(entry[0:4]), "little") - BODY_AT
    lib.vsr_digest(entry + BODY_AT, body_bytes, prepare + 32)
    checksum = ffi.new("uint8_t[16]")
    lib.vsr_digest(prepare + 16, BODY_AT - PREPARE_AT - 16, checksum)
    ffi.memmove(prepare, checksum, 16)
    lib.journal_entry_seal(entry)
    lib.journal_block_seal(block, fields)
    disk.poke("journal", place, bytes(block[0:BLOCK]))


def with_future_operation(disk: Disk) -> None:
    """The last round's commit becomes an operation that no release knows yet."""
    rewrite_last_entry(disk, OPERATION_AT, FUTURE.to_bytes(2, "little"))


def test_unknown_operation_stops_its_group_by_name_and_no_other() -> None:
    disk = Disk()
    store = Store(disk)
    for index in range(6):
        store.append(client_part(1), index % 2)
    store.commit(1, 0, 2)
    disk.crash()
    with_future_operation(disk)
    for life in range(3):
        after = Store(disk)
        assert after.status == "OK", after.detail
        assert after.produce(client_part(1), 0) == "OP_UNKNOWN"
        assert after.read(0, 0) == "OP_UNKNOWN"
        assert state(after, 0) == OP_UNKNOWN
        found = after.statistics()
        assert (found.replicas_op_unknown, found.refused_op_unknown) == (1, 1)
        assert found.replicas_damaged == 0
        assert after.append(client_part(1), 1).base_offset == 3 + life
        after.run()
        disk.crash()


def test_a_newer_body_of_a_known_operation_stops_its_group_by_name_and_no_other() -> None:
    disk = Disk()
    store = Store(disk)
    for index in range(6):
        store.append(client_part(1), index % 2)
    store.commit(1, 0, 2)
    disk.crash()
    rewrite_last_entry(disk, BODY_AT, (2).to_bytes(2, "little"))  # the body's version
    after = Store(disk)
    assert after.status == "OK", after.status
    assert after.produce(client_part(1), 0) == "OP_UNKNOWN"
    assert after.append(client_part(1), 1).base_offset == 3


def test_unknown_operation_stays_when_its_extent_is_given_back() -> None:
    disk = Disk()
    store = Store(disk)
    store.append(client_part(1), 0)
    store.commit(1, 0, 1)
    disk.crash()
    with_future_operation(disk)
    after = Store(disk)
    for _ in range(400):
        after.produce(client_part(1, size=3000), 1)
        after.run()
    assert after.statistics().extents_released > 8
    disk.crash()
    assert state(Store(disk), 0) == OP_UNKNOWN
