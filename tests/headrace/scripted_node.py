"""A node in one file, on real gRPC, with faults on demand. It proves the client's side, and nothing
about the engine.

It keeps the rules that the client relies on: offsets at append, sequences per producer, long poll,
generations. A fault is named before the traffic: cut a stream before or after an append, refuse the
next batches, or stop and start again.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import Message

from headrace import codec
from headrace.wire import stream_pb2 as wire
from tests.headrace.scripted_errors import abort, refusal
from tests.headrace.scripted_log import Faults, Log, Producer

if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Message, Message]
else:
    # grpcio's own class takes no parameters at run time.
    Handler = grpc.RpcMethodHandler
Method = tuple[Callable[..., Handler], Callable[..., object], type[Message]]
NODE = "nd_test"


class ScriptedNode:
    """Serves topics on a free port; `stop` and `start` keep the logs, as a disk would."""

    def __init__(self, topics: dict[str, int]) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.faults = Faults()
        self.partitions = topics
        self.numbers = {name: 16 + i for i, name in enumerate(topics)}
        self.revisions = dict.fromkeys(topics, 1)
        self.logs = {
            (n, p): Log(self.seed(n, p)) for n, count in topics.items() for p in range(count)
        }
        self.produce_requests = 0
        self.groups: dict[str, Group] = {}
        self.token: str | None = None
        self.port = 0
        self._server: grpc.Server | None = None
        self._stopping = threading.Event()

    def seed(self, topic: str, partition: int) -> int:
        """What the partition's stored batches are bound to."""
        number, revision = self.numbers[topic], self.revisions[topic]
        return codec.partition_seed("cl_test", number, revision, partition)

    def recreate(self, topic: str, partitions: int | None = None) -> None:
        """Delete a topic and make another one of its name, empty."""
        with self.changed:
            self.revisions[topic] += 1
            self.partitions[topic] = partitions or self.partitions[topic]
            for key in [key for key in self.logs if key[0] == topic]:
                del self.logs[key]
            for partition in range(self.partitions[topic]):
                self.logs[topic, partition] = Log(self.seed(topic, partition))
            self.changed.notify_all()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> ScriptedNode:
        self._stopping = threading.Event()
        server = grpc.server(
            futures.ThreadPoolExecutor(32),
            options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 16 << 20)],
        )
        for service, methods in self._methods().items():
            handlers = {
                method: make(
                    behaviour,
                    request_deserializer=request.FromString,
                    response_serializer=self._bytes_of,
                )
                for method, (make, behaviour, request) in methods.items()
            }
            name = f"headrace.stream.v1.{service}"
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
        self.port = server.add_insecure_port(f"127.0.0.1:{self.port}")
        server.start()
        self._server = server
        return self

    def _methods(self) -> dict[str, dict[str, Method]]:
        unary, bidi = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        return {
            "Cluster": {"Describe": (unary, self.describe, wire.DescribeRequest)},
            "Stream": {
                "ProduceStream": (bidi, self.produce_stream, wire.ProduceRequest),
                "Fetch": (unary, self.fetch, wire.FetchRequest),
                "CommitOffsets": (unary, self.commit_offsets, wire.CommitOffsetsRequest),
                "ListOffsets": (unary, self.list_offsets, wire.ListOffsetsRequest),
                "FetchOffsets": (unary, self.fetch_offsets, wire.FetchOffsetsRequest),
            },
            "Groups": {
                "Session": (bidi, self.session, wire.SessionRequest),
                "DescribeGroup": (unary, self.describe_group, wire.DescribeGroupRequest),
                "ListGroups": (unary, self.list_groups, wire.ListGroupsRequest),
            },
        }

    def stop(self) -> None:
        self._stopping.set()
        with self.changed:
            self.changed.notify_all()
        if self._server is not None:
            self._server.stop(grace=None).wait()
            self._server = None

    def append(self, topic: str, partition: int, *values: bytes) -> None:
        part = codec.encode([codec.Record(None, v, 1_000_000 + i) for i, v in enumerate(values)])
        with self.changed:
            self._append(self.logs[topic, partition], part, len(values))

    def values(self, topic: str) -> list[bytes | None]:
        """Every value stored in the topic."""
        with self.changed:
            logs = [log for (name, _), log in self.logs.items() if name == topic]
            return [value for log in logs for value in log.values()]

    # ---- cluster ----

    def describe(
        self, request: wire.DescribeRequest, context: grpc.ServicerContext
    ) -> wire.DescribeReply:
        self._authorize(context)
        reply = wire.DescribeReply(cluster_id="cl_test")
        reply.nodes.add(id=NODE, address=self.address)
        for asked in request.topics or self.partitions:
            name = asked if asked in self.partitions else asked.removeprefix("default/")
            if name not in self.partitions:
                error = refusal("TOPIC_NOT_FOUND", wire.TERMINAL, f'Topic "{asked}" does not exist')
                reply.topics.add(name=asked, error=error)
                continue
            topic = reply.topics.add(
                name=name,
                number=self.numbers[name],
                created_revision=self.revisions[name],
                message_bytes_max=1 << 20,
                codec="none",
            )
            for index in range(self.partitions[name]):
                topic.partitions.add(index=index, primary=NODE)
        return reply

    def _authorize(self, context: grpc.ServicerContext) -> None:
        given = dict(context.invocation_metadata()).get("authorization")
        if self.token is not None and given != f"Bearer {self.token}":
            abort(context, 16, refusal("UNAUTHENTICATED", wire.TERMINAL, "The key is not known"))

    def _name(self, number: int) -> str:
        return next(name for name, n in self.numbers.items() if n == number)

    # ---- produce ----

    def produce_stream(
        self, requests: Iterator[wire.ProduceRequest], context: grpc.ServicerContext
    ) -> Iterator[wire.ProduceReply]:
        self._authorize(context)
        for request in requests:
            with self.changed:
                self.produce_requests += 1
                faults = self.faults
                every = faults.cut_every and self.produce_requests % faults.cut_every == 0
                if faults.cut_before_append:
                    faults.cut_before_append -= 1
                    self._cut(context, "before append")
                reply = self._produce(request)
                if faults.cut_after_append or every:
                    faults.cut_after_append = max(0, faults.cut_after_append - 1)
                    self._cut(context, "after append")
                self.changed.wait_for(
                    lambda: not self.faults.hold_replies or self._stopping.is_set(), 30
                )
            yield reply

    def _cut(self, context: grpc.ServicerContext, when: str) -> None:
        if self.faults.cut_with is not None:
            abort(context, 3, self.faults.cut_with)
        context.abort(grpc.StatusCode.UNAVAILABLE, f"cut {when}")

    def _bytes_of(self, reply: Message) -> bytes:
        if isinstance(reply, wire.ProduceReply) and self.faults.garble_replies:
            self.faults.garble_replies -= 1
            return b"\xff\xff\xff"
        return reply.SerializeToString()

    def _produce(self, request: wire.ProduceRequest) -> wire.ProduceReply:
        if self.faults.refuse:
            return wire.ProduceReply(request=request.request, error=self.faults.refuse.pop(0))
        name = self._name(request.topic)
        if request.created_revision != self.revisions[name]:
            error = refusal("TOPIC_RECREATED", wire.TERMINAL, "The topic was made again")
            return wire.ProduceReply(request=request.request, error=error)
        log = self.logs[name, request.partition]
        batch = codec.client_batch(request.batch)
        if not any(batch.producer_id):
            base = self._append(log, request.batch, batch.record_count)
            return self._reply(request, base, batch.record_count, duplicate=False)
        known = log.producers.get(batch.producer_id)
        if known is None and batch.base_sequence > 0:
            error = refusal("SESSION_EXPIRED", wire.SESSION_EXPIRED, "The producer is not known")
            return wire.ProduceReply(request=request.request, error=error)
        producer = log.producers.setdefault(batch.producer_id, Producer())
        if batch.base_sequence in producer.recent:
            base, count = producer.recent[batch.base_sequence]
            return self._reply(request, base, count, duplicate=True)
        if batch.base_sequence != producer.next_sequence:
            error = refusal("OUT_OF_SEQUENCE", wire.TERMINAL, f"Expected {producer.next_sequence}")
            error.expected = producer.next_sequence
            return wire.ProduceReply(request=request.request, error=error)
        base = self._append(log, request.batch, batch.record_count)
        producer.next_sequence += batch.record_count
        producer.recent[batch.base_sequence] = (base, batch.record_count)
        return self._reply(request, base, batch.record_count, duplicate=False)

    def _append(self, log: Log, part: bytes, count: int) -> int:
        base = log.append(part, count)
        self.changed.notify_all()
        return base

    def _reply(
        self, request: wire.ProduceRequest, base: int, count: int, *, duplicate: bool
    ) -> wire.ProduceReply:
        return wire.ProduceReply(
            request=request.request,
            base_offset=base,
            record_count=count,
            persisted=1,
            replicas=1,
            duplicate=duplicate,
            append_time_us=time.time_ns() // 1000,
        )

    # ---- fetch and offsets ----

    def fetch(self, request: wire.FetchRequest, context: grpc.ServicerContext) -> wire.FetchReply:
        self._authorize(context)
        name = self._name(request.topic)
        log = self.logs[name, request.partition]
        with self.changed:
            self._check_revision(context, name, request.created_revision)
            if request.group and request.generation != log.generation:
                abort(context, 10, refusal("FENCED", wire.TERMINAL, "Another member owns it"))
            if request.offset < log.start:
                return wire.FetchReply(status=wire.TRUNCATED, log_start=log.start)
            self.changed.wait_for(
                lambda: (
                    log.end > request.offset or self._stopping.is_set() or not context.is_active()
                ),
                request.wait_ms_max / 1000,
            )
            self._check_revision(context, name, request.created_revision)
            found: list[bytes] = []
            size = 0
            for base, count, stored in log.stored:
                if base + count <= request.offset:
                    continue
                if found and size + len(stored) > (request.bytes_max or 1 << 20):
                    break
                found.append(stored)
                size += len(stored)
            return wire.FetchReply(
                status=wire.OK if found else wire.EMPTY,
                log_start=log.start,
                high_watermark=log.end,
                log_end=log.end,
                batches=b"".join(found),
            )

    def _check_revision(self, context: grpc.ServicerContext, name: str, revision: int) -> None:
        if revision != self.revisions[name]:
            abort(context, 9, refusal("TOPIC_RECREATED", wire.TERMINAL, "The topic was made again"))

    def commit_offsets(
        self, request: wire.CommitOffsetsRequest, context: grpc.ServicerContext
    ) -> wire.CommitOffsetsReply:
        log = self.logs[self._name(request.topic), request.partition]
        with self.changed:
            if self.faults.refuse_commits:
                abort(context, 8, self.faults.refuse_commits.pop(0))
            if request.generation != log.generation:
                abort(context, 10, refusal("FENCED", wire.TERMINAL, "Another member owns it"))
            log.committed[request.group] = request.offset
            self.changed.notify_all()
        return wire.CommitOffsetsReply(offset=request.offset)

    def fetch_offsets(
        self, request: wire.FetchOffsetsRequest, context: grpc.ServicerContext
    ) -> wire.FetchOffsetsReply:
        name = self._name(request.topic)
        self._check_revision(context, name, request.created_revision)
        log = self.logs[name, request.partition]
        found = log.committed.get(request.group)
        return wire.FetchOffsetsReply(
            found=found is not None,
            offset=found or 0,
            generation=log.generation,
            log_start=log.start,
            high_watermark=log.end,
        )

    def list_offsets(
        self, request: wire.ListOffsetsRequest, context: grpc.ServicerContext
    ) -> wire.ListOffsetsReply:
        """Exact, from the headers of what is stored."""
        name = self._name(request.topic)
        self._check_revision(context, name, request.created_revision)
        log = self.logs[name, request.partition]
        times = [(struct.unpack_from("<q", stored, 24)[0], base) for base, _, stored in log.stored]
        late = [(at, base) for at, base in times if at >= request.time_us]
        at, offset = late[0] if late else (0, log.end)
        return wire.ListOffsetsReply(
            found=bool(late),
            offset=offset,
            append_time_us=at,
            log_start=log.start,
            high_watermark=log.end,
        )

    # ---- groups ----

    def describe_group(
        self, request: wire.DescribeGroupRequest, context: grpc.ServicerContext
    ) -> wire.DescribeGroupReply:
        self._authorize(context)
        group = self.groups.get(request.group)
        if group is None:
            abort(context, 5, refusal("GROUP_NOT_FOUND", wire.TERMINAL, "There is no such group"))
            raise AssertionError
        with self.changed:
            reply = wire.DescribeGroupReply(group=group.number, generation=1, state="STABLE")
            for member in group.members:
                owned = [group.assigned(key) for key in sorted(member.owns)]
                reply.members.add(member=member.name, assigned=owned)
        return reply

    def list_groups(
        self, request: wire.ListGroupsRequest, context: grpc.ServicerContext
    ) -> wire.ListGroupsReply:
        """Two a page, so that clients must turn it."""
        self._authorize(context)
        with self.changed:
            names = [name for name in sorted(self.groups) if name > request.after]
            reply = wire.ListGroupsReply(next=names[1] if len(names) > 2 else "")
            for name in names[:2]:
                group = self.groups[name]
                reply.groups.add(
                    name=name,
                    group=group.number,
                    state="STABLE" if group.members else "EMPTY",
                    members=len(group.members),
                    partitions=sum(len(member.owns) for member in group.members),
                    topics=sorted({topic for m in group.members for topic in m.topics}),
                )
        return reply

    def session(
        self, requests: Iterator[wire.SessionRequest], context: grpc.ServicerContext
    ) -> Iterator[wire.SessionEvent]:
        self._authorize(context)
        join = next(requests).join
        group = self.groups.setdefault(join.group, Group(self, 100 + len(self.groups)))
        member = group.join(join)
        context.add_callback(lambda: group.leave(member))
        threading.Thread(target=group.listen, args=(member, requests), daemon=True).start()
        yield wire.SessionEvent(
            joined=wire.Joined(group=group.number, member=join.member, heartbeat_ms=100)
        )
        while True:
            with self.changed:
                self.changed.wait_for(
                    lambda: member.events or member.gone or self._stopping.is_set(), 30
                )
                if not member.events:
                    return
                event = member.events.pop(0)
            yield event


