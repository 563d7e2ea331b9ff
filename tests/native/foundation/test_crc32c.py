"""crc32c.c: the known value, and the accelerated way against the tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import lib


def test_the_check_value_of_the_standard_comes_out() -> None:
    assert lib.crc32c(b"123456789", 9) == 0xE3069283
    assert lib.crc32c(b"", 0) == 0


@given(st.binary(max_size=4096), st.integers(0, 4096))
def test_every_way_and_every_split_gives_the_same_sum(data: bytes, at: int) -> None:
    whole = lib.crc32c(data, len(data))
    assert lib.crc32c_portable(0, data, len(data)) == whole
    head, tail = data[:at], data[at:]
    assert lib.crc32c_extend(lib.crc32c(head, len(head)), tail, len(tail)) == whole


@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 64, 65, 4095, 4096])
def test_a_flipped_bit_changes_the_sum_at_every_size(size: int) -> None:
    data = bytearray(range(256)) * 16
    before = lib.crc32c(bytes(data[:size]), size)
    data[size // 2] ^= 1
    assert lib.crc32c(bytes(data[:size]), size) != before
