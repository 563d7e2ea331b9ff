"""Groups.Session, DescribeGroup and ListGroups: members come, are heard, and go.

Owns the sessions that end here, the liveness of every member, and one hand-over task per moving
partition. A member lives as long as its stream and its heartbeats; members the metadata knows from
before a restart get one full window to come back. Refuses to assign: it submits joins and leaves,
and renders what the metadata machine decided.
"""

import asyncio
import contextlib
import heapq
import logging
import secrets
from collections import deque
from collections.abc import Callable
from typing import Final

from dataplane.coordinator.assignments import partition_message
from dataplane.coordinator.handover import Handover, Intent
from dataplane.coordinator.session_registry import MemberSession, SessionRegistry
from dataplane.engine.frames import PartitionId
from dataplane.engine.rpc import Call, Stream
from dataplane.errors import RETRY_SAME_NODE, SESSION_EXPIRED, Refused
from dataplane.groups.assignment import Slice
from dataplane.groups.membership import Group, Liveness, Owner, Slot, session_assignments
from dataplane.metadata.replica import MetadataReplica
from dataplane.metadata.rules import GROUP_TOPICS_MAX, GROUPS_MAX
from dataplane.metadata.state import State
from dataplane.services import names
from dataplane.wire import node_pb2 as node
from headrace.wire import stream_pb2 as wire

MEMBER_TIMEOUT_S: Final = 10.0
MEMBER_TIMEOUT_MS_MIN: Final = 200
MEMBER_TIMEOUT_MS_MAX: Final = 600_000
JOIN_TIMEOUT_S: Final = 10.0
TICK_S: Final = 0.1
GROUPS_PAGE_MAX: Final = 200
# Groups are kept for ever: what one organization may not have of them is there for the others.
GROUPS_SHARE: Final = 0.75
# A page ends at the row that reaches it: members may read many topics with long names.
GROUPS_PAGE_BYTES_MAX: Final = 1024 * 1024

log = logging.getLogger("dataplane.groups")

Member = tuple[int, Owner]


