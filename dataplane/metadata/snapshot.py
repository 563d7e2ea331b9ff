"""The machine's state as canonical bytes, and back.

Owns the layout: a version byte (1), then `headrace.node.v1.Snapshot`, serialised deterministically
with every list in ascending order. Equal states give equal bytes on every replica, which is what
the digest stands on. Frozen by a golden file. Refuses a version it does not know: a node must not
start from a state it misreads.
"""

import hashlib
from typing import Final

from dataplane.groups.assignment import Slice
from dataplane.groups.membership import NO_OWNER, Group, Member, Owner, Slot
from dataplane.metadata.commands import (
    fence_message,
    fence_of,
    key_message,
    key_spec_of,
    topic_message,
    topic_spec_of,
)
from dataplane.metadata.state import (
    ApiKey,
    Counters,
    DeletedTopic,
    Hold,
    Node,
    Organization,
    Project,
    State,
    Topic,
)
from dataplane.wire import node_pb2 as wire

SNAPSHOT_VERSION: Final = 1


class SnapshotUnreadable(Exception):
    """These bytes are no snapshot this release can read."""


def encode(state: State) -> bytes:
    """The canonical bytes of a state."""
    snapshot = wire.Snapshot(
        op=state.op,
        cluster_id=state.cluster_id,
        bootstrap_op=state.bootstrap_op,
        counters=_counters_message(state.counters),
        nodes=[
            wire.NodeRow(id=row.id, address=row.address) for _, row in sorted(state.nodes.items())
        ],
        organizations=[
            wire.OrganizationRow(number=row.number, id=row.id)
            for row in sorted(state.organizations.values(), key=lambda row: row.number)
        ],
        projects=[
            wire.ProjectRow(
                number=row.number,
                id=row.id,
                organization_id=row.organization_id,
                name=row.name,
            )
            for row in sorted(state.projects.values(), key=lambda row: row.number)
        ],
        topics=[
            wire.TopicRow(
                number=row.number,
                created_revision=row.created_revision,
                spec=topic_message(row.spec),
                fence=fence_message(row.fence),
                closing_op=row.closing_op,
                force_reason=row.force_reason,
            )
            for row in state.topics_by_number()
        ],
        keys=[
            wire.KeyRow(
                principal=row.principal,
                spec=key_message(row.spec),
                fence=fence_message(row.fence),
                active=row.active,
            )
            for _, row in sorted(state.keys.items())
        ],
        groups=[_group_message(group) for _, group in sorted(state.groups.items())],
        deleted_topics=[_deleted_message(row) for row in state.deleted_topics.values()],
        holds=[_hold_message(row) for _, row in sorted(state.holds.items())],
    )
    return bytes([SNAPSHOT_VERSION]) + snapshot.SerializeToString(deterministic=True)


def decode(data: bytes) -> State:
    """The state behind canonical bytes; empty bytes are the empty state."""
    if not data:
        return State()
    if data[0] != SNAPSHOT_VERSION:
        raise SnapshotUnreadable(
            f"the metadata snapshot has version {data[0]}, this release reads {SNAPSHOT_VERSION}: "
            "start the release that wrote it, or a newer one"
        )
    snapshot = wire.Snapshot()
    snapshot.ParseFromString(data[1:])
    state = State(
        op=snapshot.op, cluster_id=snapshot.cluster_id, bootstrap_op=snapshot.bootstrap_op
    )
    state.counters = Counters(
        organization=snapshot.counters.organization,
        project=snapshot.counters.project,
        topic=snapshot.counters.topic,
        principal=snapshot.counters.principal,
        group=snapshot.counters.group,
        session_max=snapshot.counters.session_max,
    )
    state.nodes = {row.id: Node(row.id, row.address) for row in snapshot.nodes}
    state.organizations = {
        row.id: Organization(row.number, row.id) for row in snapshot.organizations
    }
    state.projects = {
        row.id: Project(row.number, row.id, row.organization_id, row.name)
        for row in snapshot.projects
    }
    for topic in snapshot.topics:
        state.put_topic(_topic_of(topic))
    for deleted in snapshot.deleted_topics:
        state.put_deleted(_deleted_of(deleted))
    for hold in snapshot.holds:
        state.holds[hold.hold_id] = _hold_of(hold)
    for key in snapshot.keys:
        state.put_key(_key_of(key))
    for group in snapshot.groups:
        state.put_group(_group_of(group))
    return state


