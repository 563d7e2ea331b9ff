"""partitioner.c against headrace/producer/partitioner.py, which every SDK follows."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.producer import partitioner
from native._engine_sim import lib


@given(st.binary(max_size=300), st.integers(min_value=1, max_value=100_000))
def test_every_key_goes_where_the_sdk_sends_it(key: bytes, partitions: int) -> None:
    assert lib.partitioner_hash(key, len(key)) == partitioner.murmur2(key)
    expected = partitioner.partition_of(key, partitions)
    assert lib.partitioner_of(key, len(key), partitions) == expected


def test_ten_thousand_ordinary_keys_agree_too() -> None:
    for number in range(10_000):
        key = b"order-%d" % number
        assert lib.partitioner_of(key, len(key), 12) == partitioner.partition_of(key, 12)
