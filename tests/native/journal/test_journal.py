"""journal/: the bytes of blocks, rounds, entries, and what tells torn blocks from rotten ones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import client_part
from tests.support.builders.store import (
    EXTENT_BYTES,
    FILE_HEADER_BYTES,
    REVISION,
    TOPIC,
    Disk,
    Store,
)

DATA = Path(__file__).resolve().parents[2] / "data"
BLOCK, HEADER, SECTOR = 4096, 112, 512
PLACE = 5 * BLOCK
ITEM = 64
DAMAGED = 3


def block(payload: bytes, *, extent_cycle: int = 3, lsn: int = 9, number: int = 0) -> bytes:
    data = ffi.new("uint8_t[]", bytes(HEADER) + payload.ljust(BLOCK - HEADER, b"\0"))
    fields = ffi.new(
        "struct journal_block *",
        {
            "journal_id": 77,
            "place": PLACE,
            "extent_cycle": extent_cycle,
            "lsn": lsn,
            "number": number,
            "blocks_count": number + 1,
            "payload_bytes": len(payload),
            "kind": 3,
        },
    )
    lib.journal_block_seal(data, fields)
    return bytes(ffi.buffer(data))


@given(st.binary(max_size=BLOCK - HEADER))
def test_a_sealed_block_gives_its_payload_back(payload: bytes) -> None:
    data = ffi.new("uint8_t[]", block(payload))
    fields = ffi.new("struct journal_block *")
    assert lib.journal_block_get(data, 77, PLACE, fields) == 1
    assert (fields.extent_cycle, fields.lsn, fields.payload_bytes) == (3, 9, len(payload))
    lib.journal_block_restore(data)
    assert bytes(ffi.buffer(data))[HEADER : HEADER + len(payload)] == payload


@given(st.integers(0, BLOCK - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(at: int, change: int) -> None:
    data = bytearray(block(b"payload" * 300))
    data[at] ^= change
    fields = ffi.new("struct journal_block *")
    assert lib.journal_block_get(bytes(data), 77, PLACE, fields) == 0


def test_a_block_of_another_journal_is_no_block() -> None:
    assert lib.journal_block_get(block(b"x"), 78, PLACE, ffi.new("struct journal_block *")) == 0


def test_a_block_that_belongs_elsewhere_is_no_block() -> None:
    fields = ffi.new("struct journal_block *")
    assert lib.journal_block_get(block(b"x"), 77, PLACE + BLOCK, fields) == 0


@given(st.integers(0, 7), st.sampled_from(["zeros", "older cycle", "older lsn"]))
def test_one_older_sector_proves_a_torn_block(sector: int, kind: str) -> None:
    new = bytearray(block(b"new" * 1200))
    older = {
        "zeros": bytes(BLOCK),
        "older cycle": block(b"old" * 1200, extent_cycle=2, lsn=5),
        "older lsn": block(b"old" * 1200, extent_cycle=3, lsn=8),
    }[kind]
    at = sector * SECTOR
    new[at : at + SECTOR] = older[at : at + SECTOR]
    assert lib.journal_block_is_older(bytes(new), 3, 9) == 1


def test_a_rotten_block_holds_nothing_older() -> None:
    new = bytearray(block(b"new" * 1200))
    new[300] ^= 1
    assert lib.journal_block_is_older(bytes(new), 3, 9) == 0
    assert lib.journal_block_is_older(bytes(new), 3, 10) == 1  # seen from a later round


def golden_disk() -> Disk:
    """Always the same small history: two partitions, a commit, a command, a checkpoint."""
    disk = Disk()
    store = Store(disk)
    store.append(client_part(2, size=40), 0)
    store.append(client_part(1, size=30, producer=b"p" * 16), 1, principal=17)
    store.commit(5, 0, 1)
    token = store.token()
    assert lib.store_metadata_submit(store.store, b"a command", 9, token) == 0
    store.run()
    lib.store_checkpoint_all(store.store)
    store.run()
    return disk


def extent_of(disk: Disk) -> bytes:
    """The file headers and the used blocks of the first extent."""
    data = disk.read("journal")
    used = data[: FILE_HEADER_BYTES + EXTENT_BYTES].rstrip(b"\0")
    return data[: -(-len(used) // BLOCK) * BLOCK]


def test_the_journal_is_written_as_its_golden_file_says() -> None:
    assert extent_of(golden_disk()) == (DATA / "journal_v1.bin").read_bytes()


def digest_of(data: bytes) -> bytes:
    digest = ffi.new("uint8_t[16]")
    lib.vsr_digest(data, len(data), digest)
    return bytes(ffi.buffer(digest))


def payload_of(blocks: bytes) -> bytes:
    """By docs/internals/journal.md, not by the C."""
    payload = b""
    for at in range(0, len(blocks), BLOCK):
        data = bytearray(blocks[at : at + BLOCK])
        for sector in range(8):
            end = (sector + 1) * SECTOR
            data[end - 8 : end] = data[48 + sector * 8 : 56 + sector * 8]
        payload += data[HEADER : HEADER + int.from_bytes(data[44:48], "little")]
    return payload


def entries_of(payload: bytes) -> list[tuple[int, int, int, int, bytes]]:
    """(kind, topic, partition, op, body) of a round's entries."""
    own, previous, count = (int.from_bytes(payload[a : a + 4], "little") for a in (12, 16, 20))
    at = 80 + ITEM * (own + previous)
    found = []
    for _ in range(count):
        size = int.from_bytes(payload[at : at + 4], "little")
        kind = int.from_bytes(payload[at + 52 : at + 54], "little")
        topic = int.from_bytes(payload[at + 16 : at + 24], "little")
        partition = int.from_bytes(payload[at + 48 : at + 52], "little")
        op = int.from_bytes(payload[at + 32 : at + 40], "little")
        found.append((kind, topic, partition, op, payload[at + 64 : at + size]))
        at += -(-size // 8) * 8
    assert at == len(payload)
    return found


def test_the_golden_file_reads_as_the_page_draws_it() -> None:
    data = (DATA / "journal_v1.bin").read_bytes()
    rounds = []
    at = FILE_HEADER_BYTES + BLOCK
    while at < len(data):
        count = int.from_bytes(data[at + 36 : at + 40], "little")
        payload = payload_of(data[at : at + count * BLOCK])
        assert payload[:4] == b"HRJR"
        rounds.append(entries_of(payload))
        at += count * BLOCK
    kinds = [[entry[0] for entry in entries] for entries in rounds]
    assert kinds[0] == [3, 1, 1]  # view state, CONFIGURE, the first batch
    assert kinds[1] == [3, 1, 1]
    assert kinds[2] == [1]
    assert [2, 2] in kinds  # both checkpoints in one round
    assert kinds[-1] == []  # the witness
    _, topic, partition, op, body = rounds[0][1]
    assert (topic, partition, op, int.from_bytes(body[84:86], "little")) == (TOPIC, 0, 1, 11)
    assert body[112:] == struct.pack("<B7xQqQQQ", 1, 1 << 20, 0, 256, 64, 1)
    assert int.from_bytes(body[88:92], "little") == lib.ENGINE_RELEASE
    identity = struct.pack("<48sQQI", b"cl_test", TOPIC, REVISION, 0)
    assert body[16:32] == digest_of(identity)  # the parent of the first prepare
    _, topic, partition, op, body = rounds[0][2]
    assert (topic, partition, op) == (TOPIC, 0, 2)
    assert body[112 : 112 + 4] == b"HRB1"
    assert body[112 + 16 : 112 + 24] == bytes(8)  # base offset is zero in the journal
    assert body[112 + 96 :] == client_part(2, size=40)


@pytest.mark.parametrize("extents", [6, 9])
def test_rounds_fill_extents_and_wrap_around(extents: int) -> None:
    disk = Disk()
    store = Store(disk, extents=extents)
    for _ in range(120):
        while isinstance(store.produce(client_part(1, size=5000)), str):
            store.turn()
    store.run()
    journal = disk.read("journal")
    extent_cycles = sorted(
        int.from_bytes(journal[at + 16 : at + 24], "little")
        for at in range(FILE_HEADER_BYTES, len(journal), EXTENT_BYTES)
    )
    assert extent_cycles[-1] > extents
    assert len(set(extent_cycles)) == extents
    assert len(store.log()) == 120


# ---- made wrong: checksums hold, what they cover cannot be ----


def forge(disk: Disk, offset: int, at: int, data: bytes) -> None:
    """Change a block and make its checksum right again."""
    block = bytearray(disk.read("journal")[offset : offset + BLOCK])
    block[at : at + len(data)] = data
    place = offset.to_bytes(8, "little")
    seed = lib.crc32c(place, len(place))
    crc = lib.crc32c_extend(seed, bytes(block[8:]), BLOCK - 8)
    block[4:8] = int(crc).to_bytes(4, "little")
    disk.poke("journal", offset, bytes(block))


def extent_at(extent: int) -> int:
    return FILE_HEADER_BYTES + extent * EXTENT_BYTES


def extent_cycles(disk: Disk, extents: int) -> list[int]:
    """As the extents' headers say; 0 = never used."""
    journal = disk.read("journal")
    found = [journal[extent_at(n) + 16 : extent_at(n) + 24] for n in range(extents)]
    return [int.from_bytes(number, "little") for number in found]


def spread(disk: Disk, newest: int, *, rounds: int = 4) -> int:
    """Acked batches until the newest extent has that cycle and some rounds; how many."""
    store = Store(disk, extents=6)
    count = 0
    while max(extent_cycles(disk, 6)) < newest:
        store.append(client_part(1, size=5000))
        count += 1
    for _ in range(rounds - 1):
        store.append(client_part(1, size=5000))
    store.run()
    assert max(extent_cycles(disk, 6)) == newest
    return count + rounds - 1


@pytest.mark.parametrize(
    ("newest", "extent", "extent_cycle"),
    [
        (2, 1, 47),  # the newest extent, of a cycle far ahead: its rounds would be no rounds
        (2, 1, 3),
        (1, 0, 2),
        (9, 2, 3),  # .. of one long gone
        (9, 2, 10),
        (9, 2, 2**63),
    ],
)
def test_an_extent_that_says_a_wrong_cycle_is_refused(
    newest: int, extent: int, extent_cycle: int
) -> None:
    disk = Disk()
    spread(disk, newest)
    assert extent_cycles(disk, 6)[extent] == newest
    before = disk.copied()
    forge(disk, extent_at(extent), 16, extent_cycle.to_bytes(8, "little"))
    digest = disk.digest()
    after = Store(disk, extents=6)
    if extent_cycle == 2**63:  # no header of ours: the blocks tell
        assert after.status == "OK"
        assert len(after.log()) == len(Store(before, extents=6).log())
        return
    assert after.status == "JOURNAL_DAMAGED"
    assert disk.digest() == digest


def test_a_round_of_a_cycle_that_nobody_opened_is_refused() -> None:
    disk = Disk()
    spread(disk, 2)
    forge(disk, extent_at(0) + 3 * BLOCK, 16, (2**20).to_bytes(8, "little"))
    assert Store(disk, extents=6).status == "JOURNAL_DAMAGED"


def oldest_live(disk: Disk) -> int:
    """Generation of the oldest extent that lives, as the last round says."""
    journal = disk.read("journal")
    found = ("", 0)
    for at in range(FILE_HEADER_BYTES, len(journal), BLOCK):
        head = journal[at : at + BLOCK]
        if head[:4] == b"HRJB" and head[42] == 3 and head[32:36] == bytes(4):
            found = max(found, (head[24:32][::-1].hex(), int.from_bytes(head[176:184], "little")))
    return found[1]


@pytest.mark.parametrize("newest", [2, 9])
@pytest.mark.parametrize("next_cycle", [True, False])
def test_the_oldest_live_extent_is_not_lost_in_silence(newest: int, next_cycle: bool) -> None:
    disk = Disk()
    spread(disk, newest)
    at = extent_at(extent_cycles(disk, 6).index(oldest_live(disk)))
    if next_cycle:
        forge(disk, at, 16, (newest + 1).to_bytes(8, "little"))
    else:
        disk.poke("journal", at, bytes(EXTENT_BYTES))
    after = Store(disk, extents=6)
    assert after.status == "OK"
    assert after.described() == DAMAGED
    digest = disk.digest()
    assert Store(disk, extents=6).described() == DAMAGED
    assert disk.digest() == digest


def test_an_extent_that_disowns_its_first_rounds_is_refused() -> None:
    disk = Disk()
    spread(disk, 2)
    forge(disk, extent_at(1), 24, (2**40).to_bytes(8, "little"))
    assert Store(disk, extents=6).status == "JOURNAL_DAMAGED"


def test_a_block_of_an_lsn_far_ahead_is_refused() -> None:
    disk = Disk()
    spread(disk, 2)
    journal = disk.read("journal")
    second = next(
        at
        for at in range(extent_at(1) + 2 * BLOCK, extent_at(2), BLOCK)
        if journal[at : at + 4] == b"HRJB" and journal[at + 32] == 1
    )
    forge(disk, second, 24, (2**62).to_bytes(8, "little"))
    assert Store(disk, extents=6).status == "JOURNAL_DAMAGED"


def test_a_view_state_of_a_log_view_beyond_its_view_is_refused() -> None:
    disk = Disk()
    Store(disk).append(client_part(1, size=40))
    at = extent_at(0) + BLOCK
    data = ffi.new("uint8_t[]", disk.read("journal")[at : at + BLOCK])
    fields = ffi.new("struct journal_block *")
    identity = int.from_bytes(bytes(ffi.buffer(data))[8:16], "little")
    assert lib.journal_block_get(data, identity, at, fields) == 1
    lib.journal_block_restore(data)
    entry = data + HEADER + 80 + ITEM  # behind the round's header and its one directory item
    assert entry[52] == 3  # a view state
    entry[64 + 16] = 1  # log_view
    lib.journal_entry_seal(entry)
    lib.journal_block_seal(data, fields)
    disk.poke("journal", at, bytes(ffi.buffer(data)))
    assert Store(disk).status == "JOURNAL_DAMAGED"


def torn_opening(disk: Disk, before: bytes, newest: int) -> None:
    """The newest extent's header is what it was before; its first round's blocks are there."""
    extent = extent_cycles(disk, 6).index(newest)
    disk.poke("journal", extent_at(extent), before[extent_at(extent) :][:BLOCK])
    assert newest not in extent_cycles(disk, 6)


def test_an_extent_whose_header_never_came_gives_no_lsn_twice() -> None:
    disk = Disk()
    acked = spread(disk, 8)
    lsns = []
    for _ in range(3):
        store = Store(disk, extents=6)
        assert store.status == "OK"
        assert len(store.log()) == acked
        before = disk.read("journal")
        store.produce(client_part(1, size=40_000))  # opens the next extent
        while 9 not in extent_cycles(disk, 6):
            assert store.turn()
        extent = extent_cycles(disk, 6).index(9)
        at = extent_at(extent)
        lsns.append(int.from_bytes(disk.read("journal")[at + 24 : at + 32], "little"))
        torn_opening(disk, before, 9)
    assert len(set(lsns)) == 3
    assert lsns == sorted(lsns)
