"""The metadata machine: committed commands in op order -> results and table deltas. Pure,
deterministic, replicated.

Owns every rule about topics, keys, principals and groups that replicas must agree on. It sees no
clock, no randomness, no floating point and iterates over no set, so equal logs give equal states,
byte for byte (`digest`). Domain errors are results; commands it cannot read are answered with a
refusal; any other exception is a defect, and the node stops on it.

Invariants:
- numbers are given once: counters only rise;
- a fence, once stored, is never lowered: a command with a lower one changes nothing;
- a refused command changes nothing but `op`;
- a revoked key never becomes active again.
"""

from dataclasses import dataclass, replace

from dataplane.errors import Refused
from dataplane.groups import membership
from dataplane.groups.assignment import Slice
from dataplane.groups.membership import Group, Member, Owner
from dataplane.metadata import rules, snapshot, tables
from dataplane.metadata.commands import (
    decode_command,
    encode_result,
    fence_of,
    key_spec_of,
    topic_spec_of,
)
from dataplane.metadata.state import (
    SYSTEM_ORGANIZATION_NUMBER,
    SYSTEM_PROJECT_NUMBER,
    SYSTEM_TOPICS,
    ApiKey,
    Fence,
    KeySpec,
    Node,
    Organization,
    Project,
    State,
    Topic,
    TopicSpec,
)
from dataplane.wire import node_pb2 as wire

