"""A small real gRPC server that serves stored batches: what the data source is read against here.

It keeps the rules of `stream.proto` that a reader meets (keys, incarnations, whole batches,
watermarks, statuses inside replies) and can be told to fail first.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

import grpc

from headrace.codec import Record, encode, partition_seed
from headrace.wire import stream_pb2, stream_pb2_grpc

KEY = "hr_node_abcdefghij_secretsecretsecret_check0"
FETCH_DEFAULT = 1 << 20
CLUSTER_ID = "cl_local"
REVISION = 3


def crc32c(data: bytes, crc: int = 0) -> int:
    """Castagnoli, bit by bit: slow and plainly right."""
    value = crc ^ 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def bound(stored: bytes, seed: int) -> bytes:
    """A batch of a log as the partition with that seed stores it."""
    return stored[:8] + struct.pack("<I", crc32c(stored[:8] + stored[12:96], seed)) + stored[12:]


@dataclass
class Log:
    """One partition: stored batches end to end, bound to no place before they are read."""

    stored: list[bytes] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    end: int = 0
    cumulative: int = 0
    log_start: int = 0
    committed: int | None = None
    op: int = 0
    """The last operation; a close of a metering window takes one too."""

    def append(
        self,
        records: Sequence[Record],
        *,
        codec: str = "none",
        principal: int = 16,
        time_us: int = 0,
    ) -> int:
        """Store one batch; returns its stored size."""
        client = encode(records, codec=codec)
        size = 96 + len(client)
        self.cumulative += size
        self.op += 1
        fields = struct.pack(
            "<HHQqQQIIQ12s16s4s",
            1,
            0,
            self.end,
            time_us,
            self.op,
            0,
            principal,
            0,
            self.cumulative,
            bytes(12),
            bytes(16),
            client[4:8],
        )
        self.stored.append(struct.pack("<4sII", b"HRB1", size, 0) + fields + client)
        self.bases.append(self.end)
        self.end += len(records)
        return size

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed."""
        return self.end if self.committed is None else self.committed

    def read(self, offset: int, bytes_max: int, seed: int) -> stream_pb2.FetchReply:
        """What Fetch answers."""
        reply = stream_pb2.FetchReply(
            status=stream_pb2.OK,
            log_start=self.log_start,
            high_watermark=self.high_watermark,
            log_end=self.end,
        )
        if offset < self.log_start:
            reply.status = stream_pb2.TRUNCATED
            return reply
        found: list[bytes] = []
        ends = [*self.bases, self.end][1:]
        for base, end, stored in zip(self.bases, ends, self.stored, strict=True):
            full = bool(found) and sum(map(len, found)) + len(stored) > bytes_max
            if end <= offset or full or base >= self.high_watermark:
                continue
            found.append(bound(stored, seed))
        reply.batches = b"".join(found)
        reply.status = stream_pb2.OK if found else stream_pb2.EMPTY
        return reply


Script = Callable[[stream_pb2.FetchRequest, grpc.ServicerContext], stream_pb2.FetchReply | None]


@dataclass
class Node(stream_pb2_grpc.StreamServicer, stream_pb2_grpc.ClusterServicer):
    """Topics by name, each a list of logs."""

    topics: dict[str, list[Log]] = field(default_factory=dict)
    address: str = ""
    script: list[Script] = field(default_factory=list)
    """Taken one per Fetch before it is served; None means: serve it."""
    fetches: list[stream_pb2.FetchRequest] = field(default_factory=list)

    def numbers(self) -> dict[int, str]:
        """Topic numbers begin at 16."""
        return {16 + index: name for index, name in enumerate(self.topics)}

    def Describe(  # noqa: N802 - gRPC's name
        self, request: stream_pb2.DescribeRequest, context: grpc.ServicerContext
    ) -> stream_pb2.DescribeReply:
        """Every topic, or those asked for."""
        self._authorize(context)
        reply = stream_pb2.DescribeReply(cluster_id=CLUSTER_ID, metadata_op=9)
        reply.nodes.add(id="nd_1", address=self.address)
        for number, name in self.numbers().items():
            if not request.topics or name in request.topics:
                topic = reply.topics.add(
                    name=name,
                    number=number,
                    created_revision=REVISION,
                    id=f"tp_{name.split('/')[1]}",
                )
                for index in range(len(self.topics[name])):
                    topic.partitions.add(index=index, primary="nd_1")
        for name in request.topics:
            if name not in self.topics:
                missing = stream_pb2.Error(
                    code="TOPIC_NOT_FOUND",
                    kind=stream_pb2.TERMINAL,
                    message=f"There is no topic {name}.",
                    hint="Create it first.",
                )
                reply.topics.add(name=name, error=missing)
        return reply

    def Fetch(  # noqa: N802 - gRPC's name
        self, request: stream_pb2.FetchRequest, context: grpc.ServicerContext
    ) -> stream_pb2.FetchReply:
        """Whole batches from an offset."""
        self._authorize(context)
        self.fetches.append(request)
        if self.script:
            scripted = self.script.pop(0)(request, context)
            if scripted is not None:
                return scripted
        if request.topic not in self.numbers():
            refuse(context, grpc.StatusCode.NOT_FOUND, "TOPIC_NOT_FOUND", stream_pb2.TERMINAL)
        log = self.topics[self.numbers()[request.topic]][request.partition]
        seed = partition_seed(CLUSTER_ID, request.topic, REVISION, request.partition)
        return log.read(request.offset, request.bytes_max or FETCH_DEFAULT, seed)

    def _authorize(self, context: grpc.ServicerContext) -> None:
        metadata = dict(context.invocation_metadata())
        if metadata.get("authorization") != f"Bearer {KEY}":
            refuse(context, grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED", stream_pb2.TERMINAL)


def refuse(
    context: grpc.ServicerContext,
    status: grpc.StatusCode,
    code: str,
    kind: stream_pb2.ErrorKind,
) -> NoReturn:
    """End the call as the node does: a status, and a typed error in its details."""
    error = stream_pb2.Error(code=code, message=f"Refused: {code}.", hint="Try again.")
    error.kind = kind
    details = stream_pb2.Status(code=status.value[0], message=code)
    details.details.add().Pack(error)
    context.set_trailing_metadata((("grpc-status-details-bin", details.SerializeToString()),))
    context.abort(status, code)


@contextmanager
def serving(node: Node) -> Iterator[Node]:
    """`node` on a free port."""
    server = grpc.server(
        ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", 64 << 20)]
    )
    stream_pb2_grpc.add_StreamServicer_to_server(node, server)
    stream_pb2_grpc.add_ClusterServicer_to_server(node, server)
    node.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield node
    finally:
        server.stop(0).wait()
