"""The members of one group and the hand-over of its partitions: pure transitions, run inside the
metadata apply.

Owns `Group`. A partition changes hands in three steps over two logs (docs/internals/two-log.md):

    intent   rebalance: `target` is decided, `moving` set, `intent_op` and `generation` taken
    fence    the host closes the old owner in the partition's own log; the reply says `committed`
    confirm  `owner = target`; only now is the partition assigned, with the offset to go on from

An intent that is overtaken by another is void: confirm compares `intent_op`. The generation of a
partition is the group's generation at the intent, so it never repeats, even for a topic that was
left and joined again; a slot without an owner and a target holds nothing else that counts, and is
dropped. Refuses to know time: a member that is silent for too long is the business of `Liveness`,
outside the apply.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from dataplane.groups.assignment import Slice, assign

Key = TypeVar("Key")


class Owner(NamedTuple):
    """One session of one member. A later session of the same name is another owner."""

    member: str
    session: int


NO_OWNER = Owner("", 0)


@dataclass(slots=True, kw_only=True)
class Slot:
    """One partition within one group."""

    generation: int
    intent_op: int
    moving: bool
    owner: Owner
    owner_generation: int
    target: Owner
    has_committed: bool = False
    committed: int = 0

    def bound_for(self) -> Owner:
        """Who has it or is about to."""
        return self.target if self.moving else self.owner


@dataclass(slots=True, frozen=True)
class Member:
    """A member and the topics (numbers, ascending) it reads."""

    session: int
    topics: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Group:
    """A consumer group. `generation` changes exactly when the assignment does."""

    number: int
    organization_id: str
    project_id: str
    name: str
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    slots: dict[Slice, Slot] = field(default_factory=dict)

    def has(self, owner: Owner) -> bool:
        """Is this very session a member?"""
        member = self.members.get(owner.member)
        return member is not None and member.session == owner.session

    def state(self) -> str:
        """EMPTY, STABLE or MOVING."""
        if not self.members:
            return "EMPTY"
        return "MOVING" if any(slot.moving for slot in self.slots.values()) else "STABLE"


class PartitionAssignment(NamedTuple):
    """One partition that a session owns, and where it went on; `moving`: it must release it."""

    place: Slice
    moving: bool
    generation: int
    has_committed: bool
    committed: int


class SessionAssignment(NamedTuple):
    """What one session reads and what it must stop reading. Ascending by place."""

    generation: int
    members: int
    partitions: tuple[PartitionAssignment, ...]

    def assigned(self) -> tuple[PartitionAssignment, ...]:
        """What it reads now."""
        return tuple(held for held in self.partitions if not held.moving)

    def revoked(self) -> tuple[PartitionAssignment, ...]:
        """What it must stop reading."""
        return tuple(held for held in self.partitions if held.moving)


def join(
    group: Group,
    name: str,
    member: Member,
    *,
    partitions: Mapping[int, int],
    op: int,
) -> bool:
    """Put a member in, replacing an older session of that name. True if the assignment changed.

    The caller has refused sessions older than the one that is there.
    """
    group.members[name] = member
    return rebalance(group, partitions=partitions, op=op)


def leave(group: Group, owner: Owner, *, partitions: Mapping[int, int], op: int) -> bool:
    """Take a member out if this very session is still the one. True if the assignment changed."""
    if not group.has(owner):
        return False
    del group.members[owner.member]
    return rebalance(group, partitions=partitions, op=op)


def forget_topic(group: Group, topic: int, *, partitions: Mapping[int, int], op: int) -> bool:
    """Drops a deleted topic. True if the assignment changed.

    partitions: without it.
    """
    for name, member in group.members.items():
        if topic in member.topics:
            left = tuple(number for number in member.topics if number != topic)
            group.members[name] = replace(member, topics=left)
    return rebalance(group, partitions=partitions, op=op)


def rebalance(group: Group, *, partitions: Mapping[int, int], op: int) -> bool:
    """Decide anew who is bound for what; every difference becomes an intent.

    True if there was one.
    """
    wanted = assign(
        {name: frozenset(member.topics) for name, member in group.members.items()},
        partitions,
        {place: slot.bound_for().member for place, slot in group.slots.items()},
    )
    differences: list[tuple[Slice, Owner]] = []
    for place in sorted(group.slots.keys() | wanted.keys()):
        name = wanted.get(place)
        target = NO_OWNER if name is None else Owner(name, group.members[name].session)
        slot = group.slots.get(place)
        if (NO_OWNER if slot is None else slot.bound_for()) != target:
            differences.append((place, target))
    if not differences:
        return False

    group.generation += 1
    for place, target in differences:
        _intend(group, place, target, op=op)
    return True


def _intend(group: Group, place: Slice, target: Owner, *, op: int) -> None:
    if target == NO_OWNER:
        # No member wants it. Its log is not closed now: the next owner's CLOSE will refuse the
        # commits of the old owner.
        del group.slots[place]
        return
    slot = group.slots.get(place)
    if slot is None:
        slot = Slot(
            generation=0,
            intent_op=0,
            moving=False,
            owner=NO_OWNER,
            owner_generation=0,
            target=NO_OWNER,
        )
        group.slots[place] = slot
    slot.generation = group.generation
    slot.intent_op = op
    slot.moving = True
    slot.target = target


def confirm(
    group: Group, place: Slice, *, intent_op: int, has_committed: bool, committed: int
) -> bool:
    """The partition's log has closed the old owner for this intent.

    False if the intent is void by now.
    """
    slot = group.slots.get(place)
    if slot is None or not slot.moving or slot.intent_op != intent_op:
        return False
    slot.owner = slot.target
    slot.owner_generation = slot.generation
    slot.target = NO_OWNER
    slot.moving = False
    slot.has_committed = has_committed
    slot.committed = committed
    return True


def session_assignments(group: Group) -> dict[Owner, SessionAssignment]:
    """The assignment of every member's session, from one pass over the slots."""
    held: dict[Owner, list[PartitionAssignment]] = {
        Owner(name, member.session): [] for name, member in group.members.items()
    }
    for place, slot in group.slots.items():
        mine = held.get(slot.owner)
        if mine is not None:
            mine.append(
                PartitionAssignment(
                    place, slot.moving, slot.owner_generation, slot.has_committed, slot.committed
                )
            )
    return {
        owner: SessionAssignment(group.generation, len(group.members), tuple(sorted(mine)))
        for owner, mine in held.items()
    }


