"""The lifecycle of a topic in the metadata: put, grown, closed, deleted. Pure transitions, run
inside the apply.

    PutTopic -> open  -- DeleteTopic --> closing -- ConfirmDelete --> remembered as deleted
                  ^ PutTopic (more partitions, other settings, another name)

A closing topic keeps its name, its readers and its groups; it takes no batch and no command but
another DeleteTopic. Only when every partition's log is sealed and metered (T3) does the host
confirm: then the row, the name and the groups' slots go, and its id is remembered with its fence,
so that a delayed PutTopic cannot make it again. What is remembered is bounded in bytes; the
earliest deletions are forgotten. Refuses to know how a partition is sealed.
"""

from dataclasses import replace

from dataplane.errors import RETRY_SAME_NODE, Refused
from dataplane.groups import membership
from dataplane.metadata import holds, rules, tables
from dataplane.metadata.commands import topic_spec_of
from dataplane.metadata.outcome import NO_FENCE, Done, applied, check_fence
from dataplane.metadata.projects import check_owner, put_project
from dataplane.metadata.state import DeletedTopic, Fence, State, Topic, TopicSpec
from dataplane.wire import node_pb2 as wire

CLOSING_RETRY_MS = 1000


def put(state: State, op: int, fence: Fence, command: wire.PutTopic) -> Done:
    """Make a topic, or change it. Raises Refused."""
    rules.check_topic(command)
    spec = topic_spec_of(command)
    _check_not_deleted(state, spec.topic_id, fence)
    stored = state.topics.get(spec.topic_id)
    if stored is not None:
        _check_not_system(stored)
        check_fence(spec.topic_id, fence, stored.fence)
        _check_lives(stored)
        if fence == stored.fence and fence != NO_FENCE:
            return Done(_result(stored, changed=False, op=op))
        _check_change(stored.spec, spec)
    else:
        _check_nodes(state, spec.replication_factor)
    check_owner(state, spec.organization_id, spec.project_id)
    _check_name(state, spec)

    delta = put_project(state, spec.organization_id, spec.project_id, spec.project)
    if stored is None:
        topic = Topic(number=state.counters.topic, created_revision=op, spec=spec, fence=fence)
        state.counters.topic += 1
    else:
        topic = replace(stored, spec=spec, fence=fence)
    state.put_topic(topic)
    if stored is not None and stored.spec == spec:
        if stored.fence.generation != fence.generation:
            delta += tables.topic_row(state, topic)  # It names the generation of its policy.
        return Done(_result(topic, changed=False, op=op), delta)
    delta += tables.topic_row(state, topic) + _name_rows(state, stored, topic)
    grown = stored is not None and stored.spec.partitions < spec.partitions
    groups = _rebalanced(state, topic.number, op=op) if grown else ()
    holding = topic.number if grown and holds.reopen(state, op, spec.topic_id) else 0
    return Done(_result(topic, changed=True, op=op), delta, groups, holding=holding)


def delete(state: State, op: int, fence: Fence, command: wire.DeleteTopic) -> Done:
    """The intent to delete a topic. Raises Refused.

    A repetition with a newer fence stays the same intent, unless it is the first to give a reason
    for force: that is a new one, and a confirmation of the one before is void.
    """
    rules.check_deletion(command)
    topic = state.topics.get(command.topic_id)
    if topic is None:
        return _delete_absent(state, op, fence, command.topic_id)
    _check_not_system(topic)
    check_fence(command.topic_id, fence, topic.fence)
    if topic.is_closing() and fence == topic.fence and fence != NO_FENCE:
        return Done(_result(topic, changed=False, op=op))
    holds.check_free(state, command.topic_id)
    forced = bool(command.force_reason) and not topic.force_reason
    if topic.is_closing() and not forced:
        state.put_topic(replace(topic, fence=fence))
        return Done(_result(topic, changed=False, op=op))
    closing = replace(
        topic,
        fence=fence,
        closing_op=op,
        force_reason=topic.force_reason or command.force_reason,
    )
    state.put_topic(closing)
    delta = b"" if topic.is_closing() else tables.topic_row(state, closing)
    return Done(_result(closing, changed=True, op=op), delta, closing=closing.number)