class GroupService:
    """Every group session and hand-over of this node. Runs on the event loop."""

    def __init__(
        self,
        replica: MetadataReplica,
        handover: Handover,
        tasks: asyncio.TaskGroup,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._replica = replica
        self._handover = handover
        self._tasks = tasks
        self._sessions = SessionRegistry()
        self._liveness: Liveness[Member] = Liveness(clock)
        self._moves: dict[tuple[int, Slice], tuple[Intent, asyncio.Task[None]]] = {}
        self._leaving: deque[Member] = deque()
        self._wake = asyncio.Event()
        self._session_next = 1
        self._draining = False
        self._started = False

    def sessions_count(self) -> int:
        """Members connected here."""
        return self._sessions.count()

    def assignments_count(self) -> int:
        """Assignments rendered since the start."""
        return self._sessions.rendered

    def moves_count(self) -> int:
        """Partitions changing hands."""
        return len(self._moves)

    def start(self) -> None:
        """The metadata has recovered: silences count from now, open intents go on."""
        self._started = True
        with self._replica.reading() as state:
            numbers = sorted(state.groups)
        for number in numbers:
            self.group_changed(number)

    def drain(self) -> None:
        """End every session; the memberships stay, so that members go on where they were."""
        self._draining = True
        for session in self._sessions:
            session.end(_stopping(), stays_member=True)

    async def run(self) -> None:
        """Watch silences and carry leaves, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._wake.wait()
            self._wake.clear()
            self.expire()
            for _ in range(len(self._leaving)):
                await self._leave(self._leaving.popleft())

    def expire(self) -> None:
        """Removes members that were silent for too long."""
        for key in self._liveness.expired():
            number, owner = key
            log.info("group %d: %s was silent for too long", number, owner.member)
            session = self._sessions.get(number, owner)
            if session is not None:
                session.end(_expired(session))
            self._leaving.append(key)

    # ---- the calls ----

    async def session(self, stream: Stream[wire.SessionRequest]) -> None:
        """One member's session, from Join to its end."""
        session = await self._join(stream)
        key = (session.group, session.owner)
        try:
            if self._draining:
                session.end(_stopping(), stays_member=True)
            await stream.send(_joined(session))
            async with asyncio.TaskGroup() as tasks:
                reader = tasks.create_task(self._read(stream, session))
                await self._write(stream, session)
                reader.cancel()
        finally:
            session.end()
            self._sessions.remove(session)
            self._liveness.forget(key)
            if not session.stays_member:
                self._leaving.append(key)
                self._wake.set()

    async def describe_group(
        self, call: Call, request: wire.DescribeGroupRequest
    ) -> wire.DescribeGroupReply:
        """Members and what each reads."""
        with self._replica.reading() as state:
            project = names.project_of(state, call.caller, request.project)
            group = state.group_named(project.id, request.group)
            if group is None:
                raise Refused(
                    "GROUP_NOT_FOUND",
                    f"there is no group {request.group} in this project",
                    hint="a group begins with its first member",
                )
            assignments = session_assignments(group)
            return wire.DescribeGroupReply(
                group=group.number,
                generation=group.generation,
                state=group.state(),
                members=[
                    wire.GroupMember(
                        member=name,
                        assigned=[
                            partition_message(state, held)
                            for held in assignments[Owner(name, member.session)].partitions
                        ],
                    )
                    for name, member in sorted(group.members.items())
                ],
            )

    async def list_groups(
        self, call: Call, request: wire.ListGroupsRequest
    ) -> wire.ListGroupsReply:
        """A page of the groups of the caller's project, by name."""
        most = min(request.groups_max or GROUPS_PAGE_MAX, GROUPS_PAGE_MAX)
        reply = wire.ListGroupsReply()
        with self._replica.reading() as state:
            project = names.project_of(state, call.caller, request.project)
            later = (
                group
                for group in state.groups.values()
                if group.project_id == project.id and group.name > request.after
            )
            size_bytes = 0
            for group in heapq.nsmallest(most + 1, later, key=lambda group: group.name):
                if len(reply.groups) == most or size_bytes >= GROUPS_PAGE_BYTES_MAX:
                    reply.next = reply.groups[-1].name
                    break
                row = _group_row(state, group)
                reply.groups.append(row)
                size_bytes += row.ByteSize()
        return reply

    async def _join(self, stream: Stream[wire.SessionRequest]) -> MemberSession:
        try:
            async with asyncio.timeout(JOIN_TIMEOUT_S):
                request = await stream.receive()
        except TimeoutError as error:
            raise Refused("INVALID_ARGUMENT", "the session began without a Join") from error
        if request is None or request.WhichOneof("message") != "join":
            raise Refused(
                "INVALID_ARGUMENT", "a session begins with a Join", hint="send Join first"
            )
        join = request.join
        timeout_ms = join.timeout_ms or int(MEMBER_TIMEOUT_S * 1000)
        if not MEMBER_TIMEOUT_MS_MIN <= timeout_ms <= MEMBER_TIMEOUT_MS_MAX:
            raise Refused(
                "INVALID_ARGUMENT",
                f"timeout_ms is {timeout_ms}; it must be from {MEMBER_TIMEOUT_MS_MIN} to "
                f"{MEMBER_TIMEOUT_MS_MAX}, or 0 for {int(MEMBER_TIMEOUT_S * 1000)}",
            )
        owner, command = self._join_command(stream.call, join)
        result = await self._replica.submit(node.Command(join_group=command))
        session = MemberSession(result.group.group, owner, timeout_ms / 1000)
        key = (session.group, owner)
        self._sessions.add(session)
        self._liveness.watch(key, session.timeout_s)
        self.group_changed(session.group)
        return session

    def _join_command(self, call: Call, join: wire.Join) -> tuple[Owner, node.JoinGroup]:
        names.check_count(join.topics, GROUP_TOPICS_MAX)
        with self._replica.reading() as state:
            organization = names.organization_of(state, call.caller)
            project = names.project_of(state, call.caller, join.project)
            if state.group_named(project.id, join.group) is None:
                check_share(state, organization.id)
            topics = [
                names.topic_of(state, call.caller, join.project, name) for name in join.topics
            ]
            # Above every session the metadata has seen, also those of before a restart.
            number = max(self._session_next, state.counters.session_max + 1)
        self._session_next = number + 1
        owner = Owner(join.member or f"member-{secrets.token_hex(6)}", number)
        return owner, node.JoinGroup(
            organization_id=organization.id,
            project_id=project.id,
            group=join.group,
            member=owner.member,
            session=owner.session,
            topics=sorted({topic.number for topic in topics}),
        )

    async def _read(self, stream: Stream[wire.SessionRequest], session: MemberSession) -> None:
        key = (session.group, session.owner)
        try:
            while (request := await stream.receive()) is not None:
                self._liveness.heard(key)
                kind = request.WhichOneof("message")
                if kind == "leave":
                    break
                if kind == "released":
                    self._released(session, request.released)
                elif kind == "join":
                    raise Refused("INVALID_ARGUMENT", "this session has joined already")
        except Refused as refusal:
            session.end(refusal)
        session.end()

    async def _write(self, stream: Stream[wire.SessionRequest], session: MemberSession) -> None:
        while (assignment := await session.next_assignment()) is not None:
            await stream.send(wire.SessionEvent(assignment=assignment))
        if session.refusal is not None:
            await stream.send(wire.SessionEvent(ended=session.refusal.error()))

    def _released(self, session: MemberSession, released: wire.Released) -> None:
        for row in released.partitions:
            move = self._moves.get((session.group, Slice(row.topic, row.partition)))
            if move is None:
                continue
            intent = move[0]
            if intent.owner == session.owner and intent.owner_generation == row.generation:
                intent.let_go.set()

    # ---- what follows from a committed change ----

    def group_changed(self, number: int) -> None:
        """An op changed this group: begin what moves, tell every session here."""
        if not self._started:
            return  # Recovery replays old changes; `start` looks at what they led to.
        with self._replica.reading() as state:
            group = state.groups[number]
            intents = self._intents(state, group)
            replaced = self._sessions.assign(state, group)
            members = [
                (number, Owner(name, member.session)) for name, member in group.members.items()
            ]
        self._watch_exactly(number, members)
        for intent in intents:
            self._begin_move(intent)
        for session in replaced:
            session.end(_replaced(session.owner), stays_member=True)
            self._liveness.forget((number, session.owner))

    def _intents(self, state: State, group: Group) -> list[Intent]:
        """The intents that are not under way yet. Those that are learn whether their owner left."""
        intents: list[Intent] = []
        for place, slot in group.slots.items():
            topic = state.topic_numbered(place.topic)
            if not slot.moving or topic is None:
                continue
            move = self._moves.get((group.number, place))
            if move is not None and move[0].intent_op == slot.intent_op:
                intent = move[0]
            else:
                partition = PartitionId(place.topic, topic.created_revision, place.partition)
                intent = _intent(group, place, slot, partition)
                intents.append(intent)
            if not group.has(slot.owner):  # Nor is NO_OWNER a member.
                intent.let_go.set()
        return intents

    def _watch_exactly(self, number: int, members: list[Member]) -> None:
        """Every member is watched, also one whose call ended between its join and its session."""
        watched = {key for key in self._liveness.watched() if key[0] == number}
        for key in watched.difference(members):
            self._liveness.forget(key)
        for key in members:
            if key not in watched:
                self._liveness.watch(key, MEMBER_TIMEOUT_S)

    def _begin_move(self, intent: Intent) -> None:
        key = (intent.group, intent.place)
        overtaken = self._moves.get(key)
        if overtaken is not None:
            overtaken[1].cancel()
        task = self._tasks.create_task(self._move(intent), name=f"move {key}")
        self._moves[key] = (intent, task)

    def stop(self) -> None:
        """Leave off every hand-over: the node ends, and the next primary takes them up again."""
        for _, task in self._moves.values():
            task.cancel()

    async def _move(self, intent: Intent) -> None:
        session = self._sessions.get(intent.group, intent.owner)
        timeout_s = MEMBER_TIMEOUT_S if session is None else session.timeout_s
        try:
            await self._handover.carry_out(intent, release_timeout_s=timeout_s)
        except Refused as refusal:
            log.warning("group %d: %s is not served: %s", intent.group, intent.target, refusal)
            target = self._sessions.get(intent.group, intent.target)
            if target is not None:
                target.end(refusal)
        finally:
            key = (intent.group, intent.place)
            move = self._moves.get(key)
            if move is not None and move[0] is intent:
                del self._moves[key]

    async def _leave(self, key: Member) -> None:
        number, owner = key
        command = node.LeaveGroup(group=number, member=owner.member, session=owner.session)
        try:
            await self._replica.submit(node.Command(leave_group=command))
        except (Refused, TimeoutError) as error:
            log.warning("group %d: %s has not left yet: %s", number, owner.member, error)
            self._leaving.append(key)


def check_share(state: State, organization_id: str, *, groups_max: int = GROUPS_MAX) -> None:
    """Raises Refused if the organization may begin no more groups. Asked at the door and not when
    an op is applied: there it would change what committed joins mean."""
    own = sum(group.organization_id == organization_id for group in state.groups.values())
    if own >= groups_max * GROUPS_SHARE:
        raise Refused(
            "RESOURCE_EXHAUSTED",
            f"the organization has {own} of the {groups_max} groups that the cluster keeps, and "
            "may begin no more",
            hint="join under the name of a group that there is: groups are kept for ever",
        )


def _group_row(state: State, group: Group) -> wire.GroupRow:
    read = sorted({number for member in group.members.values() for number in member.topics})
    topics = [topic for number in read if (topic := state.topic_numbered(number)) is not None]
    return wire.GroupRow(
        name=group.name,
        group=group.number,
        generation=group.generation,
        state=group.state(),
        members=len(group.members),
        partitions=len(group.slots),
        topics=[topic.spec.name() for topic in topics],
    )


def _intent(group: Group, place: Slice, slot: Slot, partition: PartitionId) -> Intent:
    return Intent(
        group=group.number,
        place=place,
        intent_op=slot.intent_op,
        generation=slot.generation,
        owner=slot.owner,
        owner_generation=slot.owner_generation,
        target=slot.target,
        partition=partition,
    )


def _joined(session: MemberSession) -> wire.SessionEvent:
    # Three heartbeats fit into the timeout: one may be lost.
    return wire.SessionEvent(
        joined=wire.Joined(
            group=session.group,
            member=session.owner.member,
            heartbeat_ms=max(50, int(session.timeout_s * 1000 / 3)),
        )
    )


def _stopping() -> Refused:
    return Refused(
        "STOPPING",
        "this node is stopping; the membership stays",
        hint="join again under the same member name",
        kind=RETRY_SAME_NODE,
        retry_after_ms=500,
    )


def _expired(session: MemberSession) -> Refused:
    return Refused(
        "SESSION_EXPIRED",
        f"nothing was heard from {session.owner.member} for {session.timeout_s:g} s",
        hint="join again; send heartbeats while records are being worked on",
        kind=SESSION_EXPIRED,
    )


def _replaced(owner: Owner) -> Refused:
    return Refused(
        "SESSION_REPLACED",
        f"a later session of {owner.member} has joined",
        hint="give each running member a name of its own",
    )
