"""A node's Admin service with a script of faults: only for what a real node cannot be made to do.
Of its Stream service it has what a dry run asks.

It stores fences and compares them as a cluster does, and records every command that was applied.
"""

from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import grpc
from google.protobuf.message import Message

from dataplane.wire import node_pb2, node_pb2_grpc
from headrace.wire import stream_pb2, stream_pb2_grpc

Fault = Callable[[grpc.ServicerContext], None]
FENCES: Final = ("db_epoch", "generation", "lease_token")


def refuse(code: grpc.StatusCode, name: str, *, retry_after_ms: int = 0) -> Fault:
    """A fault that answers a typed error."""

    def fault(context: grpc.ServicerContext) -> None:
        error = stream_pb2.Error(code=name, message=name.lower(), retry_after_ms=retry_after_ms)
        status = stream_pb2.Status(code=code.value[0], message=name)
        status.details.add(
            type_url="type.googleapis.com/headrace.stream.v1.Error",
            value=error.SerializeToString(),
        )
        trailer = ("grpc-status-details-bin", status.SerializeToString())
        context.set_trailing_metadata((trailer,))
        context.abort(code, name)

    return fault


def vanish(context: grpc.ServicerContext) -> None:
    """A fault that looks like a node that went away."""
    context.abort(grpc.StatusCode.UNAVAILABLE, "gone")


