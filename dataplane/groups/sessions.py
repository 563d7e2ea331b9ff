"""The live sessions of this node and what each was told.

Owns `MemberSession`: the latest assignment that is due to a member, and how its session ended.
Assignments are whole pictures, so a slow member gets the latest one and misses nothing by not
seeing those between. Refuses to decide who gets what: it renders what the metadata says.
"""

import asyncio

from dataplane.errors import Refused
from dataplane.groups.assignment import Slice
from dataplane.groups.membership import Group, Owner, picture
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


def render(state: State, group: Group, owner: Owner) -> wire.Assignment:
    """What this session reads and what it must stop reading, as it crosses the wire."""
    seen = picture(group, owner)
    return wire.Assignment(
        generation=seen.generation,
        assigned=[assigned_row(state, group, place) for place in seen.assigned],
        revoked=[assigned_row(state, group, place) for place in seen.revoked],
        members=seen.members,
    )


def assigned_row(state: State, group: Group, place: Slice) -> wire.Assigned:
    """One partition with its fence and where to go on."""
    slot = group.slots[place]
    topic = state.topic_numbered(place.topic)
    return wire.Assigned(
        topic=place.topic,
        created_revision=0 if topic is None else topic.created_revision,
        partition=place.partition,
        generation=slot.owner_generation,
        has_committed=slot.has_committed,
        committed=slot.committed,
        name="" if topic is None else topic.spec.name(),
    )