def digest(data: bytes) -> bytes:
    """The 32 bytes replicas compare."""
    return hashlib.sha256(data).digest()


def _counters_message(counters: Counters) -> wire.Counters:
    return wire.Counters(
        organization=counters.organization,
        project=counters.project,
        topic=counters.topic,
        principal=counters.principal,
        group=counters.group,
        session_max=counters.session_max,
    )


def _topic_of(row: wire.TopicRow) -> Topic:
    return Topic(
        number=row.number,
        created_revision=row.created_revision,
        spec=topic_spec_of(row.spec),
        fence=fence_of(row.fence),
        closing_op=row.closing_op,
        force_reason=row.force_reason,
    )


def _key_of(row: wire.KeyRow) -> ApiKey:
    return ApiKey(
        principal=row.principal,
        spec=key_spec_of(row.spec),
        fence=fence_of(row.fence),
        active=row.active,
    )


def _deleted_message(row: DeletedTopic) -> wire.DeletedTopicRow:
    return wire.DeletedTopicRow(
        topic_id=row.topic_id,
        number=row.number,
        fence=fence_message(row.fence),
        deleted_op=row.deleted_op,
        given_up=row.given_up,
        project_id=row.project_id,
        name=row.name,
    )


def _deleted_of(row: wire.DeletedTopicRow) -> DeletedTopic:
    return DeletedTopic(
        topic_id=row.topic_id,
        number=row.number,
        fence=fence_of(row.fence),
        deleted_op=row.deleted_op,
        given_up=tuple(row.given_up),
        project_id=row.project_id,
        name=row.name,
    )


def _hold_message(row: Hold) -> wire.HoldRow:
    return wire.HoldRow(
        hold_id=row.hold_id,
        topic_id=row.topic_id,
        partitions=row.partitions,
        from_offset=row.from_offset,
        fence=fence_message(row.fence),
        intent_op=row.intent_op,
        active=row.is_active,
        confirmed=row.is_confirmed,
    )


def _hold_of(row: wire.HoldRow) -> Hold:
    return Hold(
        hold_id=row.hold_id,
        topic_id=row.topic_id,
        partitions=tuple(row.partitions),
        from_offset=row.from_offset,
        fence=fence_of(row.fence),
        intent_op=row.intent_op,
        is_active=row.active,
        is_confirmed=row.confirmed,
    )


def _owner_message(owner: Owner) -> wire.Owner | None:
    return None if owner == NO_OWNER else wire.Owner(member=owner.member, session=owner.session)


def _group_message(group: Group) -> wire.GroupRow:
    return wire.GroupRow(
        number=group.number,
        organization_id=group.organization_id,
        project_id=group.project_id,
        name=group.name,
        generation=group.generation,
        members=[
            wire.MemberRow(name=name, session=member.session, topics=member.topics)
            for name, member in sorted(group.members.items())
        ],
        slots=[
            wire.SlotRow(
                topic=place.topic,
                partition=place.partition,
                generation=slot.generation,
                intent_op=slot.intent_op,
                moving=slot.moving,
                owner=_owner_message(slot.owner),
                owner_generation=slot.owner_generation,
                target=_owner_message(slot.target),
                has_committed=slot.has_committed,
                committed=slot.committed,
            )
            for place, slot in sorted(group.slots.items())
        ],
    )


def _group_of(row: wire.GroupRow) -> Group:
    return Group(
        number=row.number,
        organization_id=row.organization_id,
        project_id=row.project_id,
        name=row.name,
        generation=row.generation,
        members={
            member.name: Member(member.session, tuple(member.topics)) for member in row.members
        },
        slots={
            Slice(slot.topic, slot.partition): Slot(
                generation=slot.generation,
                intent_op=slot.intent_op,
                moving=slot.moving,
                owner=Owner(slot.owner.member, slot.owner.session),
                owner_generation=slot.owner_generation,
                target=Owner(slot.target.member, slot.target.session),
                has_committed=slot.has_committed,
                committed=slot.committed,
            )
            for slot in row.slots
            # Earlier releases kept slots without an owner.
            if slot.HasField("owner") or slot.HasField("target")
        },
    )