def confirm_delete(state: State, op: int, command: wire.ConfirmDelete) -> Done:
    """Every partition is sealed and its last window published, or given up by name. Raises Refused.

    Repeatable: of a topic that is gone already it says so.
    """
    topic = state.topic_numbered(command.topic)
    if topic is None:
        deleted = state.deleted_numbered(command.topic)
        if deleted is None:
            raise Refused(
                "TOPIC_NOT_FOUND",
                f"no topic has the number {command.topic}",
                hint="nothing is to be done: it is gone, or never was",
            )
        return Done(_deleted_result(deleted, changed=False, op=op))
    if not topic.is_closing() or topic.closing_op != command.intent_op:
        raise Refused(
            "INTENT_STALE",
            f"intent {command.intent_op} to delete {topic.spec.topic_id} does not hold",
            hint="read the topic again; a newer DeleteTopic may have overtaken this one",
        )
    given_up = tuple(sorted(dict.fromkeys(command.given_up)))
    _check_given_up(topic, given_up)

    deleted = DeletedTopic(
        topic_id=topic.spec.topic_id,
        number=topic.number,
        fence=topic.fence,
        deleted_op=op,
        given_up=given_up,
        project_id=topic.spec.project_id,
        name=topic.spec.name(),
    )
    state.drop_topic(topic.spec.topic_id)
    holds.forget(state, topic.spec.topic_id)
    state.put_deleted(deleted)
    groups = _forgotten(state, topic.number, op=op)
    delta = tables.gone_rows_of_name(state, deleted.project_id, deleted.name)
    return Done(_deleted_result(deleted, changed=True, op=op), delta, groups)


def _delete_absent(state: State, op: int, fence: Fence, topic_id: str) -> Done:
    """Remembered even though it never was here: a delayed PutTopic must find the deletion."""
    known = state.deleted_topics.get(topic_id)
    if known is None:
        deleted = DeletedTopic(topic_id=topic_id, number=0, fence=fence, deleted_op=op)
        state.put_deleted(deleted)
        return Done(_deleted_result(deleted, changed=True, op=op))
    check_fence(topic_id, fence, known.fence)
    state.deleted_topics[topic_id] = replace(known, fence=fence)
    return Done(_deleted_result(known, changed=False, op=op))


def _rebalanced(state: State, topic: int, *, op: int) -> tuple[int, ...]:
    """Assign what a topic has more of to the groups that read it."""
    changed = []
    for number, group in sorted(state.groups.items()):
        if any(topic in member.topics for member in group.members.values()):
            partitions = state.partitions_read(group)
            if membership.rebalance(group, partitions=partitions, op=op):
                changed.append(number)
    return tuple(changed)


def _forgotten(state: State, topic: int, *, op: int) -> tuple[int, ...]:
    """Take a topic that is gone out of every group."""
    changed = []
    for number, group in sorted(state.groups.items()):
        partitions = state.partitions_read(group)
        if membership.forget_topic(group, topic, partitions=partitions, op=op):
            changed.append(number)
    return tuple(changed)


def _name_rows(state: State, stored: Topic | None, topic: Topic) -> bytes:
    """How the names that were taken or given up stand now, for stale handles of deleted topics."""
    project_id, name = topic.spec.project_id, topic.spec.name()
    if stored is None:
        return tables.gone_rows_of_name(state, project_id, name)
    if stored.spec.name() == name:
        return b""
    given_up = tables.gone_rows_of_name(state, project_id, stored.spec.name())
    return given_up + tables.gone_rows_of_name(state, project_id, name)


