"""journal.c: which extent may be written over, and what a torn opening of it leaves."""

from __future__ import annotations

import pytest

from native._engine_sim import ffi, lib
from tests.support.builders.storage import Arena
from tests.support.builders.store import Disk

BLOCK, SECTOR = 4096, 512
EXTENT_BLOCKS = 8
ROUND_BYTES = 3000  # one block with all that belongs to it


class Journal:
    """A journal of six extents, alone: rounds of one entry, and their bytes."""

    def __init__(self) -> None:
        self.config = ffi.new(
            "struct journal_config *",
            {"id": 77, "extents_count": 6, "extent_blocks": EXTENT_BLOCKS, "round_blocks_max": 7},
        )
        self._arena = Arena(lib.journal_memory_bytes(self.config) + BLOCK)
        self.journal = ffi.new("struct journal *")
        lib.journal_init(self.journal, self.config, self._arena.arena)
        self.data = bytearray(lib.journal_file_bytes(self.config))
        self.op = 0

    def made(self, size: int) -> tuple[int, bytes] | None:
        """Where a round with an entry of that size (0 = none) goes, and its bytes; None = nowhere:
        no extent may be opened."""
        if not lib.journal_round_begin(self.journal, size):
            return None
        entry = ffi.new("uint8_t[]", max(size, 1))
        if size:
            self.op += 1
            fields = {"size": size, "kind": 1, "topic": 16, "created_revision": 5, "op": self.op}
            lib.journal_entry_put(entry, ffi.new("struct journal_entry *", fields))
            lib.journal_entry_seal(entry)
            mark = ffi.new("struct journal_mark *")
            assert lib.journal_round_add(self.journal, entry, mark) == 1
        write = ffi.new("struct journal_write *")
        lib.journal_round_seal(self.journal, write)
        return write.offset, bytes(ffi.buffer(write.buffer, write.size))

    def round(self, size: int = ROUND_BYTES) -> None:
        """A durable round."""
        made = self.made(size)
        assert made is not None
        self.data[made[0] : made[0] + len(made[1])] = made[1]
        lib.journal_round_synced(self.journal)

    def fill(self, blocks_left: int) -> None:
        """Durable rounds until no extent is free and the last has so many blocks left."""
        journal = self.journal
        while lib.journal_extents_free(journal) or lib.journal_blocks_left(journal) > blocks_left:
            self.round()

    def damages(self) -> list[tuple[int, int]]:
        """(kind, named) of what a start would find on the disk as it is now."""
        disk, after = Disk(), Journal()
        io = lib.sim_storage_io(disk.storage)
        there = {"path": b"journal", "flags": lib.IO_CREATE}
        for fields in (
            {"operation": lib.IO_OPEN, **there},
            {
                "operation": lib.IO_WRITE,
                "size": len(self.data),
                "buffer": ffi.from_buffer(self.data),
            },
        ):
            assert io.perform(io.context, ffi.new("struct io_request *", fields)) == 0
        report = ffi.new("struct journal_report *")
        buffer = ffi.new("uint8_t[]", EXTENT_BLOCKS * BLOCK)

        visit = ffi.callback("journal_visitor", lambda *_: 0)
        assert lib.journal_scan(after.journal, io, 0, buffer, report, visit, ffi.NULL) == 0
        return [(each.kind, each.named) for each in report.damages[0 : report.damages_count]]


def test_an_extent_is_opened_once_a_durable_round_says_that_it_is_dead() -> None:
    journal = Journal()
    journal.fill(blocks_left=1)
    lib.journal_free_below(journal.journal, 2)
    assert lib.journal_extents_free(journal.journal) == 0
    assert journal.made(2 * ROUND_BYTES) is None
    journal.round(0)
    assert lib.journal_extents_free(journal.journal) == 1
    assert journal.made(2 * ROUND_BYTES) is not None


@pytest.mark.parametrize("block", range(3))  # the extent's header, and its first round
def test_a_torn_opening_of_the_only_free_extent_stops_nobody(block: int) -> None:
    journal = Journal()
    journal.fill(blocks_left=1)
    lib.journal_free_below(journal.journal, 2)
    journal.round(0)
    made = journal.made(2 * ROUND_BYTES)
    assert made is not None
    offset, blocks = made
    at = block * BLOCK
    journal.data[offset + at : offset + at + SECTOR] = blocks[at : at + SECTOR]
    assert journal.damages() == []