NO_FENCE = Fence(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Applied:
    """What one op did.

    `delta` is what the shards' tables change by; `group` the group that changed, 0 = none.
    """

    result: bytes
    delta: bytes
    group: int = 0


@dataclass(frozen=True, slots=True)
class _Done:
    result: wire.Result
    delta: bytes = b""
    group: int = 0


class Machine:
    """One replica's metadata.

    Not thread-safe: one thread applies, readers hold the owner's lock.
    """

    def __init__(self) -> None:
        self.state = State()

    def apply(self, op: int, append_time_us: int, command: bytes) -> Applied:
        """Apply the committed command of `op`. Ops rise; a gap is an op that carried no command.

        append_time_us: the op's agreed time. No rule needs it yet.
        """
        if op <= self.state.op:
            raise ValueError(f"metadata op {op} after {self.state.op}: ops are applied once each")
        decoded = decode_command(command)
        try:
            done = self._apply(op, decoded)
        except Refused as refusal:
            done = _Done(wire.Result(refused=refusal.error()))
        self.state.op = op
        done.result.op = op
        return Applied(encode_result(done.result), done.delta, done.group)

    def snapshot(self) -> bytes:
        """The state as canonical bytes."""
        return snapshot.encode(self.state)

    def restore(self, data: bytes) -> bytes:
        """Replace the state by a snapshot's (empty bytes: the empty state).

        Returns the full tables.
        """
        self.state = snapshot.decode(data)
        return tables.full_tables(self.state)

    def digest(self) -> bytes:
        """32 bytes that are equal exactly when the states are."""
        return snapshot.digest(self.snapshot())

    def _apply(self, op: int, command: wire.Command | None) -> _Done:
        kind = None if command is None else command.WhichOneof("command")
        if command is None or kind is None:
            raise Refused(
                "COMMAND_UNKNOWN",
                "this release cannot read the command",
                hint="upgrade every node before using the new command",
            )
        if kind == "bootstrap":
            return self._bootstrap(op, command.bootstrap)
        if not self.state.bootstrap_op:
            raise Refused("NOT_BOOTSTRAPPED", "the cluster has no name yet", hint="try again")
        if kind == "control":
            return self._control(op, command.control.request)
        if kind == "join_group":
            return self._join_group(op, command.join_group)
        if kind == "leave_group":
            return self._leave_group(op, command.leave_group)
        return self._confirm_move(command.confirm_move)

    # ---- the cluster ----

    def _bootstrap(self, op: int, command: wire.Bootstrap) -> _Done:
        state = self.state
        if state.bootstrap_op:
            if state.cluster_id != command.cluster_id:
                raise Refused(
                    "ALREADY_BOOTSTRAPPED",
                    f"this log belongs to cluster {state.cluster_id}, not {command.cluster_id}",
                )
            state.nodes[command.node_id] = Node(command.node_id, command.address)
            return _Done(_applied(number=0, revision=state.bootstrap_op, changed=False, op=op))
        state.cluster_id = command.cluster_id
        state.bootstrap_op = op
        state.nodes[command.node_id] = Node(command.node_id, command.address)
        organization_id = command.system_organization_id
        project_id = command.system_project_id
        state.organizations[organization_id] = Organization(
            SYSTEM_ORGANIZATION_NUMBER, organization_id
        )
        state.projects[project_id] = Project(
            SYSTEM_PROJECT_NUMBER, project_id, organization_id, "_system"
        )
        delta = tables.project_row(state, state.projects[project_id])
        for name, number in SYSTEM_TOPICS.items():
            topic = Topic(
                number=number,
                created_revision=op,
                spec=_system_topic(name, organization_id, project_id),
                fence=NO_FENCE,
            )
            state.put_topic(topic)
            delta += tables.topic_row(state, topic)
        return _Done(_applied(number=0, revision=op, changed=True, op=op), delta)

    # ---- what the control plane wishes ----

    def _control(self, op: int, request: wire.ApplyRequest) -> _Done:
        fence = fence_of(request.fence)
        kind = request.WhichOneof("command")
        if kind == "put_topic":
            return self._put_topic(op, fence, request.put_topic)
        if kind == "put_key":
            return self._put_key(op, fence, request.put_key)
        if kind == "revoke_key":
            return self._revoke_key(op, fence, request.revoke_key)
        raise Refused(
            "COMMAND_UNKNOWN",
            "the request carries no command this release knows",
            hint="upgrade every node before using the new command",
        )

    def _put_topic(self, op: int, fence: Fence, command: wire.PutTopic) -> _Done:
        rules.check_topic(command)
        spec = topic_spec_of(command)
        stored = self.state.topics.get(spec.topic_id)
        if stored is not None:
            _check_fence(spec.topic_id, fence, stored.fence)
            if fence == stored.fence and fence != NO_FENCE:
                return _Done(_topic_applied(stored, changed=False, op=op))
            _check_topic_change(stored.spec, spec)
        else:
            self._check_nodes(spec.replication_factor)
        self._check_project(spec)
        self._check_topic_name(spec)

        delta = self._put_project(spec.organization_id, spec.project_id, spec.project)
        if stored is None:
            topic = Topic(
                number=self.state.counters.topic, created_revision=op, spec=spec, fence=fence
            )
            self.state.counters.topic += 1
        else:
            topic = replace(stored, spec=spec, fence=fence)
        self.state.put_topic(topic)
        changed = stored is None or stored.spec != spec
        if changed:
            delta += tables.topic_row(self.state, topic)
        return _Done(_topic_applied(topic, changed=changed, op=op), delta)

    def _check_nodes(self, wanted: int) -> None:
        if wanted > len(self.state.nodes):
            raise Refused(
                "NODES_TOO_FEW",
                f"{wanted} replicas need as many nodes; the cluster has {len(self.state.nodes)}",
                hint="add nodes, or ask for fewer replicas",
            )

    def _check_project(self, spec: TopicSpec) -> None:
        project = self.state.projects.get(spec.project_id)
        if project is not None and project.organization_id != spec.organization_id:
            raise Refused(
                "OBJECT_MOVED",
                f"project {spec.project_id} belongs to {project.organization_id}, "
                f"not to {spec.organization_id}",
                hint="name the organization that owns the project",
            )

    def _check_topic_name(self, spec: TopicSpec) -> None:
        holder = self.state.topic_named(spec.project_id, spec.name())
        if holder is not None and holder.spec.topic_id != spec.topic_id:
            raise Refused(
                "TOPIC_NAME_TAKEN",
                f"{spec.name()} is already the name of {holder.spec.topic_id} in {spec.project_id}",
                hint="choose another name, or delete the other topic first",
            )

    def _put_key(self, op: int, fence: Fence, command: wire.PutKey) -> _Done:
        rules.check_key(command)
        spec = key_spec_of(command)
        stored = self.state.keys.get(spec.key_id)
        if stored is not None:
            _check_fence(spec.key_id, fence, stored.fence)
            if not stored.active:
                raise Refused(
                    "KEY_REVOKED", f"{spec.key_id} is revoked, for ever", hint="make a new key"
                )
            if fence == stored.fence and fence != NO_FENCE:
                return _Done(_key_applied(stored, changed=False, op=op))
            if stored.spec.organization_id != spec.organization_id:
                raise Refused("OBJECT_MOVED", f"{spec.key_id} belongs to another organization")
        self._check_key_place(spec)

        self._put_organization(spec.organization_id)
        if spec.project_id and spec.project_id not in self.state.projects:
            self._put_project(spec.organization_id, spec.project_id, "")
        if stored is None:
            key = ApiKey(
                principal=self.state.counters.principal, spec=spec, fence=fence, active=True
            )
            self.state.counters.principal += 1
        else:
            key = replace(stored, spec=spec, fence=fence)
        self.state.put_key(key)
        changed = stored is None or stored.spec != spec
        delta = b""
        if stored is not None and stored.spec.public_id != spec.public_id:
            delta += tables.grant_gone_row(stored.spec.public_id)
        if changed:
            delta += tables.grant_row(self.state, key)
        return _Done(_key_applied(key, changed=changed, op=op), delta)

    def _check_key_place(self, spec: KeySpec) -> None:
        holder = self.state.key_ids_by_public_id.get(spec.public_id)
        if holder is not None and holder != spec.key_id:
            raise Refused(
                "KEY_PUBLIC_ID_TAKEN",
                f"the public id of {spec.key_id} is already that of {holder}",
                hint="make a new key",
            )
        project = self.state.projects.get(spec.project_id)
        if project is not None and project.organization_id != spec.organization_id:
            raise Refused("OBJECT_MOVED", f"project {spec.project_id} is of another organization")

    def _revoke_key(self, op: int, fence: Fence, command: wire.RevokeKey) -> _Done:
        rules.check_revocation(command)
        stored = self.state.keys.get(command.key_id)
        if stored is None:
            # Remembered even though it never was here: a delayed PutKey must find the revocation.
            stored = ApiKey(
                principal=0,
                spec=key_spec_of(wire.PutKey(key_id=command.key_id)),
                fence=fence,
                active=False,
            )
            self.state.put_key(stored)
            return _Done(_key_applied(stored, changed=True, op=op))
        _check_fence(command.key_id, fence, stored.fence)
        key = replace(stored, fence=fence, active=False)
        self.state.put_key(key)
        delta = tables.grant_gone_row(stored.spec.public_id) if stored.active else b""
        return _Done(_key_applied(key, changed=stored.active, op=op), delta)

    def _put_organization(self, organization_id: str) -> None:
        if organization_id not in self.state.organizations:
            number = self.state.counters.organization
            self.state.counters.organization += 1
            self.state.organizations[organization_id] = Organization(number, organization_id)

    def _put_project(self, organization_id: str, project_id: str, name: str) -> bytes:
        """Returns the table row that says so, if the name is new."""
        self._put_organization(organization_id)
        project = self.state.projects.get(project_id)
        if project is not None and project.name == name:
            return b""
        if project is None:
            number = self.state.counters.project
            self.state.counters.project += 1
            project = Project(number, project_id, organization_id, name)
        project = replace(project, name=name)
        self.state.projects[project_id] = project
        return tables.project_row(self.state, project) if name else b""

    # ---- groups ----

    def _join_group(self, op: int, command: wire.JoinGroup) -> _Done:
        rules.check_join(command)
        state = self.state
        project = state.projects.get(command.project_id)
        if project is None or project.organization_id != command.organization_id:
            raise Refused(
                "PROJECT_NOT_FOUND", f"{command.organization_id} has no {command.project_id} here"
            )
        numbers = sorted(dict.fromkeys(command.topics))
        for number in numbers:
            topic = state.topic_numbered(number)
            if topic is None or topic.spec.organization_id != command.organization_id:
                raise Refused("TOPIC_NOT_FOUND", f"there is no topic {number} in the organization")
        group = state.group_named(command.project_id, command.group)
        if group is not None:
            _check_session(group, command)
        elif len(state.groups) >= rules.GROUPS_MAX:
            raise Refused("RESOURCE_EXHAUSTED", f"the cluster has {rules.GROUPS_MAX} groups")

        if group is None:
            group = Group(
                number=state.counters.group,
                organization_id=command.organization_id,
                project_id=command.project_id,
                name=command.group,
            )
            state.counters.group += 1
            state.put_group(group)
        state.counters.session_max = max(state.counters.session_max, command.session)
        changed = membership.join(
            group,
            command.member,
            Member(command.session, tuple(numbers)),
            partitions=self._partitions_of(group, numbers),
            op=op,
        )
        return _group_changed(group, changed=changed)

    def _leave_group(self, op: int, command: wire.LeaveGroup) -> _Done:
        group = self._group(command.group)
        changed = membership.leave(
            group,
            Owner(command.member, command.session),
            partitions=self._partitions_of(group, []),
            op=op,
        )
        return _group_changed(group, changed=changed)

    def _confirm_move(self, command: wire.ConfirmMove) -> _Done:
        group = self._group(command.group)
        confirmed = membership.confirm(
            group,
            Slice(command.topic, command.partition),
            intent_op=command.intent_op,
            has_committed=command.has_committed,
            committed=command.committed,
        )
        if not confirmed:
            raise Refused("INTENT_STALE", f"intent {command.intent_op} has been overtaken")
        return _group_changed(group, changed=True)

    def _group(self, number: int) -> Group:
        group = self.state.groups.get(number)
        if group is None:
            raise Refused("GROUP_NOT_FOUND", f"there is no group {number}")
        return group

    def _partitions_of(self, group: Group, also: list[int]) -> dict[int, int]:
        """Partition counts of every topic the group's members (and a newcomer) read."""
        numbers = set(also)
        for member in group.members.values():
            numbers.update(member.topics)
        counts: dict[int, int] = {}
        for number in sorted(numbers):
            topic = self.state.topic_numbered(number)
            if topic is not None:
                counts[number] = topic.spec.partitions
        return counts


def _check_fence(what: str, fence: Fence, stored: Fence) -> None:
    if fence < stored:
        raise Refused(
            "COMMAND_FENCED",
            f"{what} was last commanded with fence {tuple(stored)}; {tuple(fence)} is older",
            hint="read the wish again; another worker has taken over",
        )


def _check_topic_change(before: TopicSpec, after: TopicSpec) -> None:
    if (before.organization_id, before.project_id) != (after.organization_id, after.project_id):
        raise Refused(
            "OBJECT_MOVED",
            f"{before.topic_id} belongs to {before.project_id} of {before.organization_id}",
            hint="a topic cannot change its project; create a new one there",
        )
    if before.partitions != after.partitions:
        raise Refused(
            "TOPIC_PARTITIONS_FIXED",
            f"{before.topic_id} has {before.partitions} partitions; this release cannot make it "
            f"{after.partitions}",
            hint="create a topic with the wanted count, or restore the count in the wish",
        )
    if before.replication_factor != after.replication_factor:
        raise Refused(
            "REPLICATION_FIXED",
            f"{before.topic_id} has {before.replication_factor} replicas; this release cannot "
            f"make it {after.replication_factor}",
            hint="restore the replication factor in the wish",
        )


def _check_session(group: Group, command: wire.JoinGroup) -> None:
    member = group.members.get(command.member)
    if member is not None and command.session < member.session:
        raise Refused(
            "SESSION_REPLACED", f"a later session of {command.member} is already a member"
        )
    if member is None and len(group.members) >= rules.MEMBERS_MAX:
        raise Refused(
            "GROUP_FULL",
            f"group {group.name} has {rules.MEMBERS_MAX} members",
            hint="use another group, or fewer members",
        )


def _system_topic(name: str, organization_id: str, project_id: str) -> TopicSpec:
    return TopicSpec(
        topic_id=f"tp_system{name}",
        organization_id=organization_id,
        project_id=project_id,
        project="_system",
        stream="",
        topic=name,
        partitions=1,
        replication_factor=1,
        retention_ms=-1,
        retention_bytes=-1,
        segment_bytes=0,
        codec="none",
        message_bytes_max=tables.MESSAGE_BYTES_DEFAULT,
        retention_ms_min=0,
    )


def _applied(*, number: int, revision: int, changed: bool, op: int) -> wire.Result:
    return wire.Result(
        applied=wire.ApplyReply(
            metadata_op=op, number=number, created_revision=revision, changed=changed
        )
    )


def _topic_applied(topic: Topic, *, changed: bool, op: int) -> wire.Result:
    return _applied(number=topic.number, revision=topic.created_revision, changed=changed, op=op)


def _key_applied(key: ApiKey, *, changed: bool, op: int) -> wire.Result:
    return _applied(number=key.principal, revision=0, changed=changed, op=op)


def _group_changed(group: Group, *, changed: bool) -> _Done:
    return _Done(
        wire.Result(
            group=wire.GroupChanged(
                group=group.number, generation=group.generation, changed=changed
            )
        ),
        group=group.number,
    )
