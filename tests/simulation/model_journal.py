"""A small model of the journal's life, for rules J1-J8, V1 (one member), V3 and V8.

Owns the rules as a page of Python: rounds of blocks on extents that are recycled, what a crash may
leave of them, how recovery tells torn from damaged, what it may cut and whom it stops. Refuses
bytes: a block is an object, a checksum a flag. tests/simulation/test_journal_model.py lets
Hypothesis look for a history that breaks a promise; native/ implements what survives here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum


class Damage(Enum):
    """What is wrong with a round that is not whole (J2)."""

    ABSENT = "absent"
    UNKNOWN = "unknown"
    CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True)
class Entry:
    """An op of a group, a checkpoint that stands for ops up to ``op``, or a memory of damage."""

    kind: str  # "op", "checkpoint", "abstain"
    group: int
    op: int
    value: int = 0
    parent: int = 0
    origin: int = 0  # lsn of its first round (J5)


@dataclass(frozen=True, slots=True)
class Round:
    """What one sync makes durable: entries, the witness, the previous round's directory."""

    lsn: int
    previous: int
    before: int  # the one before the previous: two missing rounds are told from one
    witness: int
    entries: tuple[Entry, ...]
    previous_groups: tuple[tuple[int, int], ...]  # (group, last op) of the previous round
    oldest: int  # extent_cycle: extents before it are dead


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a round. ``rotten``: its bytes are wrong and none of them is older."""

    extent_cycle: int
    round: Round
    number: int
    count: int
    first: int  # lsn of the extent's first round: its header
    rotten: bool = False


def identity(parent: int, op: int, value: int) -> int:
    """The checksum of a prepare (V3): never of what apply fills in."""
    return hash((parent, op, value))


def directory(entries: tuple[Entry, ...]) -> tuple[tuple[int, int], ...]:
    """(group, last op) of every group in a round."""
    last: dict[int, int] = {}
    for entry in entries:
        last[entry.group] = max(last.get(entry.group, 0), entry.op)
    return tuple(sorted(last.items()))


Place = tuple[int, int]


@dataclass
class Disk:
    """Extents of blocks; ``cache`` holds what was written and not synced."""

    extents: int
    blocks: int
    durable: dict[Place, Block] = field(default_factory=dict)
    cache: dict[Place, Block] = field(default_factory=dict)

    def write(self, place: Place, block: Block) -> None:
        """Into the page cache."""
        self.cache[place] = block

    def sync(self, lsn: int) -> None:
        """One round becomes durable: what else is in the cache stays there (J3)."""
        own = {p: b for p, b in self.cache.items() if b.round.lsn == lsn}
        self.durable.update(own)
        self.cache = {p: b for p, b in self.cache.items() if p not in own}

    def read(self, place: Place) -> Block | None:
        """What a read sees; None = zeros."""
        return self.cache.get(place, self.durable.get(place))

    def power_cut(self, kept: set[Place]) -> None:
        """Of what was not synced only ``kept`` stays."""
        self.durable.update({p: b for p, b in self.cache.items() if p in kept})
        self.cache.clear()

    def rot(self, place: Place) -> None:
        """A durable block goes bad."""
        block = self.read(place)
        if block is not None:
            self.cache.pop(place, None)
            self.durable[place] = replace(block, rotten=True)


@dataclass
class Journal:
    """Where the next round goes."""

    disk: Disk
    extent_cycles: dict[int, int] = field(default_factory=dict)  # extent -> extent_cycle
    extent_cycle: int = 0
    oldest: int = 1
    kept: int = 1  # extent_cycle: a synced round said that extents before it are dead
    extent: int = 0
    block: int = 0
    lsn: int = 1
    first: int = 1
    previous: int = 0
    before: int = 0
    previous_entries: tuple[Entry, ...] = ()

    def free(self) -> list[int]:
        """Extents that may be written, the longest freed first."""
        dead = [e for e in range(self.disk.extents) if self.extent_cycles.get(e, 0) < self.kept]
        return sorted(dead, key=lambda extent: self.extent_cycles.get(extent, 0))

    def place(self, count: int) -> None:
        """Find room for ``count`` blocks: a round never crosses extents (J1)."""
        if self.extent_cycle and self.block + count <= self.disk.blocks:
            return
        self.extent = self.free()[0]
        self.extent_cycle += 1
        self.extent_cycles[self.extent] = self.extent_cycle
        self.block = 0
        self.first = self.lsn

    def write(self, entries: tuple[Entry, ...]) -> Round:
        """Write a round of one block an entry (one for none), not yet synced."""
        count = max(1, len(entries))
        self.place(count)
        stamped = tuple(e if e.origin else replace(e, origin=self.lsn) for e in entries)
        made = Round(
            lsn=self.lsn,
            previous=self.previous,
            before=self.before,
            witness=self.previous,
            entries=stamped,
            previous_groups=directory(self.previous_entries),
            oldest=self.oldest,
        )
        for number in range(count):
            place = (self.extent, self.block + number)
            self.disk.write(place, Block(self.extent_cycle, made, number, count, self.first))
        return made

    def synced(self, made: Round) -> None:
        """The round is durable: go on behind it."""
        self.disk.sync(made.lsn)
        self.kept = made.oldest
        self.block += max(1, len(made.entries))
        self.before, self.previous = self.previous, made.lsn
        self.previous_entries = made.entries
        self.lsn += 1


@dataclass
class Found:
    """What a walk over the disk finds."""

    rounds: list[tuple[int, Round]] = field(default_factory=list)  # (extent_cycle, round)
    # (extent_cycle, {group: last op that may be lost}, True = any group)
    holes: list[tuple[int, dict[int, int], bool]] = field(default_factory=list)
    hole_extent_cycle: int = 0
    tail_rotten: bool = False
    absent: int = 0
    corrupt: int = 0
    last: int = 0  # lsn of the last intact round
    end: tuple[int, int, int] = (0, 0, 0)  # extent_cycle, extent, block: where to go on
    extent_cycles: dict[int, int] = field(default_factory=dict)


def classify(blocks: list[Block | None], lsn: int, extent_cycle: int) -> Damage:
    """A round above the witness of which not every block is good (J2)."""
    for block in blocks:
        good = block is not None and not block.rotten and block.round.lsn == lsn
        older = block is None or (block.extent_cycle, block.round.lsn) < (extent_cycle, lsn)
        if not good and not older:
            return Damage.UNKNOWN
    return Damage.ABSENT


def intact(disk: Disk, extent: int, start: int, head: Block) -> bool:
    """True if every block of the round that ``head`` belongs to is good."""
    blocks = [disk.read((extent, start + n)) for n in range(head.count)]
    return all(
        b and not b.rotten and b.round.lsn == head.round.lsn and b.number == n
        for n, b in enumerate(blocks)
    )


def walk(disk: Disk) -> Found:
    """Read every extent in the order of their cycles and name what is damaged."""
    found = Found()
    for extent in range(disk.extents):
        there = [disk.read((extent, b)) for b in range(disk.blocks)]
        found.extent_cycles[extent] = max((b.extent_cycle for b in there if b), default=0)
    for extent in sorted(found.extent_cycles, key=lambda e: found.extent_cycles[e]):
        at = 0
        while found.extent_cycles[extent] and at < disk.blocks:
            at = walk_round(disk, found, extent, at)
    return found


def walk_round(disk: Disk, found: Found, extent: int, at: int) -> int:
    """Look at one block; returns where to go on."""
    extent_cycle = found.extent_cycles[extent]
    head = disk.read((extent, at))
    if not head or head.rotten or head.extent_cycle != extent_cycle or head.round.lsn <= found.last:
        if head and head.rotten and head.extent_cycle == extent_cycle:
            found.hole_extent_cycle = found.hole_extent_cycle or extent_cycle
            found.tail_rotten = True  # nobody knows what it was, unless a later round says
            found.end = (extent_cycle, extent, disk.blocks)
        return at + 1
    start, made = at - head.number, head.round
    if not intact(disk, extent, start, head):
        blocks = [disk.read((extent, start + n)) for n in range(head.count)]
        found.hole_extent_cycle = found.hole_extent_cycle or extent_cycle
        if classify(blocks, made.lsn, extent_cycle) is Damage.UNKNOWN:
            found.tail_rotten = True
            found.end = (extent_cycle, extent, disk.blocks)
        else:
            found.absent += 1
        return start + head.count
    if made.previous > found.last and found.rounds:
        # An intact round above a hole witnesses it: it was durable, and its directory is here.
        found.corrupt += 1
        where = found.hole_extent_cycle or found.rounds[-1][0]
        found.holes.append((where, dict(made.previous_groups), made.before > found.last))
    elif not found.rounds and found.tail_rotten:
        found.holes.append(
            (extent_cycle, dict(made.previous_groups), 0 < head.first <= made.before)
        )
    found.tail_rotten = False
    found.hole_extent_cycle = 0
    found.last = made.lsn
    found.rounds.append((extent_cycle, made))
    found.end = (extent_cycle, extent, start + head.count)
    return start + head.count


@dataclass
class Group:
    """A group of one member as recovery rebuilds it."""

    op: int = 0
    checksum: int = 0
    values: list[int] = field(default_factory=list)
    damaged_from: int = 0

    def take(self, entry: Entry) -> bool:
        """Execute the next op if its parent fits."""
        if entry.op != self.op + 1 or entry.parent != self.checksum:
            return False
        self.op = entry.op
        self.checksum = identity(entry.parent, entry.op, entry.value)
        self.values.append(entry.value)
        return True


def replay(found: Found, files: dict[tuple[int, int], Group], groups: int) -> list[Group]:
    """Groups from their last checkpoint and the ops above it, in the order of parents (J5)."""
    result = [Group() for _ in range(groups)]
    oldest = found.rounds[-1][1].oldest if found.rounds else 0
    live = [e for g, r in found.rounds if g >= oldest for e in r.entries]
    seen = [0] * groups
    for entry in live:
        seen[entry.group] = max(seen[entry.group], entry.op)
        if entry.kind == "checkpoint" and entry.op >= result[entry.group].op:
            saved = files[entry.group, entry.op]
            result[entry.group] = Group(saved.op, saved.checksum, list(saved.values))
    stopped = {e.group: e.op + 1 for e in live if e.kind == "abstain"}
    moved = True
    while moved:
        moved = False
        for entry in live:
            moved |= entry.kind == "op" and result[entry.group].take(entry)
    holes = [(groups_, anybody) for g, groups_, anybody in found.holes if g >= oldest]
    everybody = found.tail_rotten or any(anybody for _, anybody in holes)
    for group, state in enumerate(result):
        suspect = max([seen[group], *(named.get(group, 0) for named, _ in holes)])
        if group in stopped:
            state.damaged_from = stopped[group]
        elif everybody or suspect > state.op:
            state.damaged_from = state.op + 1
    return result
