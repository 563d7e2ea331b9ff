"""The live group sessions of this node and the assignments sent to them.

Owns `MemberSession`: the latest assignment that is due to a member, and how its session ended; and
`SessionRegistry`: all sessions, by group. An assignment is complete, so a slow member gets the
latest one and misses nothing by not seeing those between. A change of a group costs one pass over
its partitions, and messages only to the members whose assignment it changed. Refuses to decide who
gets what: the metadata has decided.
"""

import asyncio
from collections.abc import Iterator

from dataplane.coordinator.assignments import assignment_message
from dataplane.errors import Refused
from dataplane.groups.membership import Group, Owner, SessionAssignment, session_assignments
from dataplane.metadata.state import State
from headrace.wire import stream_pb2 as wire


class MemberSession:
    """One member's session: at most one assignment to send, and an end."""

    def __init__(self, group: int, owner: Owner, timeout_s: float) -> None:
        self.group = group
        self.owner = owner
        self.timeout_s = timeout_s
        self.ended = False
        self.refusal: Refused | None = None
        self.stays_member = False
        self.assignment: SessionAssignment | None = None
        self._due: wire.Assignment | None = None
        self._sent: wire.Assignment | None = None
        self._changed = asyncio.Event()

    def assign(self, assignment: wire.Assignment) -> None:
        """Send this assignment, unless it was the last one."""
        latest = self._sent if self._due is None else self._due
        if assignment != latest:
            self._due = assignment
            self._changed.set()

    def end(self, refusal: Refused | None = None, *, stays_member: bool = False) -> None:
        """End the session, with a refusal to the member if there is one; the first end counts.

        stays_member: the membership lives on, because a later session has it or because the node
        only restarts.
        """
        if not self.ended:
            self.ended = True
            self.refusal = refusal
            self.stays_member = stays_member
            self._changed.set()

    async def next_assignment(self) -> wire.Assignment | None:
        """The next assignment to send; None once the session has ended."""
        while self._due is None or self.ended:
            if self.ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        self._sent, self._due = self._due, None
        return self._sent


class SessionRegistry:
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

    def assign(self, state: State, group: Group) -> list[MemberSession]:
        """Send its assignment to every session here whose assignment has changed.

        Returns the sessions that are no longer members.
        """
        gone: list[MemberSession] = []
        here = self._groups.get(group.number)
        if not here:
            return gone
        now = session_assignments(group)
        for owner, session in here.items():
            assignment = now.get(owner)
            if assignment is None:
                gone.append(session)
            elif assignment != session.assignment:
                session.assignment = assignment
                session.assign(assignment_message(state, assignment))
                self.rendered += 1
        return gone