def moves(group: Group) -> dict[Slice, int]:
    """The hand-overs under way: partition -> intent_op."""
    return {place: slot.intent_op for place, slot in sorted(group.slots.items()) if slot.moving}


class Liveness(Generic[Key]):
    """Who was heard when, by a clock given from outside. Seconds throughout."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._deadlines: dict[Key, tuple[float, float]] = {}

    def watch(self, key: Key, timeout_s: float) -> None:
        """Begin, or begin anew: silence is counted from now."""
        self._deadlines[key] = (self._clock() + timeout_s, timeout_s)

    def heard(self, key: Key) -> None:
        """A sign of life. Unknown keys are ignored: they have expired or left."""
        if key in self._deadlines:
            self.watch(key, self._deadlines[key][1])

    def forget(self, key: Key) -> None:
        """No longer watched."""
        self._deadlines.pop(key, None)

    def watched(self) -> list[Key]:
        """Every key that is watched."""
        return list(self._deadlines)

    def expired(self) -> list[Key]:
        """Those silent for too long, the longest first.

        They are forgotten: each is reported once.
        """
        now = self._clock()
        late = sorted(
            (deadline, order, key)
            for order, (key, (deadline, _)) in enumerate(self._deadlines.items())
            if deadline <= now
        )
        for _, _, key in late:
            del self._deadlines[key]
        return [key for _, _, key in late]
