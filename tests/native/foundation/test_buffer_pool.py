"""buffer_pool.c: blocks never overlap, everything comes back, a full pool says so."""

from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib

UNIT = 16 << 20


class Pool:
    def __init__(self, size: int = UNIT) -> None:
        self.pool = ffi.new("struct buffer_pool *")
        self.memory = ffi.new("uint8_t[]", size + 4096)
        first = int(ffi.cast("uintptr_t", self.memory))
        region = self.memory + (-first % 4096)
        self.table = ffi.new("uint8_t[]", int(lib.buffer_pool_table_bytes(size)))
        lib.buffer_pool_init(self.pool, region, size, self.table)

    def take(self, size: int) -> int:
        return int(ffi.cast("uintptr_t", lib.buffer_take(self.pool, size)))

    def give(self, buffer: int) -> None:
        lib.buffer_give(self.pool, ffi.cast("void *", buffer))


sizes = st.one_of(
    st.integers(min_value=0, max_value=5000), st.integers(min_value=5001, max_value=3 << 20)
)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), sizes, st.integers(min_value=0)), max_size=120))
def test_buffers_never_overlap_and_all_memory_comes_back(
    steps: list[tuple[bool, int, int]],
) -> None:
    pool = Pool()
    live: list[tuple[int, int]] = []
    for take, size, pick in steps:
        if take:
            buffer = pool.take(size)
            if buffer == 0:
                continue
            assert buffer % 16 == 0
            assert lib.buffer_capacity(ffi.cast("void *", buffer)) >= size
            for other, other_size in live:
                assert buffer + size <= other or other + other_size <= buffer
            live.append((buffer, size))
        elif live:
            pool.give(live.pop(pick % len(live))[0])
    for buffer, _ in live:
        pool.give(buffer)
    assert pool.pool.used_bytes == 0


def test_large_blocks_merge_again() -> None:
    pool = Pool()
    halves = [pool.take((UNIT // 4) - 16) for _ in range(4)]
    assert all(halves)
    assert pool.take(8192) == 0
    for half in halves:
        pool.give(half)
    assert pool.take(UNIT - 16) != 0


def test_more_than_a_block_can_hold_is_refused_and_counted() -> None:
    pool = Pool()
    assert pool.take(UNIT) == 0
    assert pool.pool.refused_count == 1


def test_a_grown_buffer_keeps_its_bytes() -> None:
    pool = Pool()
    buffer = lib.buffer_take(pool.pool, 10)
    ffi.memmove(buffer, b"0123456789", 10)
    grown = lib.buffer_resize(pool.pool, buffer, 100_000)
    assert bytes(ffi.buffer(grown, 10)) == b"0123456789"
