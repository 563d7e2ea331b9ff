"""A small model of what lies beside the journal: checkpoint files (J7) and irreversible acts (V8).

Owns the order of one group's steps: a checkpoint's file, its folder, its entry, the witness, the
old file's removal; the metadata floor and the act that stands on it; a release and what it writes
again. Every step ends where a crash may come. Refuses several groups and damage to sealed rounds:
model_journal.py has those. A rule in ``broken`` is left out, so that a test can see it missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.simulation.model_journal import Disk, Entry, Found, Journal, Place, walk

EXTENTS, BLOCKS = 10, 6
RELEASE_EXTENTS = 4  # what one release may need

RULES = (
    "J3: the last round is written again",
    "J7: the file is synced before its entry",
    "J7: the folder is synced before its entry",
    "J7: the old file waits for the witness",
    "J7: a release writes the smaller",
    "J7: an extent waits for the witness",
    "V8: the floor is durable before the act",
)
FLOOR_AGAIN = "V8: a release writes the floor again"


class Lost(AssertionError):
    """A promise is broken: what an entry names is not there."""


@dataclass
class Folder:
    """Files by name; names and bytes become durable apart from each other."""

    values: dict[int, tuple[int, ...]] = field(default_factory=dict)
    names: set[int] = field(default_factory=set)
    names_durable: set[int] = field(default_factory=set)
    synced: set[int] = field(default_factory=set)
    torn: set[int] = field(default_factory=set)

    def write(self, name: int, values: tuple[int, ...]) -> None:
        """Make a file; nothing of it is durable."""
        self.values[name] = values
        self.names.add(name)
        self.synced.discard(name)
        self.torn.discard(name)

    def power_cut(self, kept: set[int]) -> None:
        """Of names and bytes that were not synced only those of ``kept`` are as they were seen."""
        changed = self.names ^ self.names_durable
        self.names = {n for n in self.names | self.names_durable if self._stays(n, changed, kept)}
        self.names_durable = set(self.names)
        self.torn |= {n for n in self.names - self.synced if n not in kept}
        self.synced = set(self.names)

    def _stays(self, name: int, changed: set[int], kept: set[int]) -> bool:
        if name in changed and name not in kept:
            return name in self.names_durable
        return name in self.names

    def read(self, name: int) -> tuple[int, ...]:
        """The bytes of a whole file."""
        if name not in self.names or name in self.torn:
            raise Lost(f"checkpoint file {name}")
        return self.values[name]


@dataclass(frozen=True, slots=True)
class Restored:
    """What a start without anybody's help finds."""

    values: tuple[int, ...]
    applied: int  # metadata ops that it may act upon: up to checkpoint and floor
    checkpoint: int
    name: int
    floor: int


def restore(found: Found, folder: Folder) -> Restored:
    """The newest checkpoint, the ops above it, the floor."""
    oldest = found.rounds[-1][1].oldest if found.rounds else 0
    live = [entry for g, made in found.rounds if g >= oldest for entry in made.entries]
    saved = [entry for entry in live if entry.kind == "checkpoint"]
    values: tuple[int, ...] = ()
    checkpoint = name = 0
    if saved:
        newest = max(saved, key=lambda entry: entry.op)
        checkpoint, name = newest.op, newest.value
        values = folder.read(name)
    ops = {entry.op: entry.value for entry in live if entry.kind == "op"}
    while len(values) + 1 in ops:
        values = (*values, ops[len(values) + 1])
    floor = max((entry.op for entry in live if entry.kind == "floor"), default=0)
    applied = min(max(checkpoint, floor), len(values))
    return Restored(values, applied, checkpoint, name, floor)


