"""Which partition a key belongs to. Pure.

The test vectors in tests/headrace/producer/test_partitioner.py are published.

murmur2 (Austin Appleby), 32 bits, seed 0x9747b28c, over the key's bytes; the partition is the hash
without its sign bit modulo the partition count. The same key goes to the same partition from every
client that follows this rule, and an empty key is a key.
"""

from __future__ import annotations

from functools import lru_cache

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The unsigned 32-bit murmur2 hash."""
    length = len(data)
    h = _SEED ^ length
    aligned = length & ~3
    for i in range(0, aligned, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    rest = length & 3
    if rest:
        h = (h ^ int.from_bytes(data[aligned:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


# Keys repeat; a hit costs a tenth of a hash in Python. Bounded, so that unique keys cannot fill the
# memory.
@lru_cache(maxsize=65536)
def _hash_positive(key: bytes) -> int:
    return murmur2(key) & 0x7FFFFFFF


def partition_of(key: bytes, partitions_count: int) -> int:
    """The partition index of `key` among `partitions_count`."""
    return _hash_positive(key) % partitions_count
