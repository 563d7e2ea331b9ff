"""A real node: `python -m dataplane` in a folder of its own, on free ports, with grpcio clients.

Owns the process it started and ends it by its id. Everything is read from what the node says: its
ready line and its replies.
"""

import contextlib
import hashlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import grpc

from dataplane.wire import node_pb2, node_pb2_grpc
from headrace import codec
from headrace.wire import stream_pb2, stream_pb2_grpc
from tests.support.builders.seeds import seed_of
from tests.support.processes.platform import wait_until

ROOT = Path(__file__).parents[3]
READY_SECONDS_MAX = 120.0
CALL_SECONDS = 120.0
PROGRAM = (sys.executable, "-m", "dataplane")
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

CONFIG = """
[node]
cluster_id = "cl_test"
node_id = "nd_test"
port = {port}
http_port = 0
data_dir = "{data_dir}"
admin_key_file = "node.key"
system_organization_id = "org_system"
system_project_id = "prj_system"
direct_io = {direct_io}
shards = {shards}
journal_mib = 64
[metering]
window_seconds = {window_seconds}
"""


def token(kind: str, public_id: str, seed: str) -> tuple[str, bytes]:
    """A token and the SHA-256 of its secret."""
    secret = hashlib.sha256(seed.encode()).hexdigest()[:43]
    body = f"hr_{kind}_{public_id}_{secret}"
    value, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits = BASE62[digit] + digits
    return f"{body}_{digits}", hashlib.sha256(secret.encode()).digest()


class NodeProcess:
    """One node; start and stop it as often as you like, its folder stays."""

    def __init__(
        self,
        folder: Path,
        *,
        window_seconds: int = 60,
        shards: int = 1,
        program: Sequence[str] = PROGRAM,
        data_dir: str = "node-1",
        environment: Mapping[str, str] = MappingProxyType({}),
        exchange: tuple[str, str] = ("", ""),
    ) -> None:
        """`data_dir` is relative to the folder; `exchange`: a text of the configuration, and what
        stands there instead.
        """
        self.folder = folder
        self.data_dir = folder / data_dir
        self._program = program
        self._environment = environment
        self._exchange = exchange
        self.node_key, _ = token("node", "nodekey001", "node")
        self.grpc_port = 0
        self.http_port = 0
        self._window_seconds = window_seconds
        self._shards = shards
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: grpc.Channel | None = None
        (folder / "node.key").write_text(self.node_key)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()

    def start(self) -> Self:
        """Start, wait for the ready line."""
        self.begin_start()
        ready = json.loads(self._ready_line())
        self.grpc_port, self.http_port = ready["grpc_port"], ready["http_port"]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}")
        return self

    def begin_start(self) -> None:
        """Start, and do not wait."""
        config = self.folder / "headrace.toml"
        # The same port again after a restart, as in production: clients come back to it.
        config.write_text(
            CONFIG.format(
                port=self.grpc_port,
                window_seconds=self._window_seconds,
                direct_io="true",
                shards=self._shards,
                data_dir=self.data_dir,
            ).replace(*self._exchange)
        )
        with (self.folder / "node.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._program, "--config", str(config)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self._environment},
            )

    def refused(self) -> str:
        """Start where a node must refuse to: exit code 2, nothing on stdout. What it said."""
        told = len(self.log())
        self.begin_start()
        code, said = self.ended()
        text = self.log()[told:]
        assert (code, said) == (2, b""), (code, said, text)
        assert "Traceback" not in text, text
        return text

    def ended(self, seconds: float = READY_SECONDS_MAX) -> tuple[int, bytes]:
        """Wait until it ends by itself; the exit code, and what it printed."""
        process, self._process = self._process, None
        assert process is not None
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        if self._channel is not None:
            self._channel.close()
        return process.returncode, said

    def _ready_line(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], READY_SECONDS_MAX)
        line = self._process.stdout.readline() if readable else b""
        if not line:
            self.kill()
            raise RuntimeError(f"the node did not become ready:\n{self.log()[-4000:]}")
        return line

    def config(self) -> str:
        """The configuration of its latest start."""
        return (self.folder / "headrace.toml").read_text()

    def log(self) -> str:
        """What the node has logged, all starts together."""
        path = self.folder / "node.log"
        return path.read_text() if path.exists() else ""

    def wait_until(self, condition: Callable[[], bool], seconds: float = 120.0) -> None:
        """Return as soon as ``condition`` holds; the node's log if it never does."""
        try:
            wait_until(condition, "what the node shall come to", seconds)
        except TimeoutError as late:
            raise AssertionError(f"{late}:\n{self.log()[-2000:]}") from late

    def begin_termination(self) -> None:
        """SIGTERM, and do not wait."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGTERM)

    def terminate(self) -> int:
        """SIGTERM; returns the exit code."""
        return self._end(signal.SIGTERM)

    def terminate_again_and_again(self) -> int:
        """SIGTERM every half millisecond until it has ended; returns the exit code."""
        assert self._process is not None
        while self._process.poll() is None:
            self.begin_termination()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.0005)
        return self.terminate()

    def kill(self) -> int:
        """kill -9; returns the exit code."""
        return self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None
        process.send_signal(number)
        try:
            code = process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        assert process.stdout is not None
        process.stdout.close()
        if self._channel is not None:
            self._channel.close()
        return code

    def http(self, path: str) -> tuple[int, str]:
        """Status and text of one GET."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.http_port}{path}", timeout=CALL_SECONDS
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    @property
    def pid(self) -> int:
        """The running process."""
        assert self._process is not None
        return self._process.pid

    @property
    def channel(self) -> grpc.Channel:
        """A channel to the node."""
        assert self._channel is not None
        return self._channel

    def client(self, bearer: str) -> "Client":
        """A client that sends this key."""
        return Client(self.channel, bearer)

    def admin(self) -> "Client":
        """The control plane's client."""
        return self.client(self.node_key)


