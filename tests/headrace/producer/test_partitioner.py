"""The partitioner's published vectors: other clients must compute the same numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.producer.partitioner import murmur2, partition_of

# key, murmur2 as unsigned 32 bits, partition of 12
VECTORS = [
    (b"", 275646681, 9),
    (b"abc", 479470107, 3),
    (b"21", 3321034988, 0),
    (b"foobar", 3504634814, 6),
    (b"a-little-bit-long-string", 3308985760, 8),
    (b"a-little-bit-longer-string", 2808662467, 11),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", 4236069325, 5),
]


@pytest.mark.parametrize(("key", "hashed", "partition"), VECTORS)
def test_published_keys_have_published_hashes(key: bytes, hashed: int, partition: int) -> None:
    assert murmur2(key) == hashed
    assert partition_of(key, 12) == partition


@given(key=st.binary(max_size=64), count=st.integers(1, 1024))
def test_every_key_has_one_partition_within_the_topic(key: bytes, count: int) -> None:
    assert partition_of(key, count) == partition_of(bytes(key), count)
    assert 0 <= partition_of(key, count) < count