@dataclass
class Shard:
    """One life of the group, step by step; ``acked`` and ``acted`` outlive it."""

    disk: Disk
    folder: Folder
    broken: str = ""
    journal: Journal = field(init=False)
    values: tuple[int, ...] = ()
    checkpoint: int = 0
    name: int = 0
    floor: int = 0
    acted: int = 0  # the highest op that caused something irreversible
    acked: int = 0
    settled: int = 0  # ops that stand below the last round

    def __post_init__(self) -> None:
        self.journal = Journal(self.disk)

    def keeps(self, rule: str) -> bool:
        """False if this is the rule left out."""
        return rule != self.broken

    def round(self, *entries: Entry) -> Iterator[None]:
        """Write, may crash, sync."""
        made = self.journal.write(entries)
        yield
        self.journal.synced(made)
        self.settled = len(self.values)
        for entry in entries:
            if entry.kind == "op" and entry.op > len(self.values):
                self.values = (*self.values, entry.value)
        self.acked = len(self.values)

    def produce(self, count: int) -> Iterator[None]:
        """A round of new ops, or a witness round."""
        head = len(self.values)
        ops = [Entry("op", 0, head + n, (head + n) * 10 + count) for n in range(1, count + 1)]
        yield from self.round(*ops)

    def save(self) -> Iterator[None]:
        """A checkpoint in a file: file, folder, entry, witness, the old one's removal (J7)."""
        old, name, op = self.name, max(self.folder.values, default=0) + 1, len(self.values)
        if op == self.checkpoint:
            return
        self.folder.write(name, self.values)
        yield
        if self.keeps("J7: the file is synced before its entry"):
            self.folder.synced.add(name)
        yield
        if self.keeps("J7: the folder is synced before its entry"):
            self.folder.names_durable = set(self.folder.names)
        yield
        yield from self.round(Entry("checkpoint", 0, op, name))
        self.checkpoint, self.name = op, name
        if self.keeps("J7: the old file waits for the witness"):
            yield
            yield from self.round()
        self.folder.names.discard(old)
        yield

    def act(self) -> Iterator[None]:
        """Something irreversible on the ground of the last op: only above a durable floor (V8)."""
        op = len(self.values)
        if not op or op <= self.floor:
            return
        if not self.keeps("V8: the floor is durable before the act"):
            self.acted = op
            yield
        yield from self.round(Entry("floor", 0, op))
        self.floor = op
        self.acted = max(self.acted, op)
        yield

    def release(self, checkpoint_size: int) -> Iterator[None]:
        """Give the oldest extent back; what lives in it is written again, or saved (J5, J7)."""
        oldest = self.journal.oldest
        live = self._live(oldest)
        ops = [entry for entry in live if entry.kind == "op"]
        smaller = len(ops) <= checkpoint_size
        if not self.keeps("J7: a release writes the smaller"):
            smaller = not smaller
        written = len(ops) if smaller else checkpoint_size
        assert written <= min(len(ops), checkpoint_size), "a release writes more than it must"
        if not smaller:
            yield from self.save()
            live = [entry for entry in self._live(oldest) if entry.kind != "op"]
        for start in range(0, len(live), BLOCKS):
            yield from self.round(*live[start : start + BLOCKS])
        yield
        self.journal.oldest = oldest + 1
        if self.keeps("J7: an extent waits for the witness"):
            yield from self.round()
        else:
            self.journal.kept = oldest + 1

    def _live(self, extent_cycle: int) -> list[Entry]:
        extent = next(e for e, g in self.journal.extent_cycles.items() if g == extent_cycle)
        blocks = [self.disk.read((extent, at)) for at in range(BLOCKS)]
        entries = {
            entry: None
            for block in blocks
            if block and block.extent_cycle == extent_cycle
            for entry in block.round.entries
        }
        return [entry for entry in entries if self._is_live(entry)]

    def _is_live(self, entry: Entry) -> bool:
        if entry.kind == "op":
            return self.checkpoint < entry.op <= len(self.values)
        if entry.kind == "checkpoint":
            return entry.value == self.name
        return entry.op == self.floor and self.keeps(FLOOR_AGAIN)

    # ---- the world ----

    def room(self) -> bool:
        """J6: an ordinary step leaves what a release needs."""
        return len(self.journal.free()) > RELEASE_EXTENTS

    def releasable(self) -> bool:
        """More than the extent in use lives."""
        return self.journal.extent_cycle > self.journal.oldest + 1

    def stopped_now(self, *, last_rots: bool) -> Restored:
        """Were the power cut now and free extents written over; the last durable round bad too."""
        live = {p: b for p, b in self.disk.durable.items() if b.extent_cycle >= self.journal.kept}
        last = self.journal.previous
        rotten = {
            p: replace(b, rotten=True) for p, b in live.items() if last_rots and b.round.lsn == last
        }
        return restore(walk(Disk(EXTENTS, BLOCKS, {**live, **rotten})), self.folder)

    def recover(self) -> Restored:
        """Read what is there; write the last round again (J3); end with a witness."""
        found = walk(self.disk)
        state = restore(found, self.folder)
        journal = Journal(self.disk)
        journal.extent_cycles = {e: g for e, g in found.extent_cycles.items() if g <= found.end[0]}
        if found.rounds:
            last = found.rounds[-1][1]
            journal.extent_cycle, journal.extent, journal.block = found.end
            journal.oldest = journal.kept = last.oldest
            journal.previous, journal.before = last.lsn, last.previous
            journal.previous_entries, journal.lsn = last.entries, last.lsn + 2
            if self.keeps("J3: the last round is written again"):
                self.disk.sync(last.lsn)
        self.journal = journal
        self.values, self.checkpoint, self.name = state.values, state.checkpoint, state.name
        self.floor = state.floor
        for _ in self.round():
            continue
        unnamed = self.folder.names - {self.name}
        self.folder.names -= unnamed  # the sweep: files that no entry names
        return state

    def dirty(self) -> tuple[list[Place], list[int]]:
        """Blocks and files that a power cut may take."""
        names = (self.folder.names ^ self.folder.names_durable) | (
            self.folder.names - self.folder.synced
        )
        return sorted(self.disk.cache), sorted(names)