def _check_not_deleted(state: State, topic_id: str, fence: Fence) -> None:
    deleted = state.deleted_topics.get(topic_id)
    if deleted is None:
        return
    check_fence(topic_id, fence, deleted.fence)
    raise Refused(
        "TOPIC_DELETED",
        f"{topic_id} was deleted by metadata op {deleted.deleted_op}, for ever",
        hint="create a topic with a new id; it may have the same name",
    )


def _check_not_system(topic: Topic) -> None:
    if topic.is_system():
        raise Refused(
            "PERMISSION_DENIED",
            f"{topic.spec.topic_id} belongs to the system and lives as long as the cluster",
            hint="name a topic that the control plane made",
        )


def _check_lives(topic: Topic) -> None:
    if topic.is_closing():
        raise Refused(
            "TOPIC_CLOSING",
            f"{topic.spec.topic_id} is being deleted since metadata op {topic.closing_op}",
            hint="wait until it is gone, then create a topic with a new id",
        )


def _check_nodes(state: State, wanted: int) -> None:
    if wanted > len(state.nodes):
        raise Refused(
            "NODES_TOO_FEW",
            f"{wanted} replicas need as many nodes; the cluster has {len(state.nodes)}",
            hint="add nodes, or ask for fewer replicas",
        )


def _check_name(state: State, spec: TopicSpec) -> None:
    holder = state.topic_named(spec.project_id, spec.name())
    if holder is None or holder.spec.topic_id == spec.topic_id:
        return
    taken = f"{spec.name()} is already the name of {holder.spec.topic_id} in {spec.project_id}"
    if holder.is_closing():
        raise Refused(
            "TOPIC_NAME_TAKEN",
            f"{taken}, which is being deleted",
            hint="repeat once it is gone: the name is free then",
            kind=RETRY_SAME_NODE,
            retry_after_ms=CLOSING_RETRY_MS,
        )
    raise Refused(
        "TOPIC_NAME_TAKEN", taken, hint="choose another name, or delete the other topic first"
    )


def _check_change(before: TopicSpec, after: TopicSpec) -> None:
    if (before.organization_id, before.project_id) != (after.organization_id, after.project_id):
        raise Refused(
            "OBJECT_MOVED",
            f"{before.topic_id} belongs to {before.project_id} of {before.organization_id}",
            hint="a topic cannot change its project; create a new one there",
        )
    if before.partitions > after.partitions:
        raise Refused(
            "PARTITIONS_DECREASE",
            f"{before.topic_id} has {before.partitions} partitions, and records in them; "
            f"it cannot have {after.partitions}",
            hint="create a topic with the required count, or restore the count in the spec",
        )
    if before.replication_factor != after.replication_factor:
        raise Refused(
            "REPLICATION_FIXED",
            f"{before.topic_id} has {before.replication_factor} replicas; this release cannot "
            f"make it {after.replication_factor}",
            hint="restore the replication factor in the spec",
        )


def _check_given_up(topic: Topic, given_up: tuple[int, ...]) -> None:
    if given_up and not topic.force_reason:
        raise Refused(
            "INVALID_ARGUMENT",
            f"{len(given_up)} partitions of {topic.spec.topic_id} are given up without a reason "
            "for force",
            hint="send DeleteTopic with force_reason first",
        )
    if given_up and given_up[-1] >= topic.spec.partitions:
        raise Refused(
            "INVALID_ARGUMENT",
            f"{topic.spec.topic_id} has no partition {given_up[-1]}",
            hint=f"name partitions from 0 to {topic.spec.partitions - 1}",
        )


def _result(topic: Topic, *, changed: bool, op: int) -> wire.Result:
    return applied(number=topic.number, revision=topic.created_revision, changed=changed, op=op)


def _deleted_result(deleted: DeletedTopic, *, changed: bool, op: int) -> wire.Result:
    return applied(number=deleted.number, revision=0, changed=changed, op=op, deleted=True)
