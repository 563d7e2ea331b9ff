"""The live sessions of this node and what each was told.

Owns `MemberSession`: the latest assignment that is due to a member, and how its session ended; and
`Roster`: all of them, by group. Assignments are whole pictures, so a slow member gets the latest
one and misses nothing by not seeing those between. A change of a group costs one pass over its
partitions, and messages only for the members whose picture it changed. Refuses to decide who gets
what: it renders what the metadata says.
"""

import asyncio
from collections.abc import Iterator

from dataplane.errors import Refused
from dataplane.groups.membership import Group, Holding, Owner, Picture, pictures
from dataplane.metadata.state import State
from headrace.wire import stream_pb2 as wire


class MemberSession:
    """One member's session: a mailbox of one picture, and an end."""

    def __init__(self, group: int, owner: Owner, timeout_s: float) -> None:
        self.group = group
        self.owner = owner
        self.timeout_s = timeout_s
        self.ended = False
        self.refusal: Refused | None = None
        self.stays_member = False
        self.seen: Picture | None = None
        self._due: wire.Assignment | None = None
        self._told: wire.Assignment | None = None
        self._changed = asyncio.Event()

    def tell(self, assignment: wire.Assignment) -> None:
        """This is the picture now."""
        latest = self._told if self._due is None else self._due
        if assignment != latest:
            self._due = assignment
            self._changed.set()

    def end(self, refusal: Refused | None = None, *, stays_member: bool = False) -> None:
        """End the session, with a word to the member if there is one; the first end counts.

        stays_member: the membership lives on, because a later session has it or because the node
        only restarts.
        """
        if not self.ended:
            self.ended = True
            self.refusal = refusal
            self.stays_member = stays_member
            self._changed.set()

    async def next_picture(self) -> wire.Assignment | None:
        """The next picture to send; None once the session has ended."""
        while self._due is None or self.ended:
            if self.ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        self._told, self._due = self._due, None
        return self._told


class Roster:
    """The sessions of this node."""

    def __init__(self) -> None:
        self._groups: dict[int, dict[Owner, MemberSession]] = {}
        self.rendered = 0

    def __iter__(self) -> Iterator[MemberSession]:
        return (session for group in self._groups.values() for session in group.values())

    def count(self) -> int:
        """Members connected here."""
        return sum(len(group) for group in self._groups.values())

    def get(self, group: int, owner: Owner) -> MemberSession | None:
        """The session of an owner, if it is connected here."""
        return self._groups.get(group, {}).get(owner)

    def add(self, session: MemberSession) -> None:
        """A session begins."""
        self._groups.setdefault(session.group, {})[session.owner] = session

    def remove(self, session: MemberSession) -> None:
        """A session has ended."""
        group = self._groups[session.group]
        del group[session.owner]
        if not group:
            del self._groups[session.group]

    def tell(self, state: State, group: Group) -> list[MemberSession]:
        """The group as it is now, to every session here whose picture is another than before.

        Returns the sessions that are members no more.
        """
        gone: list[MemberSession] = []
        here = self._groups.get(group.number)
        if not here:
            return gone
        now = pictures(group)
        for owner, session in here.items():
            seen = now.get(owner)
            if seen is None:
                gone.append(session)
            elif seen != session.seen:
                session.seen = seen
                session.tell(render(state, seen))
                self.rendered += 1
        return gone


def render(state: State, picture: Picture) -> wire.Assignment:
    """What a session reads and what it must stop reading, as it crosses the wire."""
    return wire.Assignment(
        generation=picture.generation,
        assigned=[assigned_row(state, held) for held in picture.assigned()],
        revoked=[assigned_row(state, held) for held in picture.revoked()],
        members=picture.members,
    )


def assigned_row(state: State, held: Holding) -> wire.Assigned:
    """One partition with its fence and where to go on."""
    topic = state.topic_numbered(held.place.topic)
    return wire.Assigned(
        topic=held.place.topic,
        created_revision=0 if topic is None else topic.created_revision,
        partition=held.place.partition,
        generation=held.generation,
        has_committed=held.has_committed,
        committed=held.committed,
        name="" if topic is None else topic.spec.name(),
    )
