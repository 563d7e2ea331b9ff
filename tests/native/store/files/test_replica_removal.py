"""replica_removal.c: a removal comes to its end from any state, in its order, whatever fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib

if TYPE_CHECKING:
    from native._engine_sim import CData

SEEN = ("undurable", "withdrawable", "leaving", "writing", "queued", "files", "turn", "names")
SECOND_NS = 1_000_000_000
ISSUES = {
    lib.REMOVAL_LIST,
    lib.REMOVAL_UNLINK,
    lib.REMOVAL_SYNC_FOLDER,
    lib.REMOVAL_PART,
    lib.REMOVAL_SYNC_PARENT,
}
WHOLE = [
    lib.REMOVAL_FORGET,
    lib.REMOVAL_LIST,
    lib.REMOVAL_UNLINK,
    lib.REMOVAL_SYNC_FOLDER,
    lib.REMOVAL_PART,
    lib.REMOVAL_SYNC_PARENT,
    lib.REMOVAL_DROP,
]


def doomed() -> CData:
    removal = ffi.new("struct replica_removal *")
    lib.replica_removal_doom(removal)
    return removal


def step(removal: CData, now_ns: int = 0, **seen: int) -> int:
    what = ffi.new("struct replica_removal_seen *", {"turn": 1, **seen})
    return int(lib.replica_removal_step(removal, what, now_ns))


def carried_out(removal: CData, action: int, status: int = 0, now_ns: int = 0) -> None:
    """One action and its answer."""
    if action == lib.REMOVAL_FORGET:
        lib.replica_removal_move(removal, action, 0)
        assert step(removal, now_ns) == lib.REMOVAL_WAIT
        lib.replica_removal_forgotten(removal)
    elif action in ISSUES:
        lib.replica_removal_move(removal, action, 1)
        assert step(removal, now_ns) == lib.REMOVAL_WAIT
        lib.replica_removal_done(removal, status)


def test_the_whole_way_has_one_order() -> None:
    removal = doomed()
    actions: list[int] = []
    while not actions or actions[-1] != lib.REMOVAL_DROP:
        action = step(removal, names=int(lib.REMOVAL_UNLINK not in actions))
        actions.append(action)
        carried_out(removal, action)
    assert actions == WHOLE


def test_no_tombstone_while_an_entry_of_the_group_may_follow_it() -> None:
    removal = doomed()
    assert step(removal, undurable=1) == lib.REMOVAL_WAIT
    assert step(removal, leaving=1) == lib.REMOVAL_WAIT
    assert step(removal, withdrawable=1, undurable=1) == lib.REMOVAL_WITHDRAW
    assert step(removal) == lib.REMOVAL_FORGET


def test_no_file_goes_while_one_is_written_or_open_or_another_removal_lists() -> None:
    removal = doomed()
    carried_out(removal, step(removal))
    assert step(removal, writing=1, queued=1, files=1) == lib.REMOVAL_WAIT
    assert step(removal, queued=1, files=1) == lib.REMOVAL_DISCARD
    assert step(removal, files=1) == lib.REMOVAL_CLOSE
    assert step(removal, turn=0) == lib.REMOVAL_WAIT
    assert step(removal) == lib.REMOVAL_LIST


def test_a_folder_that_was_never_made_is_as_good_as_synced() -> None:
    removal = doomed()
    carried_out(removal, step(removal))
    carried_out(removal, step(removal))
    carried_out(removal, step(removal), lib.STATUS_FILE_NOT_FOUND)
    assert step(removal) == lib.REMOVAL_PART


def test_what_a_start_found_waits_a_second_then_lists() -> None:
    removal = ffi.new("struct replica_removal *")
    lib.replica_removal_found(removal, 5 * SECOND_NS)
    assert step(removal, 6 * SECOND_NS - 1) == lib.REMOVAL_WAIT
    assert step(removal, 6 * SECOND_NS) == lib.REMOVAL_LIST


SIGHTS = st.fixed_dictionaries({name: st.integers(0, 1) for name in SEEN})


@given(
    sights=st.lists(st.tuples(SIGHTS, st.booleans(), st.integers(0, 70 * SECOND_NS)), max_size=60)
)
def test_it_comes_to_its_end_whatever_came_before(
    sights: list[tuple[dict[str, int], bool, int]],
) -> None:
    removal = doomed()
    now_ns, tombstone, dropped = 0, False, False
    for sight, fails, passed_ns in sights:
        now_ns += passed_ns
        action = step(removal, now_ns, **sight)
        tombstone = tombstone or action == lib.REMOVAL_FORGET
        assert action not in ISSUES or tombstone
        dropped = action == lib.REMOVAL_DROP
        if dropped:
            break
        carried_out(removal, action, lib.STATUS_IO_FAILED if fails else 0, now_ns)
        assert removal.retry_ns <= now_ns + 60 * SECOND_NS
    now_ns += 60 * SECOND_NS
    actions = []
    while not dropped:
        action = step(removal, now_ns)
        if action == lib.REMOVAL_PAUSE:
            now_ns += 60 * SECOND_NS
        carried_out(removal, action, 0, now_ns)
        actions.append(action)
        dropped = action == lib.REMOVAL_DROP
        assert len(actions) < 20
