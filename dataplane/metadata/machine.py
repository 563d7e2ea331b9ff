"""The metadata machine: committed commands in op order -> results and table deltas. Pure,
deterministic, replicated.

Owns the dispatch of commands and the rules about keys, principals and groups; those about topics
stand in `topics.py`. It sees no
clock, no randomness, no floating point and iterates over no set, so equal logs give equal states,
byte for byte (`digest`). Domain errors are results; commands it cannot read are answered with a
refusal; any other exception is a defect, and the node stops on it.

Invariants:
- numbers are given once: counters only rise;
- a fence, once stored, is never lowered: a command with a lower one changes nothing;
- a refused command changes nothing but `op`;
- a revoked key never becomes active again;
- a deleted topic never lives again, as long as it is remembered.
"""

from dataclasses import dataclass, replace

from dataplane.errors import Refused
from dataplane.groups import membership
from dataplane.groups.assignment import Slice
from dataplane.groups.membership import Group, Member, Owner
from dataplane.metadata import holds, rules, snapshot, tables, topics
from dataplane.metadata.commands import (
    decode_command,
    encode_result,
    fence_of,
    key_spec_of,
)
from dataplane.metadata.outcome import NO_FENCE, Done, applied, check_fence
from dataplane.metadata.projects import check_owner, put_organization, put_project
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


@dataclass(frozen=True, slots=True)
class Applied:
    """What one op did.

    `delta` is what the shards' tables change by; `groups` the numbers of the groups that changed;
    `closing` that of the topic which the op decided to delete, `holding` that of the topic whose
    holds changed, 0 = none.
    """

    result: bytes
    delta: bytes
    groups: tuple[int, ...] = ()
    closing: int = 0
    holding: int = 0


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
            done = Done(wire.Result(refused=refusal.error()))
        self.state.op = op
        done.result.op = op
        result = encode_result(done.result)
        return Applied(result, done.delta, done.groups, done.closing, done.holding)

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

    def _apply(self, op: int, command: wire.Command | None) -> Done:
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
        if kind == "confirm_delete":
            return topics.confirm_delete(self.state, op, command.confirm_delete)
        if kind == "confirm_hold":
            return holds.confirm(self.state, op, command.confirm_hold)
        return self._confirm_move(command.confirm_move)

    # ---- the cluster ----

    def _bootstrap(self, op: int, command: wire.Bootstrap) -> Done:
        state = self.state
        if state.bootstrap_op:
            if state.cluster_id != command.cluster_id:
                raise Refused(
                    "ALREADY_BOOTSTRAPPED",
                    f"this log belongs to cluster {state.cluster_id}, not {command.cluster_id}",
                )
            state.nodes[command.node_id] = Node(command.node_id, command.address)
            return Done(applied(number=0, revision=state.bootstrap_op, changed=False, op=op))
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
        return Done(applied(number=0, revision=op, changed=True, op=op), delta)

    # ---- commands of the control plane ----

    def _control(self, op: int, request: wire.ApplyRequest) -> Done:
        fence = fence_of(request.fence)
        kind = request.WhichOneof("command")
        if kind == "put_topic":
            return topics.put(self.state, op, fence, request.put_topic)
        if kind == "delete_topic":
            return topics.delete(self.state, op, fence, request.delete_topic)
        if kind == "put_hold":
            return holds.put(self.state, op, fence, request.put_hold)
        if kind == "release_hold":
            return holds.release(self.state, op, fence, request.release_hold)
        if kind == "put_key":
            return self._put_key(op, fence, request.put_key)
        if kind == "revoke_key":
            return self._revoke_key(op, fence, request.revoke_key)
        raise Refused(
            "COMMAND_UNKNOWN",
            "the request carries no command this release knows",
            hint="upgrade every node before using the new command",
        )

    def _put_key(self, op: int, fence: Fence, command: wire.PutKey) -> Done:
        rules.check_key(command)
        spec = key_spec_of(command)
        stored = self.state.keys.get(spec.key_id)
        if stored is not None:
            check_fence(spec.key_id, fence, stored.fence)
            if not stored.active:
                raise Refused(
                    "KEY_REVOKED", f"{spec.key_id} is revoked, for ever", hint="make a new key"
                )
            if fence == stored.fence and fence != NO_FENCE:
                return Done(_key_applied(stored, changed=False, op=op))
            if stored.spec.organization_id != spec.organization_id:
                raise Refused("OBJECT_MOVED", f"{spec.key_id} belongs to another organization")
        self._check_key_place(spec)

        put_organization(self.state, spec.organization_id)
        if spec.project_id and spec.project_id not in self.state.projects:
            put_project(self.state, spec.organization_id, spec.project_id, "")
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
        return Done(_key_applied(key, changed=changed, op=op), delta)

    def _check_key_place(self, spec: KeySpec) -> None:
        holder = self.state.key_ids_by_public_id.get(spec.public_id)
        if holder is not None and holder != spec.key_id:
            raise Refused(
                "KEY_PUBLIC_ID_TAKEN",
                f"the public id of {spec.key_id} is already that of {holder}",
                hint="make a new key",
            )
        check_owner(self.state, spec.organization_id, spec.project_id)

    def _revoke_key(self, op: int, fence: Fence, command: wire.RevokeKey) -> Done:
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
            return Done(_key_applied(stored, changed=True, op=op))
        check_fence(command.key_id, fence, stored.fence)
        key = replace(stored, fence=fence, active=False)
        self.state.put_key(key)
        delta = tables.grant_gone_row(stored.spec.public_id) if stored.active else b""
        return Done(_key_applied(key, changed=stored.active, op=op), delta)

    # ---- groups ----

    def _join_group(self, op: int, command: wire.JoinGroup) -> Done:
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
            partitions=self.state.partitions_read(group, numbers),
            op=op,
        )
        return _group_changed(group, changed=changed)

    def _leave_group(self, op: int, command: wire.LeaveGroup) -> Done:
        group = self._group(command.group)
        changed = membership.leave(
            group,
            Owner(command.member, command.session),
            partitions=self.state.partitions_read(group),
            op=op,
        )
        return _group_changed(group, changed=changed)

    def _confirm_move(self, command: wire.ConfirmMove) -> Done:
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


def _key_applied(key: ApiKey, *, changed: bool, op: int) -> wire.Result:
    return applied(number=key.principal, revision=0, changed=changed, op=op)


def _group_changed(group: Group, *, changed: bool) -> Done:
    return Done(
        wire.Result(
            group=wire.GroupChanged(
                group=group.number, generation=group.generation, changed=changed
            )
        ),
        groups=(group.number,),
    )