class Session:
    """A group member's session over grpcio."""

    def __init__(
        self, stub: stream_pb2_grpc.GroupsStub, bearer: str, join: stream_pb2.Join
    ) -> None:
        self._requests: queue.SimpleQueue[stream_pb2.SessionRequest | None] = queue.SimpleQueue()
        self.send(join=join)
        self._events = stub.Session(
            iter(self._requests.get, None),
            metadata=(("authorization", f"Bearer {bearer}"),),
            timeout=120,
        )
        self.joined = self.next_event().joined

    def send(
        self,
        *,
        join: stream_pb2.Join | None = None,
        heartbeat: stream_pb2.Heartbeat | None = None,
        released: stream_pb2.Released | None = None,
        leave: stream_pb2.Leave | None = None,
    ) -> None:
        """Send one message."""
        self._requests.put(
            stream_pb2.SessionRequest(
                join=join, heartbeat=heartbeat, released=released, leave=leave
            )
        )

    def next_event(self) -> stream_pb2.SessionEvent:
        """The next event; raises grpc.RpcError or StopIteration at the end."""
        event: stream_pb2.SessionEvent = next(self._events)
        return event

    def assignment(self, wanted: Callable[[stream_pb2.Assignment], bool]) -> stream_pb2.Assignment:
        """Waits for an assignment that satisfies the condition; releases revoked partitions
        meanwhile.
        """
        while True:
            event = self.next_event()
            assert event.WhichOneof("message") == "assignment", event
            if event.assignment.revoked:
                self.send(released=stream_pb2.Released(partitions=event.assignment.revoked))
            if wanted(event.assignment):
                return event.assignment

    def assigned(self, count: int) -> stream_pb2.Assignment:
        """The first picture with so many partitions and none in motion."""
        return self.assignment(lambda seen: len(seen.assigned) == count and not seen.revoked)

    def cancel(self) -> None:
        """Go away without a word."""
        self._events.cancel()
        self._requests.put(None)

    def close(self) -> None:
        """Leave."""
        self.send(leave=stream_pb2.Leave())
        self._requests.put(None)
        for _ in self._events:
            pass


