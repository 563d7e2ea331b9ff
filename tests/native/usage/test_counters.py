"""counters.c: windows follow each other, within hours, whatever the clock does."""

from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib

HOUR_US = 3_600_000_000
WINDOW_NS = 9_000_000_000

# Small steps, steps over an hour, leaps, and steps back.
steps = st.lists(
    st.one_of(
        st.integers(-5_000_000, 20_000_000),
        st.sampled_from([0, 1, -1, HOUR_US - 1, HOUR_US, HOUR_US + 1, 30 * HOUR_US]),
    ),
    max_size=30,
)


@given(st.integers(HOUR_US, 3 * HOUR_US), steps)
def test_windows_follow_each_other_and_none_lies_in_two_hours(
    begin_us: int, moves: list[int]
) -> None:
    counting = ffi.new("struct counting *")
    lib.counting_begin(counting, begin_us, 5, WINDOW_NS)
    now_us, last_end_us = begin_us, begin_us
    for move in moves:
        now_us = max(0, now_us + move)
        start_us, end_us = counting.start_us, lib.counting_end(counting, now_us)
        assert last_end_us <= start_us < end_us
        assert start_us // HOUR_US == (end_us - 1) // HOUR_US
        assert end_us <= max(now_us, start_us + 1)
        assert max(begin_us, start_us // HOUR_US * HOUR_US) == counting.floor_us
        if lib.counting_hour_over(counting, now_us):
            assert end_us == (start_us // HOUR_US + 1) * HOUR_US
        lib.counting_next(counting, now_us, 5)
        # What is counted from now on lies in the hour that it is now, unless that was before.
        assert counting.start_us // HOUR_US >= min(now_us, end_us) // HOUR_US
        assert not lib.counting_hour_over(counting, now_us)
        last_end_us = end_us


def test_a_window_is_due_after_its_time() -> None:
    counting = ffi.new("struct counting *")
    lib.counting_begin(counting, HOUR_US, 1000, WINDOW_NS)
    assert not lib.counting_due(counting, 1000 + WINDOW_NS - 1)
    assert lib.counting_due(counting, 1000 + WINDOW_NS)
    lib.counting_next(counting, HOUR_US + 1, 1000 + WINDOW_NS)
    assert not lib.counting_due(counting, 1001 + WINDOW_NS)