@dataclass
class FakeNode(node_pb2_grpc.AdminServicer, stream_pb2_grpc.StreamServicer):
    """One node that is its own cluster. ``before`` and ``after`` are faults of coming Applies, each
    used once: after means that the command was applied and the answer was lost. ``describe`` and
    ``flush`` are faults of coming calls of that name."""

    before: list[Fault] = field(default_factory=list)
    after: list[Fault] = field(default_factory=list)
    describe: list[Fault] = field(default_factory=list)
    flush: list[Fault] = field(default_factory=list)
    on_apply: Callable[[], None] = lambda: None
    topics: dict[str, node_pb2.TopicStatus] = field(default_factory=dict)
    keys: dict[str, node_pb2.KeyStatus] = field(default_factory=dict)
    secrets: dict[str, node_pb2.PutKey] = field(default_factory=dict)
    asked: list[Message] = field(default_factory=list)
    applied: list[node_pb2.ApplyRequest] = field(default_factory=list)
    fenced: int = 0
    flushes: int = 0
    inventories: int = 0
    purged: list[node_pb2.PurgeRequest] = field(default_factory=list)
    purge_refusals: dict[int, str] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    partition_state: str = "READY"
    # How often DeleteTopic is answered with "not yet"; and what a force reason spares.
    closing_polls: int = 0
    deleted: dict[str, node_pb2.Fence] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)
    lagging: set[str] = field(default_factory=set)
    # Holds, and the partitions whose logs have not heard of any yet.
    holds: dict[str, node_pb2.HoldStatus] = field(default_factory=dict)
    deaf: set[int] = field(default_factory=set)
    # Topics that Describe does not show yet.
    unseen: set[str] = field(default_factory=set)
    # Append times by partition index, of every topic alike; and partitions that do not tell them.
    appended: dict[int, list[int]] = field(default_factory=dict)
    mute: set[int] = field(default_factory=set)
    groups: list[node_pb2.GroupStatus] = field(default_factory=list)
    node_id: str = "nd_fake"
    warning: str = ""
    address: str = ""

    def Apply(  # noqa: N802
        self, request: node_pb2.ApplyRequest, context: grpc.ServicerContext
    ) -> node_pb2.ApplyReply:
        """Applies a command unless the script or a fence says no."""
        self._see(request, context)
        _play(self.before, context)
        kind = request.WhichOneof("command")
        known = self._fence_of(request, kind)
        if known is not None and _order(request.fence) < _order(known):
            self.fenced += 1
            refuse(grpc.StatusCode.ABORTED, "FENCED")(context)
        if kind == "put_topic":
            self._refuse_put(request.put_topic, context)
        if kind in ("put_hold", "release_hold"):
            self._hold(request, context)
        gone = False
        if kind == "delete_topic":
            self._refuse_held(request.delete_topic.topic_id, context)
            gone = self._delete(request)
        elif kind not in ("put_hold", "release_hold"):
            self._store(request, kind)
        self.applied.append(request)
        self.on_apply()
        _play(self.after, context)
        return node_pb2.ApplyReply(metadata_op=len(self.applied), changed=True, deleted=gone)

    def Describe(  # noqa: N802
        self, request: node_pb2.DescribeRequest, context: grpc.ServicerContext
    ) -> node_pb2.DescribeReply:
        """What is held of the objects that were asked for."""
        self._see(request, context)
        _play(self.describe, context)
        wanted = list(self.topics) if request.all else request.topic_ids
        topics = [
            self._held(self.topics[each])
            for each in wanted
            if each in self.topics and each not in self.unseen
        ]
        return node_pb2.DescribeReply(
            node_id=self.node_id,
            topics=topics,
            holds=[
                self._confirmed(each)
                for each in self.holds.values()
                if each.topic_id in {topic.topic_id for topic in topics}
            ],
            groups=self.groups if request.groups else [],
            node=node_pb2.NodeStatus(version="1.2.3", shards=2, warning=self.warning),
            keys=[self.keys[each] for each in request.key_ids if each in self.keys],
        )

    def Purge(  # noqa: N802
        self, request: node_pb2.PurgeRequest, context: grpc.ServicerContext
    ) -> node_pb2.PurgeReply:
        """Advances the log starts, up to the ends of the logs."""
        self._see(request, context)
        _play(self.before, context)
        topic = self.topics[request.topic_id]
        reply = node_pb2.PurgeReply()
        for desired in request.partitions:
            found, answer = (
                topic.partitions[desired.index],
                reply.partitions.add(index=desired.index),
            )
            if desired.index in self.purge_refusals:
                answer.refused.code = answer.refused.message = self.purge_refusals[desired.index]
                continue
            found.log_start = max(found.log_start, desired.before_offset)
            answer.log_start = found.log_start
        self.purged.append(request)
        _play(self.after, context)
        return reply

    def ListOffsets(  # noqa: N802
        self, request: stream_pb2.ListOffsetsRequest, context: grpc.ServicerContext
    ) -> stream_pb2.ListOffsetsReply:
        """Where a time lies, by the append times of the script."""
        self._see(request, context)
        if request.partition in self.mute:
            vanish(context)
        found = next(each for each in self.topics.values() if each.number == request.topic)
        place = found.partitions[request.partition]
        times = self.appended.get(request.partition, [])
        late = [offset for offset, at in enumerate(times) if at >= request.time_us]
        offset = max(place.log_start, late[0] if late else place.log_end)
        return stream_pb2.ListOffsetsReply(
            found=bool(late),
            offset=offset,
            append_time_us=times[offset] if late else 0,
            log_start=place.log_start,
            high_watermark=place.log_end,
        )

    def FlushUsage(  # noqa: N802
        self, request: node_pb2.FlushUsageRequest, context: grpc.ServicerContext
    ) -> node_pb2.FlushUsageReply:
        """Counts that it was asked."""
        self._see(request, context)
        _play(self.flush, context)
        self.flushes += 1
        self.inventories += request.inventory
        return node_pb2.FlushUsageReply()

    def _see(self, request: Message, context: grpc.ServicerContext) -> None:
        self.asked.append(request)
        self.tokens.update(
            str(value) for name, value in context.invocation_metadata() if name == "authorization"
        )

    def _fence_of(self, request: node_pb2.ApplyRequest, kind: str | None) -> node_pb2.Fence | None:
        held: node_pb2.TopicStatus | node_pb2.KeyStatus | node_pb2.HoldStatus | None
        if kind in ("put_topic", "delete_topic"):
            topic_id = request.put_topic.topic_id or request.delete_topic.topic_id
            if topic_id in self.deleted:
                return self.deleted[topic_id]
            held = self.topics.get(topic_id)
        elif kind in ("put_hold", "release_hold"):
            held = self.holds.get(request.put_hold.hold_id or request.release_hold.hold_id)
        else:
            held = self.keys.get(request.put_key.key_id or request.revoke_key.key_id)
        return held.fence if held is not None else None

    def _refuse_put(self, desired: node_pb2.PutTopic, context: grpc.ServicerContext) -> None:
        """What a cluster says to a topic it has deleted, or to fewer partitions."""
        held = self.topics.get(desired.topic_id)
        if desired.topic_id in self.deleted or (held is not None and held.closing):
            refuse(grpc.StatusCode.FAILED_PRECONDITION, "TOPIC_CLOSED")(context)
        if held is not None and desired.partitions < len(held.partitions):
            refuse(grpc.StatusCode.FAILED_PRECONDITION, "PARTITIONS_DECREASE")(context)

    def _hold(self, request: node_pb2.ApplyRequest, context: grpc.ServicerContext) -> None:
        """The intent, as the metadata of a cluster keeps it."""
        put, release = request.put_hold, request.release_hold
        hold_id, topic_id = put.hold_id or release.hold_id, put.topic_id or release.topic_id
        topic, known = self.topics.get(topic_id), self.holds.get(hold_id)
        if topic is None:
            refuse(grpc.StatusCode.NOT_FOUND, "TOPIC_NOT_FOUND")(context)
        elif topic.closing:
            refuse(grpc.StatusCode.FAILED_PRECONDITION, "TOPIC_CLOSING")(context)
        if put.hold_id and known is not None and not known.active:
            refuse(grpc.StatusCode.FAILED_PRECONDITION, "HOLD_RELEASED")(context)
        self.holds[hold_id] = node_pb2.HoldStatus(
            hold_id=hold_id,
            topic_id=topic_id,
            partitions=put.partitions if put.hold_id or known is None else known.partitions,
            from_offset=put.from_offset,
            active=bool(put.hold_id),
            intent_op=len(self.applied) + 1,
            fence=request.fence,
        )

    def _refuse_held(self, topic_id: str, context: grpc.ServicerContext) -> None:
        if any(each.active and each.topic_id == topic_id for each in self.holds.values()):
            refuse(grpc.StatusCode.FAILED_PRECONDITION, "TOPIC_HELD")(context)

    def _concerned(self, hold: node_pb2.HoldStatus) -> set[int]:
        everywhere = {each.index for each in self.topics[hold.topic_id].partitions}
        return set(hold.partitions) or everywhere

    def _confirmed(self, hold: node_pb2.HoldStatus) -> node_pb2.HoldStatus:
        """A hold as Describe shows it: confirmed once every partition has heard of it."""
        shown = node_pb2.HoldStatus()
        shown.CopyFrom(hold)
        shown.confirmed = not self._concerned(hold) & self.deaf
        return shown

    def _held(self, topic: node_pb2.TopicStatus) -> node_pb2.TopicStatus:
        """A topic with what holds its partitions, where they have heard of it."""
        for each in topic.partitions:
            holds = [
                hold.from_offset
                for hold in self.holds.values()
                if hold.active and hold.topic_id == topic.topic_id
                if each.index in self._concerned(hold)
            ]
            each.held = bool(holds) and each.index not in self.deaf
            each.held_from = min(holds) if each.held else 0
        return topic

    def _delete(self, request: node_pb2.ApplyRequest) -> bool:
        """One DeleteTopic: whether nothing of the topic is left after it."""
        desired = request.delete_topic
        held = self.topics.get(desired.topic_id)
        if held is not None:
            held.closing = True
            held.fence.CopyFrom(request.fence)
            damaged = any(each.state == "DAMAGED" for each in held.partitions)
            if self.closing_polls > 0 or (damaged and not desired.force_reason):
                self.closing_polls -= 1
                return False
            self.given_up.update({desired.topic_id: desired.force_reason} if damaged else {})
            if desired.topic_id not in self.lagging:
                del self.topics[desired.topic_id]
        self.deleted[desired.topic_id] = request.fence
        return True

    def _store(self, request: node_pb2.ApplyRequest, kind: str | None) -> None:
        if kind == "put_topic":
            spec = request.put_topic
            self.topics[spec.topic_id] = node_pb2.TopicStatus(
                topic_id=spec.topic_id,
                number=16 + len(self.topics),
                created_revision=1,
                spec=spec,
                fence=request.fence,
                partitions=[
                    node_pb2.PartitionStatus(
                        index=index,
                        primary="nd_fake",
                        replicas=["nd_fake"],
                        state=self.partition_state,
                    )
                    for index in range(spec.partitions)
                ],
            )
        else:
            key_id = request.put_key.key_id or request.revoke_key.key_id
            if kind == "put_key":
                self.secrets[key_id] = request.put_key
            self.keys[key_id] = node_pb2.KeyStatus(
                key_id=key_id, active=kind == "put_key", fence=request.fence
            )


def _order(fence: node_pb2.Fence) -> tuple[int, int, int]:
    return fence.db_epoch, fence.generation, fence.lease_token


def _play(faults: list[Fault], context: grpc.ServicerContext) -> None:
    if faults:
        faults.pop(0)(context)


@contextmanager
def serving(node: FakeNode, port: int = 0) -> Iterator[FakeNode]:
    """The node on a port of the loopback; 0 for one that is free."""
    server = grpc.server(futures.ThreadPoolExecutor(4))
    node_pb2_grpc.add_AdminServicer_to_server(node, server)
    stream_pb2_grpc.add_StreamServicer_to_server(node, server)
    node.address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    server.start()
    try:
        yield node
    finally:
        server.stop(None).wait()