@dataclass(eq=False)
class Member:
    """One session."""

    name: str
    topics: list[str]
    owns: set[tuple[str, int]] = field(default_factory=set)
    events: list[wire.SessionEvent] = field(default_factory=list)
    heartbeats: int = 0
    gone: bool = False


class Group:
    """Hands partitions out evenly; a partition moves only after its owner released it."""

    def __init__(self, node: ScriptedNode, number: int) -> None:
        self.node = node
        self.number = number
        self.members: list[Member] = []

    def join(self, join: wire.Join) -> Member:
        with self.node.changed:
            topics = [t.removeprefix("default/") for t in join.topics]
            for old in [m for m in self.members if m.name == join.member]:
                self.leave(old)
            member = Member(join.member, topics)
            self.members.append(member)
            self.balance()
            return member

    def leave(self, member: Member) -> None:
        with self.node.changed:
            member.gone = True
            if member in self.members:
                self.members.remove(member)
                self.balance()
            self.node.changed.notify_all()

    def listen(self, member: Member, requests: Iterator[wire.SessionRequest]) -> None:
        try:
            for request in requests:
                with self.node.changed:
                    self._heard(member, request)
                    self.node.changed.notify_all()
        except grpc.RpcError:
            self.leave(member)

    def _heard(self, member: Member, request: wire.SessionRequest) -> None:
        which = request.WhichOneof("message")
        if which == "heartbeat":
            member.heartbeats += 1
        elif which == "leave":
            self.leave(member)
        elif which == "released":
            for partition in request.released.partitions:
                member.owns.discard((partition.name, partition.partition))
            self.balance()

    def balance(self) -> None:
        if not self.members:
            return
        names = sorted({topic for m in self.members for topic in m.topics})
        everything = [(n, p) for n in names for p in range(self.node.partitions[n])]
        target = {key: self.members[i % len(self.members)] for i, key in enumerate(everything)}
        owners = {key: m for m in self.members for key in m.owns}
        for member in self.members:
            revoked = {key for key in member.owns if target[key] is not member}
            gained = {key for key in everything if target[key] is member and key not in owners}
            for key in gained:
                self.node.logs[key].generation += 1
            member.owns |= gained
            kept = [self.assigned(key) for key in sorted(member.owns - revoked)]
            member.events.append(
                wire.SessionEvent(
                    assignment=wire.Assignment(
                        generation=1,
                        assigned=kept,
                        revoked=[self.assigned(key) for key in sorted(revoked)],
                        members=len(self.members),
                    )
                )
            )
        self.node.changed.notify_all()

    def assigned(self, key: tuple[str, int]) -> wire.Assigned:
        log = self.node.logs[key]
        committed = log.committed.get(self.number)
        return wire.Assigned(
            topic=self.node.numbers[key[0]],
            created_revision=self.node.revisions[key[0]],
            partition=key[1],
            generation=log.generation,
            has_committed=committed is not None,
            committed=committed or 0,
            name=key[0],
        )
