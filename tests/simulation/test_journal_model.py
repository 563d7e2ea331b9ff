"""The journal's rules as a model: Hypothesis looks for a history that breaks a promise."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.simulation.model_journal import (
    Block,
    Disk,
    Entry,
    Found,
    Group,
    Journal,
    Place,
    identity,
    replay,
    walk,
)

GROUPS = 3
EXTENTS, BLOCKS = 10, 6
RELEASE_EXTENTS = 4  # what one release may need: four rounds


class Life(RuleBasedStateMachine):
    """One shard: produces, syncs, is killed or loses power, releases extents, suffers rot."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = Disk(EXTENTS, BLOCKS)
        self.journal = Journal(self.disk)
        self.groups = [Group() for _ in range(GROUPS)]
        self.acked: list[list[int]] = [[] for _ in range(GROUPS)]
        self.files: dict[tuple[int, int], Group] = {}
        self.value = 0
        self.rotten: set[int] = set()  # groups that rot may concern
        self.rots = 0

    # ---- the living shard ----

    def _ops(self, wanted: list[int]) -> tuple[Entry, ...]:
        """Prepare one op for each wanted group that goes on (V3)."""
        entries = []
        heads = [(group.op, group.checksum) for group in self.groups]
        for group in wanted:
            if self.groups[group].damaged_from:
                continue
            op, parent = heads[group]
            self.value += 1
            entries.append(Entry("op", group, op + 1, self.value, parent))
            heads[group] = (op + 1, identity(parent, op + 1, self.value))
        return tuple(entries)

    def _execute(self, entries: tuple[Entry, ...]) -> None:
        """The round is synced: only now are ops executed and answered."""
        for entry in entries:
            if entry.kind == "op" and self.groups[entry.group].take(entry):
                self.acked[entry.group].append(entry.value)

    def _round(self, entries: tuple[Entry, ...]) -> None:
        made = self.journal.write(entries)
        self.journal.synced(made)
        self._execute(made.entries)

    def _room(self) -> bool:
        """J6: ordinary rounds leave what a release needs."""
        return len(self.journal.free()) > RELEASE_EXTENTS

    def _releasable(self) -> bool:
        free = len(self.journal.free())
        return free >= RELEASE_EXTENTS and self.journal.extent_cycle > self.journal.oldest + 1

    @rule(wanted=st.lists(st.integers(0, GROUPS - 1), max_size=4))
    def produce(self, wanted: list[int]) -> None:
        """One round, or a witness round if nothing is gathered."""
        if self._room():
            self._round(self._ops(wanted))

    @precondition(lambda self: self._releasable())
    @rule()
    def release(self) -> None:
        """Give the oldest extent back: checkpoints, then what must be appended again, a witness."""
        extent = next(e for e, g in self.journal.extent_cycles.items() if g == self.journal.oldest)
        blocks = {self.disk.read((extent, at)) for at in range(BLOCKS)}
        live = [
            entry
            for block in blocks
            if block and not block.rotten and block.extent_cycle == self.journal.oldest
            for entry in block.round.entries
            if block.number == 0
        ]
        again = sorted({e for e in live if self.groups[e.group].damaged_from}, key=repr)
        saved = []
        for group, state in enumerate(self.groups):
            if state.damaged_from or not state.op:
                continue
            self.files[group, state.op] = Group(state.op, state.checksum, list(state.values))
            saved.append(Entry("checkpoint", group, state.op))
        for entries in (saved, again[:BLOCKS], again[BLOCKS:]):
            if entries:
                self._round(tuple(entries))
        self.journal.oldest += 1
        self._round(())  # the witness says so: only now may the extent be written over

    # ---- the world ----

    @precondition(lambda self: self._room())
    @rule(data=st.data(), wanted=st.lists(st.integers(0, GROUPS - 1), min_size=1, max_size=4))
    def power_cut(self, data: st.DataObject, wanted: list[int]) -> None:
        """In the middle of a round: any of its blocks may have reached the disk."""
        self.journal.write(self._ops(wanted))
        places = sorted(self.disk.cache)
        kept: set[Place] = set(data.draw(st.lists(st.sampled_from(places)))) if places else set()
        self.disk.power_cut(kept)
        self._recover()

    @precondition(lambda self: self._room())
    @rule(wanted=st.lists(st.integers(0, GROUPS - 1), max_size=4))
    def kill(self, wanted: list[int]) -> None:
        """Only the process dies: the page cache keeps what was not synced."""
        self.journal.write(self._ops(wanted))
        self._recover()

    @precondition(lambda self: self.journal.previous > 1 and not self.rots and self._room())
    @rule(data=st.data())
    def rot(self, data: st.DataObject) -> None:
        """One durable block of a live extent goes bad; then a restart."""
        live = {e for e, g in self.journal.extent_cycles.items() if g >= self.journal.oldest}
        places = sorted(
            place
            for place, block in self.disk.durable.items()
            if place[0] in live and block.extent_cycle == self.journal.extent_cycles[place[0]]
        )
        if not places:
            return
        place = data.draw(st.sampled_from(places))
        block = self.disk.durable[place]
        self.rotten = {entry.group for entry in block.round.entries}
        behind = place[0] == self.journal.extent and place[1] >= self.journal.block
        if block.round.lsn == self.journal.previous or behind:
            # The last round, or what a torn one left behind it: nothing above names it, and nobody
            # can tell the one from the other.
            self.rotten = set(range(GROUPS))
        self.rots += 1
        self.disk.rot(place)
        self._recover()

    # ---- recovery ----

    def _recover(self) -> None:
        found = walk(self.disk)
        first = replay(found, self.files, GROUPS)
        assert replay(walk(self.disk), self.files, GROUPS) == first
        before = [group.damaged_from for group in self.groups]
        self._resume(found)
        self.groups = first
        for group, state in enumerate(self.groups):
            if before[group]:
                assert state.damaged_from, "J4: damage is remembered"
            if state.damaged_from:
                assert group in self.rotten or before[group], "V1: others go on"
            else:
                count = len(self.acked[group])
                assert state.values[:count] == self.acked[group], "acknowledged and lost"
                self.acked[group] = list(state.values)
        fresh = [
            Entry("abstain", group, state.damaged_from - 1)
            for group, state in enumerate(self.groups)
            if state.damaged_from and not before[group]
        ]
        if fresh:
            self._round(tuple(fresh))
        self._round(())  # J3: nothing is answered before this witness
        for _ in range(EXTENTS):
            if not self._room() and self._releasable():
                self.release()

    def _resume(self, found: Found) -> None:
        """Stand behind the last round; write it again (J3); skip the lsn a torn round had."""
        journal = Journal(self.disk)
        journal.extent_cycles = {e: g for e, g in found.extent_cycles.items() if g <= found.end[0]}
        if found.rounds:
            _, last = found.rounds[-1]
            journal.extent_cycle, journal.extent, journal.block = found.end
            journal.oldest = journal.kept = last.oldest
            journal.previous, journal.before = last.lsn, last.previous
            journal.previous_entries = last.entries
            journal.lsn = last.lsn + 2
            for place, block in self.disk.durable.items():
                if block.round.lsn == last.lsn:
                    self.disk.write(place, block)
            self.disk.sync(last.lsn)
        self.journal = journal

    @invariant()
    def a_walk_of_the_live_disk_shows_what_was_acknowledged(self) -> None:
        """At any moment, were it to stop here."""
        states = replay(walk(self.disk), self.files, GROUPS)
        for group, state in enumerate(states):
            if group not in self.rotten and not self.groups[group].damaged_from:
                assert not state.damaged_from
                assert state.values[: len(self.acked[group])] == self.acked[group]


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def torn(kept: set[int]) -> Found:
    """A round of three blocks of which some reached the disk, behind a whole one."""
    disk = Disk(EXTENTS, BLOCKS)
    journal = Journal(disk)
    journal.synced(journal.write((Entry("op", 0, 1, 7),)))
    journal.write(tuple(Entry("op", group, 2, 8) for group in range(3)))
    disk.power_cut({(0, 1 + number) for number in kept})
    return walk(disk)


