"""offset_index.c: a lookup never lands behind its batch, however little memory there is."""

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib
from tests.support.builders.storage import Arena

STRIDE = 65536


class Index:
    """An index and its pool."""

    def __init__(self, blocks: int) -> None:
        self.arena = Arena(lib.offset_index_pool_bytes(blocks))
        self.pool = ffi.new("struct offset_index_pool *")
        assert lib.offset_index_pool_init(self.pool, self.arena.arena, blocks) == 0
        self.index = ffi.new("struct offset_index *")
        lib.offset_index_init(self.index)

    def note(self, offset: int, position: int, size: int, *, other: "Index | None" = None) -> None:
        """The next batch; its append time is ten times its offset. `other` lends its pool."""
        batch = ffi.new(
            "struct offset_index_entry *",
            {"offset": offset, "position": position, "time_us": 10 * offset},
        )
        lib.offset_index_note(self.index, (other or self).pool, batch, size)

    def find_time(self, time_us: int) -> tuple[int, int]:
        """(offset, position) of the entry found."""
        entry = lib.offset_index_find_time(self.index, 0, time_us)
        return entry.offset, entry.position

    def find(self, offset: int, base: int = 0) -> tuple[int, int]:
        """(offset, position) of the entry found."""
        entry = lib.offset_index_find(self.index, base, offset)
        return entry.offset, entry.position


@given(
    sizes=st.lists(st.integers(200, 200_000), min_size=1, max_size=600),
    blocks=st.integers(1, 4),
    looked_for=st.floats(0, 1),
)
def test_a_lookup_finds_a_batch_at_or_before_the_offset_and_near(
    sizes: list[int], blocks: int, looked_for: float
) -> None:
    index = Index(blocks)
    position = 0
    begins: list[int] = []
    for offset, size in enumerate(sizes):
        index.note(offset, position, size)
        begins.append(position)
        position += size
    offset = int(looked_for * (len(sizes) - 1))
    found_offset, found_position = index.find(offset)
    assert found_offset <= offset
    assert begins[found_offset] == found_position
    # No further than the stride (grown when memory ran out) and one batch.
    assert begins[offset] - found_position < index.index.stride_bytes + 200_000
    assert bisect_right(begins, found_position) == found_offset + 1
    assert index.index.walked_bytes == position
    # Times grow with offsets: the same batch is found by either, and between two by the earlier.
    for time_us in (10 * offset, 10 * offset + 9):
        assert index.find_time(time_us) == (found_offset, found_position)
    assert index.find_time(-1) == (0, 0)


def test_an_empty_pool_makes_the_index_coarser_instead_of_failing() -> None:
    index = Index(1)
    for offset in range(500):
        index.note(offset, offset * STRIDE, STRIDE)
    assert index.index.stride_bytes > STRIDE
    assert index.find(499)[0] > 450


def test_memory_goes_back_to_the_pool() -> None:
    index = Index(4)
    for offset in range(200):
        index.note(offset, offset * STRIDE, STRIDE)
    assert index.pool.free_count < 4
    lib.offset_index_deinit(index.index, index.pool)
    assert index.pool.free_count == 4
    assert index.find(7) == (0, 0)


def test_without_any_memory_an_index_has_entries_of_its_own() -> None:
    rich, poor = Index(1), Index(1)
    for offset in range(100):
        rich.note(offset, offset * STRIDE, STRIDE)
    assert rich.pool.free_count == 0
    count = 5000
    for offset in range(count):
        poor.note(offset, offset * STRIDE, STRIDE, other=rich)
    for offset in range(0, count, 97):
        found, position = poor.find(offset)
        assert position == found * STRIDE
        assert offset - found < count // 3