class Client:
    """One key's view of a node."""

    def __init__(self, channel: grpc.Channel, bearer: str) -> None:
        self._bearer = bearer
        self._metadata = (("authorization", f"Bearer {bearer}"),)
        self._stream = stream_pb2_grpc.StreamStub(channel)
        self._cluster = stream_pb2_grpc.ClusterStub(channel)
        self._groups = stream_pb2_grpc.GroupsStub(channel)
        self._admin = node_pb2_grpc.AdminStub(channel)

    def apply(self, request: node_pb2.ApplyRequest) -> node_pb2.ApplyReply:
        """Admin.Apply."""
        reply: node_pb2.ApplyReply = self._admin.Apply(
            request, metadata=self._metadata, timeout=CALL_SECONDS
        )
        return reply

    def describe_node(self) -> node_pb2.DescribeReply:
        """Admin.Describe of everything."""
        reply: node_pb2.DescribeReply = self._admin.Describe(
            node_pb2.DescribeRequest(all=True), metadata=self._metadata, timeout=CALL_SECONDS
        )
        return reply

    def purge(self, topic_id: str, **before: int) -> list[node_pb2.PurgedPartition]:
        """Admin.Purge: `p0=15` moves the beginning of partition 0 up to 15."""
        partitions = [
            node_pb2.PurgePartition(index=int(name[1:]), before_offset=offset)
            for name, offset in before.items()
        ]
        request = node_pb2.PurgeRequest(topic_id=topic_id, partitions=partitions, version=9)
        reply: node_pb2.PurgeReply = self._admin.Purge(
            request, metadata=self._metadata, timeout=CALL_SECONDS
        )
        return list(reply.partitions)

    def flush_usage(
        self, *, inventory: bool = False, seconds: float = CALL_SECONDS
    ) -> node_pb2.FlushUsageReply:
        """Admin.FlushUsage; the node answers what is outstanding just before `seconds` are over."""
        request = node_pb2.FlushUsageRequest(inventory=inventory)
        reply: node_pb2.FlushUsageReply = self._admin.FlushUsage(
            request, metadata=self._metadata, timeout=seconds
        )
        return reply

    def describe(self, *topics: str, project: str = "") -> stream_pb2.DescribeReply:
        """Cluster.Describe."""
        reply: stream_pb2.DescribeReply = self._cluster.Describe(
            stream_pb2.DescribeRequest(project=project, topics=topics),
            metadata=self._metadata,
            timeout=CALL_SECONDS,
        )
        return reply

    def topic(self, name: str, project: str = "") -> stream_pb2.Topic:
        """One topic's handle."""
        return self.describe(name, project=project).topics[0]

    def produce(
        self, topic: stream_pb2.Topic, partition: int, values: Sequence[bytes], sequence: int = 0
    ) -> stream_pb2.ProduceReply:
        """One batch under the producer id of this partition."""
        batch = codec.encode(
            [codec.Record(key=None, value=value, timestamp_us=1_000_000) for value in values],
            producer_id=b"test-producer-%02d" % partition,
            base_sequence=sequence,
        )
        reply: stream_pb2.ProduceReply = self._stream.Produce(
            stream_pb2.ProduceRequest(
                topic=topic.number,
                created_revision=topic.created_revision,
                partition=partition,
                batch=batch,
            ),
            metadata=self._metadata,
            timeout=CALL_SECONDS,
        )
        return reply

    def fetch(
        self,
        topic: stream_pb2.Topic,
        partition: int,
        offset: int = 0,
        *,
        group: int = 0,
        generation: int = 0,
        wait_ms: int = 0,
    ) -> stream_pb2.FetchReply:
        """One fetch."""
        reply: stream_pb2.FetchReply = self._stream.Fetch(
            stream_pb2.FetchRequest(
                topic=topic.number,
                created_revision=topic.created_revision,
                partition=partition,
                offset=offset,
                wait_ms_max=wait_ms,
                group=group,
                generation=generation,
            ),
            metadata=self._metadata,
            timeout=CALL_SECONDS,
        )
        return reply

    def values(self, topic: stream_pb2.Topic, partition: int) -> list[bytes | None]:
        """Every value of a partition."""
        return list(self._values(topic, partition))

    def _values(self, topic: stream_pb2.Topic, partition: int) -> Iterator[bytes | None]:
        offset = 0
        while (reply := self.fetch(topic, partition, offset)).status == stream_pb2.OK:
            for batch in codec.batches(reply.batches, seed_of(topic, partition)):
                yield from codec.decode(batch).values
                offset = batch.base_offset + batch.record_count

    def commit(
        self, assigned: stream_pb2.Assigned, group: int, offset: int
    ) -> stream_pb2.CommitOffsetsReply:
        """Commit under an assignment's fence."""
        reply: stream_pb2.CommitOffsetsReply = self._stream.CommitOffsets(
            stream_pb2.CommitOffsetsRequest(
                topic=assigned.topic,
                created_revision=assigned.created_revision,
                partition=assigned.partition,
                group=group,
                generation=assigned.generation,
                offset=offset,
            ),
            metadata=self._metadata,
            timeout=CALL_SECONDS,
        )
        return reply

    def join(
        self, member: str, *topics: str, group: str = "readers", timeout_ms: int = 10_000
    ) -> Session:
        """Begin a session."""
        return Session(
            self._groups,
            self._bearer,
            stream_pb2.Join(group=group, topics=topics, member=member, timeout_ms=timeout_ms),
        )

    def describe_group(self, group: str) -> stream_pb2.DescribeGroupReply:
        """Groups.DescribeGroup."""
        reply: stream_pb2.DescribeGroupReply = self._groups.DescribeGroup(
            stream_pb2.DescribeGroupRequest(group=group),
            metadata=self._metadata,
            timeout=CALL_SECONDS,
        )
        return reply

    def list_groups(
        self, project: str = "", after: str = "", groups_max: int = 0
    ) -> stream_pb2.ListGroupsReply:
        """Groups.ListGroups."""
        reply: stream_pb2.ListGroupsReply = self._groups.ListGroups(
            stream_pb2.ListGroupsRequest(project=project, after=after, groups_max=groups_max),
            metadata=self._metadata,
            timeout=CALL_SECONDS,
        )
        return reply


def refusal(error: grpc.RpcError) -> tuple[grpc.StatusCode, stream_pb2.Error]:
    """The code and the typed Error of a failed call."""
    trailers = {each.key: each.value for each in error.trailing_metadata()}
    details = trailers["grpc-status-details-bin"]
    assert isinstance(details, bytes)
    status = stream_pb2.Status.FromString(details)
    found = stream_pb2.Error()
    assert status.details[0].Unpack(found)
    return error.code(), found
