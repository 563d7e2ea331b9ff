"""A partition whose log begins later, as a Trim leaves it: rewritten in a stopped node's journal.

A trim moves a log's start to the end of a segment, a purge anywhere: this puts it inside a batch,
in any log. Every reader of it must be told the truth. Owns the rewriting, by
docs/internals/journal.md: the partition's checkpoints name another log_start, and every checksum
above them is made anew, so that the journal is as a node would have written it. Segments stay
whole: their removal comes after the Trim.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from cffi import FFI

from native._engine_sim import ffi, lib

if TYPE_CHECKING:
    from native._engine_sim import CData

BLOCK, BLOCK_HEADER, SECTOR = 4096, 112, 512
FILE_HEADER = 8192
ROUND_HEADER, DIRECTORY_ITEM = 80, 48
PREVIOUS_CHAIN = 48  # in the round header
# In an entry: header, view state, checksum of the op, append time; then place, size, hash, blob.
PLACE, HASH, BLOB = 64 + 88, 64 + 96, 64 + 112
LOG_START = 32  # in the blob
KIND_ROUND, KIND_CHECKPOINT = 3, 2

_declared = FFI()
_declared.cdef(
    """
    typedef struct { uint64_t low, high; } hash128;
    uint64_t XXH3_64bits_withSeed(const void *data, size_t size, uint64_t seed);
    hash128 XXH3_128bits(const void *data, size_t size);
    """
)
_xxhash: CData = _declared.dlopen("libxxhash.so.0")


def move_log_start(data_path: Path, topic: int, partition: int, log_start: int) -> None:
    """In the one shard that has the partition. The node is stopped."""
    moved = 0
    for path in data_path.glob("layout-*/shard-*/journal"):
        data = bytearray(path.read_bytes())
        if _move(data, topic, partition, log_start):
            path.write_bytes(data)
            moved += 1
    assert moved == 1, f"{moved} shards have checkpoints of the partition"


def _move(data: bytearray, topic: int, partition: int, log_start: int) -> int:
    """The checkpoints that were changed."""
    changed, chain = 0, None
    for places in _rounds(data):
        payload = _payload(data, places)
        found = _move_in_round(payload, topic, partition, log_start)
        changed += found
        if chain is not None:
            _put(payload, PREVIOUS_CHAIN, chain, 8)
            directories = _directories(payload)
            _put(payload, 4, _crc(payload[8:directories]), 4)
        if found or chain is not None:
            _seal(data, places, payload)
            chain = 0
            for at in places:
                crc = bytes(data[at + 4 : at + 8])
                chain = _xxhash.XXH3_64bits_withSeed(crc, len(crc), chain)
    return changed


def _rounds(data: bytearray) -> list[list[int]]:
    """Where the blocks of each round lie, by lsn. For a journal that never recycled an extent."""
    rounds: dict[int, list[int]] = defaultdict(list)
    for at in range(FILE_HEADER, len(data), BLOCK):
        if data[at : at + 4] != b"HRJB" or _get(data, at + 42, 2) != KIND_ROUND:
            continue
        assert _get(data, at + 16, 8) == 1
        rounds[_get(data, at + 24, 8)].append(at)
    return [places for _, places in sorted(rounds.items())]


def _payload(data: bytearray, places: list[int]) -> bytearray:
    payload = bytearray()
    for at in places:
        block = data[at : at + BLOCK]
        for sector in range(BLOCK // SECTOR):
            end = (sector + 1) * SECTOR
            block[end - 8 : end] = block[48 + sector * 8 : 56 + sector * 8]
        payload += block[BLOCK_HEADER : BLOCK_HEADER + _get(block, 44, 4)]
    return payload


def _directories(payload: bytearray) -> int:
    """Where they end and the entries begin."""
    return ROUND_HEADER + DIRECTORY_ITEM * (_get(payload, 12, 4) + _get(payload, 16, 4))


def _move_in_round(payload: bytearray, topic: int, partition: int, log_start: int) -> int:
    changed, at = 0, _directories(payload)
    for _ in range(_get(payload, 20, 4)):
        size = _get(payload, at, 4)
        entry = payload[at : at + size]
        is_checkpoint = _get(entry, 52, 2) == KIND_CHECKPOINT
        if is_checkpoint and (_get(entry, 16, 8), _get(entry, 48, 4)) == (topic, partition):
            assert _get(entry, PLACE, 4) == 1, "the blob lies here, not in a file"
            blob = entry[BLOB:]
            assert log_start <= _get(blob, 24, 8), "the log's start lies within it"
            _put(blob, LOG_START, log_start, 8)
            _put(blob, 4, _crc(blob[8:]), 4)
            digest = _xxhash.XXH3_128bits(bytes(blob), len(blob))
            _put(entry, HASH, digest.low, 8)
            _put(entry, HASH + 8, digest.high, 8)
            entry[BLOB:] = blob
            _put(entry, 4, _crc(entry[16:]), 4)
            payload[at : at + size] = entry
            changed += 1
        at += size + -size % 8
    return changed


def _seal(data: bytearray, places: list[int], payload: bytearray) -> None:
    """The round's payload back into its blocks."""
    for number, at in enumerate(places):
        size = _get(data, at + 44, 4)
        part = payload[number * (BLOCK - BLOCK_HEADER) :][:size]
        block = ffi.new("uint8_t[]", bytes(BLOCK_HEADER) + bytes(part).ljust(BLOCK - 112, b"\0"))
        fields = {
            "journal_id": _get(data, at + 8, 8),
            "generation": _get(data, at + 16, 8),
            "lsn": _get(data, at + 24, 8),
            "number": _get(data, at + 32, 4),
            "blocks_count": _get(data, at + 36, 4),
            "payload_bytes": size,
            "kind": KIND_ROUND,
        }
        lib.journal_block_seal(block, ffi.new("struct journal_block *", fields))
        data[at : at + BLOCK] = bytes(ffi.buffer(block))[:BLOCK]


def _crc(data: bytearray) -> int:
    return int(lib.crc32c(bytes(data), len(data)))


def _get(data: bytearray, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _put(data: bytearray, at: int, value: int, size: int) -> None:
    data[at : at + size] = int(value).to_bytes(size, "little")