def test_a_round_with_an_older_block_is_absent_and_stops_nobody() -> None:
    for kept in (set[int](), {0}, {1, 2}, {0, 2}):
        found = torn(kept)
        assert not found.tail_rotten
        assert [made.lsn for _, made in found.rounds] == [1]


def test_rot_in_what_a_torn_round_left_behind_the_end_may_have_been_a_round() -> None:
    disk = Disk(EXTENTS, BLOCKS)
    journal = Journal(disk)
    journal.synced(journal.write((Entry("op", 0, 1, 7),)))
    journal.write((Entry("op", 0, 2, 8), Entry("op", 0, 3, 9)))
    disk.power_cut({(0, 2)})
    journal.lsn = 3
    journal.synced(journal.write(()))
    assert not walk(disk).tail_rotten
    disk.rot((0, 2))
    assert walk(disk).tail_rotten


def test_a_round_without_an_older_block_is_unknown_if_one_is_rotten() -> None:
    disk = Disk(EXTENTS, BLOCKS)
    journal = Journal(disk)
    journal.synced(journal.write((Entry("op", 0, 1, 7), Entry("op", 1, 1, 8))))
    disk.rot((0, 1))
    assert walk(disk).tail_rotten
    assert isinstance(disk.read((0, 1)), Block)
