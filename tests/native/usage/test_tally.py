"""tally.c against a dictionary: every sum is told once, to whoever caused it or to nobody."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from native._engine_sim import ffi, lib

EGRESS, REQUESTS = 0, 1
ROWS_MAX = 65536

Key = tuple[int, int, int]


class Tally:
    """A tally of so many rows; the first is nobody's."""

    def __init__(self, rows: int = ROWS_MAX) -> None:
        self.memory = ffi.new("uint64_t[]", (int(lib.tally_bytes()) + 7) // 8)
        self.tally = ffi.new("struct tally *")
        lib.tally_init(self.tally, self.memory)
        self.tally.rows_limit = rows

    def add(self, key: Key, meter: int, amount: int) -> None:
        topic, revision, principal = key
        row = {"topic": topic, "created_revision": revision, "principal": principal}
        lib.tally_add(self.tally, ffi.new("struct tally_key *", row), meter, amount)

    def told(self) -> list[tuple[Key, int, int, int]]:
        """(key, meter, delta, cumulative) of a window."""
        change = ffi.new("struct tally_change *")
        found = []
        while lib.tally_next(self.tally, change):
            key = (change.key.topic, change.key.created_revision, change.key.principal)
            found.append((key, change.meter, change.delta, change.cumulative))
        lib.tally_turn(self.tally)
        return found


# Few keys and fewer rows: rows are reused, and some find none.
keys = st.tuples(
    st.integers(min_value=1, max_value=4),
    st.integers(min_value=1, max_value=2),
    st.integers(min_value=16, max_value=17),
)
adds = st.tuples(keys, st.sampled_from([EGRESS, REQUESTS]), st.integers(1, 1 << 40))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(adds, st.none()), max_size=80), st.sampled_from([1, 2, 5, ROWS_MAX]))
def test_what_is_told_is_what_was_added_whoever_found_room(
    steps: list[tuple[Key, int, int] | None], rows: int
) -> None:
    tally = Tally(rows)
    added, told = Counter[tuple[Key, int]](), Counter[tuple[Key, int]]()
    by_meter, told_by_meter = Counter[int](), Counter[int]()
    for step in [*steps, None]:
        if step is not None:
            key, meter, amount = step
            tally.add(key, meter, amount)
            added[key, meter] += amount
            by_meter[meter] += amount
            continue
        window = tally.told()
        assert len({(key, meter) for key, meter, _, _ in window}) == len(window)
        for key, meter, delta, cumulative in window:
            told[key, meter] += delta
            told_by_meter[meter] += delta
            # A row that began anew says so by its cumulative.
            assert cumulative in (delta, told[key, meter]) or rows < ROWS_MAX
            assert delta > 0
    assert told_by_meter == by_meter
    assert all(told[key] <= added[key] for key in added)
    if rows == ROWS_MAX:
        assert told == added
        assert tally.tally.unattributed == 0
    elif any(key[0] == 0 for key, _ in told):
        assert tally.tally.unattributed > 0


def test_a_row_that_is_quiet_for_two_windows_makes_room_and_a_busy_one_does_not() -> None:
    tally = Tally(rows=3)
    quiet, busy = (1, 1, 16), (2, 1, 16)
    tally.add(quiet, EGRESS, 5)
    for _ in range(2):
        tally.add(busy, REQUESTS, 1)
        tally.told()
    tally.add(busy, REQUESTS, 1)
    tally.add((3, 1, 16), REQUESTS, 7)
    assert tally.tally.reused == 1
    # The second newcomer finds none.
    tally.add((4, 1, 16), REQUESTS, 9)
    assert tally.tally.unattributed == 1
    assert sorted(tally.told()) == [
        ((0, 0, 0), REQUESTS, 9, 9),
        (busy, REQUESTS, 1, 3),
        ((3, 1, 16), REQUESTS, 7, 7),
    ]


def test_a_sum_goes_on_modulo_two_to_the_63rd() -> None:
    tally = Tally()
    for _ in range(3):
        tally.add((1, 1, 16), EGRESS, (1 << 62) + 1)
    assert tally.told() == [((1, 1, 16), EGRESS, 3 * ((1 << 62) + 1), (1 << 62) + 3)]


def test_the_whole_table_is_used_before_anything_is_nobodys() -> None:
    tally = Tally()
    for topic in range(1, ROWS_MAX + 5):
        tally.add((topic, 1, 16), REQUESTS, 1)
    found = tally.told()
    assert len(found) == ROWS_MAX
    assert ((0, 0, 0), REQUESTS, 5, 5) in found
