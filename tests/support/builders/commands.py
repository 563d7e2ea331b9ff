"""Commands and machines for the tests of the metadata."""

from collections.abc import Sequence

from dataplane.metadata.commands import decode_result, encode_command
from dataplane.metadata.machine import Applied, Machine
from dataplane.wire import node_pb2 as wire


def _control(fence: tuple[int, int, int], request: wire.ApplyRequest) -> wire.Command:
    db_epoch, generation, lease_token = fence
    request.fence.CopyFrom(
        wire.Fence(db_epoch=db_epoch, generation=generation, lease_token=lease_token)
    )
    return wire.Command(control=wire.AppliedByControlPlane(request=request))


def put_topic(
    topic_id: str = "tp_1",
    *,
    topic: str = "clicks",
    partitions: int = 2,
    project_id: str = "prj_1",
    organization_id: str = "org_1",
    fence: tuple[int, int, int] = (1, 1, 1),
    replication_factor: int = 1,
    retention_ms: int = -1,
) -> wire.Command:
    """A PutTopic command of the control plane."""
    spec = wire.PutTopic(
        topic_id=topic_id,
        organization_id=organization_id,
        project_id=project_id,
        project="default",
        stream="default",
        topic=topic,
        partitions=partitions,
        replication_factor=replication_factor,
        retention_ms=retention_ms,
        retention_bytes=-1,
        segment_bytes=1024 * 1024,
        codec="none",
        message_bytes_max=1024 * 1024,
    )
    return _control(fence, wire.ApplyRequest(put_topic=spec))


def put_hold(
    hold_id: str = "hold_1",
    *,
    topic_id: str = "tp_1",
    partitions: tuple[int, ...] = (),
    from_offset: int = 0,
    fence: tuple[int, int, int] = (1, 1, 1),
) -> wire.Command:
    """A PutHold command of the control plane."""
    hold = wire.PutHold(
        hold_id=hold_id, topic_id=topic_id, partitions=partitions, from_offset=from_offset
    )
    return _control(fence, wire.ApplyRequest(put_hold=hold))


def release_hold(
    hold_id: str = "hold_1",
    *,
    topic_id: str = "tp_1",
    fence: tuple[int, int, int] = (1, 2, 1),
) -> wire.Command:
    """A ReleaseHold command of the control plane."""
    hold = wire.ReleaseHold(hold_id=hold_id, topic_id=topic_id)
    return _control(fence, wire.ApplyRequest(release_hold=hold))


def confirm_hold(topic: int, intent_op: int) -> wire.Command:
    """Every partition's log has this intent."""
    return wire.Command(confirm_hold=wire.ConfirmHold(topic=topic, intent_op=intent_op))


def delete_topic(
    topic_id: str = "tp_1", *, fence: tuple[int, int, int] = (1, 2, 1), force_reason: str = ""
) -> wire.Command:
    """The intent to delete a topic."""
    deletion = wire.DeleteTopic(topic_id=topic_id, force_reason=force_reason)
    return _control(fence, wire.ApplyRequest(delete_topic=deletion))


def confirm_delete(topic: int, intent_op: int, *, given_up: Sequence[int] = ()) -> wire.Command:
    """Every partition of a topic is sealed."""
    return wire.Command(
        confirm_delete=wire.ConfirmDelete(topic=topic, intent_op=intent_op, given_up=given_up)
    )


def put_key(
    key_id: str = "key_1",
    *,
    public_id: str = "abcdefghij",
    role: str = "editor",
    organization_id: str = "org_1",
    project_id: str = "prj_1",
    fence: tuple[int, int, int] = (1, 1, 1),
) -> wire.Command:
    """A PutKey command of the control plane."""
    spec = wire.PutKey(
        key_id=key_id,
        public_id=public_id,
        secret_sha256=bytes(range(32)),
        organization_id=organization_id,
        project_id=project_id,
        role=role,
    )
    return _control(fence, wire.ApplyRequest(put_key=spec))


def revoke_key(key_id: str = "key_1", *, fence: tuple[int, int, int] = (1, 2, 1)) -> wire.Command:
    """Revokes a key."""
    return _control(fence, wire.ApplyRequest(revoke_key=wire.RevokeKey(key_id=key_id)))


def join(member: str, session: int, topics: list[int], *, group: str = "readers") -> wire.Command:
    """A member joins."""
    return wire.Command(
        join_group=wire.JoinGroup(
            organization_id="org_1",
            project_id="prj_1",
            group=group,
            member=member,
            session=session,
            topics=topics,
        )
    )


def leave(group: int, member: str, session: int) -> wire.Command:
    """A member leaves."""
    return wire.Command(leave_group=wire.LeaveGroup(group=group, member=member, session=session))


def confirm(group: int, topic: int, partition: int, intent_op: int) -> wire.Command:
    """A partition's log has closed the old owner."""
    return wire.Command(
        confirm_move=wire.ConfirmMove(
            group=group,
            topic=topic,
            partition=partition,
            intent_op=intent_op,
            has_committed=True,
            committed=7,
        )
    )


def bootstrap() -> wire.Command:
    """Gives the cluster its identity."""
    return wire.Command(
        bootstrap=wire.Bootstrap(
            cluster_id="cl_1",
            system_organization_id="org_system",
            system_project_id="prj_system",
            node_id="nd_1",
            address="127.0.0.1:8461",
        )
    )


class Log:
    """A metadata log of one machine: commands in, results out."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.commands: list[bytes] = []
        self.do(bootstrap())

    def do(self, command: wire.Command) -> wire.Result:
        """Commit and apply one command."""
        return decode_result(self.apply(encode_command(command)).result)

    def apply(self, data: bytes) -> Applied:
        """Commit and apply raw bytes."""
        self.commands.append(data)
        return self.machine.apply(len(self.commands), len(self.commands) * 1000, data)
