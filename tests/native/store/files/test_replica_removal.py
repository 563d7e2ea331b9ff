"""replica_removal.c: a removal comes to its end from any state, in its order, whatever fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from native._engine_sim import ffi, lib

if TYPE_CHECKING:
    from native._engine_sim import CData

SEEN = ("undurable", "held", "leaving", "writing", "queued", "files", "turn", "names")
SECOND_NS = 1_000_000_000
ISSUES = {
    lib.RECONCILE_LIST,
    lib.RECONCILE_UNLINK,
    lib.RECONCILE_SYNC_FOLDER,
    lib.RECONCILE_PART,
    lib.RECONCILE_SYNC_PARENT,
}
WHOLE = [
    lib.RECONCILE_FORGET,
    lib.RECONCILE_LIST,
    lib.RECONCILE_UNLINK,
    lib.RECONCILE_SYNC_FOLDER,
    lib.RECONCILE_PART,
    lib.RECONCILE_SYNC_PARENT,
    lib.RECONCILE_DROP,
]


def doomed() -> CData:
    removal = ffi.new("struct reconcile *")
    lib.reconcile_doom(removal)
    return removal


def step(removal: CData, now_ns: int = 0, **seen: int) -> int:
    what = ffi.new("struct reconcile_seen *", {"turn": 1, **seen})
    return int(lib.reconcile_step(removal, what, now_ns))


def carried_out(removal: CData, action: int, status: int = 0, now_ns: int = 0) -> None:
    """One action and its answer."""
    if action == lib.RECONCILE_FORGET:
        lib.reconcile_move(removal, action, 0)
        assert step(removal, now_ns) == lib.RECONCILE_WAIT
        lib.reconcile_forgotten(removal)
    elif action in ISSUES:
        lib.reconcile_move(removal, action, 1)
        assert step(removal, now_ns) == lib.RECONCILE_WAIT
        lib.reconcile_done(removal, status)


def test_the_whole_way_has_one_order() -> None:
    removal = doomed()
    actions: list[int] = []
    while not actions or actions[-1] != lib.RECONCILE_DROP:
        action = step(removal, names=int(lib.RECONCILE_UNLINK not in actions))
        actions.append(action)
        carried_out(removal, action)
    assert actions == WHOLE


def test_no_tombstone_while_an_entry_of_the_group_may_follow_it() -> None:
    removal = doomed()
    assert step(removal, undurable=1) == lib.RECONCILE_WAIT
    assert step(removal, leaving=1) == lib.RECONCILE_WAIT
    assert step(removal, held=1, undurable=1) == lib.RECONCILE_WITHDRAW
    assert step(removal) == lib.RECONCILE_FORGET


def test_no_file_goes_while_one_is_written_or_open_or_another_removal_lists() -> None:
    removal = doomed()
    carried_out(removal, step(removal))
    assert step(removal, writing=1, queued=1, files=1) == lib.RECONCILE_WAIT
    assert step(removal, queued=1, files=1) == lib.RECONCILE_DISCARD
    assert step(removal, files=1) == lib.RECONCILE_CLOSE
    assert step(removal, turn=0) == lib.RECONCILE_WAIT
    assert step(removal) == lib.RECONCILE_LIST


def test_a_folder_that_was_never_made_is_as_good_as_synced() -> None:
    removal = doomed()
    carried_out(removal, step(removal))
    carried_out(removal, step(removal))
    carried_out(removal, step(removal), lib.STATUS_FILE_NOT_FOUND)
    assert step(removal) == lib.RECONCILE_PART


def test_what_a_start_found_waits_a_second_then_lists() -> None:
    removal = ffi.new("struct reconcile *")
    lib.reconcile_found(removal, 5 * SECOND_NS)
    assert step(removal, 6 * SECOND_NS - 1) == lib.RECONCILE_WAIT
    assert step(removal, 6 * SECOND_NS) == lib.RECONCILE_LIST


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
        tombstone = tombstone or action == lib.RECONCILE_FORGET
        assert action not in ISSUES or tombstone
        dropped = action == lib.RECONCILE_DROP
        if dropped:
            break
        carried_out(removal, action, lib.STATUS_IO_FAILED if fails else 0, now_ns)
        assert removal.retry_ns <= now_ns + 60 * SECOND_NS
    now_ns += 60 * SECOND_NS
    actions = []
    while not dropped:
        action = step(removal, now_ns)
        if action == lib.RECONCILE_PAUSE:
            now_ns += 60 * SECOND_NS
        carried_out(removal, action, 0, now_ns)
        actions.append(action)
        dropped = action == lib.RECONCILE_DROP
        assert len(actions) < 20
