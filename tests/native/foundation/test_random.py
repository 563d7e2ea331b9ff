"""random.c: the same seed gives the same world, and every answer of a range comes up."""

from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib


def seeded(seed: int) -> object:
    random = ffi.new("struct random *")
    lib.random_init(random, seed)
    return random


@given(st.integers(0, 2**64 - 1))
def test_the_same_seed_gives_the_same_numbers(seed: int) -> None:
    one, other = seeded(seed), seeded(seed)
    assert [lib.random_u64(one) for _ in range(20)] == [lib.random_u64(other) for _ in range(20)]


def test_neighbouring_seeds_give_different_numbers() -> None:
    assert len({lib.random_u64(seeded(seed)) for seed in range(1000)}) == 1000


@given(st.integers(0, 100), st.integers(0, 2**63))
def test_a_range_is_kept(width: int, low: int) -> None:
    random = seeded(low)
    drawn = {lib.random_between(random, low, low + width) for _ in range(50)}
    assert min(drawn) >= low
    assert max(drawn) <= low + width


def test_every_answer_is_about_equally_likely() -> None:
    random = seeded(1)
    counts = [0] * 7
    for _ in range(7000):
        counts[lib.random_below(random, 7)] += 1
    assert all(850 < count < 1150 for count in counts)
    assert 400 < sum(lib.random_chance(random, 1, 20) for _ in range(10000)) < 600
