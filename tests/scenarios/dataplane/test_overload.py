"""Bad days by load on a real node: too large, too many, too slow.

Rows L1 to L4 of the fault matrix for one node. Whoever is in the way is refused by name or waits
alone; the others are served, and memory stays bounded. Descriptors (L5) are in
test_process_faults.py.
"""

import contextlib
import re
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest

from dataplane.wire import node_pb2, node_pb2_grpc
from headrace import codec
from headrace.wire import stream_pb2, stream_pb2_grpc
from tests.support.builders.node_objects import EDITOR, VIEWER, furnish, topic_spec
from tests.support.builders.seeds import seed_of
from tests.support.clients.http2_peer import (
    DATA,
    END_HEADERS,
    HEADERS,
    PREFACE,
    SETTINGS,
    field,
    frame,
)
from tests.support.processes.node_process import NodeProcess, refusal

pytestmark = [pytest.mark.check, pytest.mark.alone]

MIB = 1 << 20
LIMIT = MIB  # message_bytes_max of the topics made here
IDLE = 5000
STORM = 3000
TINY = 1_000_000
SLOWEST_S_MAX = 5.0
METADATA = (("authorization", f"Bearer {EDITOR}"),)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with NodeProcess(tmp_path_factory.mktemp("node")) as running:
        furnish(running, "sizes", "busy", "slow")
        yield running
        assert running.terminate() == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def memory_mib(node: NodeProcess) -> int:
    """What the node holds for itself."""
    status = Path(f"/proc/{node.pid}/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert found
    return int(found[1]) // 1024


def plain(*values: bytes | None) -> bytes:
    """A client part without a producer."""
    return codec.encode([codec.Record(key=None, value=value, timestamp_us=1) for value in values])


def request(topic: stream_pb2.Topic, batch: bytes, partition: int = 0) -> stream_pb2.ProduceRequest:
    return stream_pb2.ProduceRequest(
        topic=topic.number,
        created_revision=topic.created_revision,
        partition=partition,
        batch=batch,
    )


# ---- L1: sizes ----


def test_a_batch_at_the_limit_is_taken_and_one_byte_more_is_refused_by_name(
    node: NodeProcess,
) -> None:
    topic = node.client(EDITOR).topic("sizes")
    stub = stream_pb2_grpc.StreamStub(node.channel)
    room = LIMIT - (len(plain(bytes(LIMIT // 2))) - LIMIT // 2)
    largest = plain(bytes(room))
    assert len(largest) == LIMIT
    assert stub.Produce(request(topic, largest), metadata=METADATA, timeout=120).record_count == 1
    with pytest.raises(grpc.RpcError) as refused:
        stub.Produce(request(topic, plain(bytes(room + 1))), metadata=METADATA, timeout=120)
    assert refusal(refused.value)[1].code == "MESSAGE_TOO_LARGE"
    assert stub.Produce(request(topic, plain(b"", None)), metadata=METADATA).record_count == 2
    with pytest.raises(grpc.RpcError) as refused:
        stub.Produce(request(topic, b""), metadata=METADATA, timeout=120)
    assert refusal(refused.value)[1].code == "INVALID_BATCH"


def test_a_message_of_100_mib_is_refused_before_it_is_held_in_memory(node: NodeProcess) -> None:
    topic = node.client(EDITOR).topic("sizes")
    before = memory_mib(node)
    with grpc.insecure_channel(f"127.0.0.1:{node.grpc_port}") as channel:
        stub = stream_pb2_grpc.StreamStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            stub.Produce(request(topic, bytes(100 * MIB)), metadata=METADATA, timeout=120)
        assert refusal(refused.value)[1].code == "REQUEST_TOO_LARGE"
        # The same connection goes on.
        assert stub.Produce(request(topic, plain(b"x")), metadata=METADATA).record_count == 1
    assert memory_mib(node) - before < 16


def test_a_million_tiny_records_go_in_and_come_out(node: NodeProcess) -> None:
    client = node.client(EDITOR)
    topic = client.topic("sizes")
    stub = stream_pb2_grpc.StreamStub(node.channel)
    record = codec.Record(key=None, value=b"", timestamp_us=1)
    batch = codec.encode([record] * TINY, codec="zstd")
    assert len(batch) < LIMIT
    assert stub.Produce(request(topic, batch, 1), metadata=METADATA).record_count == TINY
    found = next(codec.batches(client.fetch(topic, 1).batches, seed_of(topic, 1)))
    assert (found.base_offset, found.record_count) == (0, TINY)
    with pytest.raises(grpc.RpcError) as refused:
        stub.Produce(request(topic, lying(batch)), metadata=METADATA, timeout=120)
    assert refusal(refused.value)[1].code == "INVALID_BATCH"


def lying(batch: bytes) -> bytes:
    """A client part that counts one record more than it has, or than any may have."""
    count = batch.index(struct.pack("<I", TINY))
    changed = bytearray(batch)
    changed[count : count + 4] = struct.pack("<I", TINY + 1)
    changed[4:8] = struct.pack("<I", codec.crc32c(bytes(changed[8:])))
    return bytes(changed)


# ---- L2: connections ----


class Busy(threading.Thread):
    """One client that produces all the time; its slowest call."""

    def __init__(self, node: NodeProcess) -> None:
        super().__init__(daemon=True)
        self._channel = grpc.insecure_channel(f"127.0.0.1:{node.grpc_port}")
        self._stub = stream_pb2_grpc.StreamStub(self._channel)
        self._request = request(node.client(EDITOR).topic("busy"), plain(b"x" * 100))
        self._ended = threading.Event()
        self.calls = 0
        self.slowest_s = 0.0
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._ended.is_set():
                began = time.monotonic()
                self._stub.Produce(self._request, metadata=METADATA, timeout=120)
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self.calls += 1
        except BaseException as error:  # looked at by the test
            self.failed = error

    def __enter__(self) -> "Busy":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join(120)
        self._channel.close()
        assert self.failed is None, self.failed

    def further(self, node: NodeProcess, calls: int) -> None:
        """Wait until it has been answered so many times more."""
        wanted = self.calls + calls
        node.wait_until(lambda: self.calls >= wanted or self.failed is not None)


def test_thousands_of_idle_connections_neither_hold_up_the_busy_ones_nor_fill_memory(
    node: NodeProcess,
) -> None:
    before = memory_mib(node)
    with Busy(node) as busy, contextlib.ExitStack() as held:
        busy.further(node, 10)
        for _ in range(IDLE):
            held.enter_context(socket.create_connection(("127.0.0.1", node.grpc_port)))
        busy.further(node, 50)
        # Room for somebody who comes now is made by those who have shown no key.
        with grpc.insecure_channel(f"127.0.0.1:{node.grpc_port}") as channel:
            stub = stream_pb2_grpc.StreamStub(channel)
            topic = node.client(EDITOR).topic("busy")
            assert stub.Produce(
                request(topic, plain(b"late"), 1), metadata=METADATA, timeout=120
            ).record_count
        assert memory_mib(node) - before < 64
    assert busy.slowest_s < SLOWEST_S_MAX


def test_a_storm_of_connections_that_come_and_go_leaves_nothing_behind(node: NodeProcess) -> None:
    reset = struct.pack("ii", 1, 0)
    with Busy(node) as busy:
        busy.further(node, 10)
        open_before = len(list(Path(f"/proc/{node.pid}/fd").iterdir()))
        before = memory_mib(node)
        for index in range(STORM):
            with socket.create_connection(("127.0.0.1", node.grpc_port)) as one:
                if index % 2:
                    one.sendall(PREFACE + frame(SETTINGS, 0, 0))
                if index % 3:  # a reset, not a goodbye
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        busy.further(node, 10)
        node.wait_until(
            lambda: len(list(Path(f"/proc/{node.pid}/fd").iterdir())) <= open_before + 4
        )
        assert memory_mib(node) - before < 16
    assert busy.slowest_s < SLOWEST_S_MAX


# ---- L3: a slow reader ----


def call_headers(stream: int, path: str) -> bytes:
    """A call's request headers, with a key that is not the one of those who must not notice: who
    stands still holds up readers of the own key only."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "node",
        "content-type": "application/grpc",
        "te": "trailers",
        "authorization": f"Bearer {VIEWER}",
    }
    return frame(
        HEADERS, END_HEADERS, stream, b"".join(field(name, value) for name, value in fields.items())
    )


def begins(topic: stream_pb2.Topic, stream: int) -> bytes:
    """A call of Consume that wants everything at once."""
    begin = stream_pb2.ConsumeBegin(
        topic=topic.number,
        created_revision=topic.created_revision,
        credit=1 << 40,
        bytes_max=8 * MIB,
    )
    message = stream_pb2.ConsumeRequest(begin=begin).SerializeToString()
    path = "/headrace.stream.v1.Stream/Consume"
    window = frame(8, 0, stream, struct.pack(">I", 1 << 30))
    prefix = struct.pack(">BI", 0, len(message))
    return call_headers(stream, path) + frame(DATA, 0, stream, prefix + message) + window


def test_readers_that_take_a_byte_at_a_time_bound_memory_and_slow_down_nobody(
    node: NodeProcess,
) -> None:
    client = node.client(EDITOR)
    topic = client.topic("slow")
    values = [bytes([index]) * 1_000_000 for index in range(24)]
    for index, value in enumerate(values):
        client.produce(topic, 0, [value], sequence=index)
    before = memory_mib(node)
    with Busy(node) as busy, contextlib.ExitStack() as held:
        slow = [held.enter_context(socket.socket()) for _ in range(16)]
        for one in slow:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", node.grpc_port))
            one.sendall(PREFACE + frame(SETTINGS, 0, 0))
            one.sendall(frame(8, 0, 0, struct.pack(">I", 1 << 30)))
            one.sendall(b"".join(begins(topic, stream) for stream in range(1, 9, 2)))
        for _ in range(10):
            for one in slow:
                assert len(one.recv(1)) == 1
            busy.further(node, 5)
        # 64 streams of 24 MB each would be 1.5 GB.
        assert memory_mib(node) - before < 192
        assert client.values(topic, 0) == values
    assert busy.slowest_s < SLOWEST_S_MAX


# ---- L4: topics and partitions ----


def apply_all(node: NodeProcess, wishes: Sequence[node_pb2.ApplyRequest]) -> None:
    """Many wishes side by side."""
    stub = node_pb2_grpc.AdminStub(node.channel)
    metadata = (("authorization", f"Bearer {node.node_key}"),)
    calls = [stub.Apply.future(desired, metadata=metadata, timeout=120) for desired in wishes]
    assert all(call.result().changed for call in calls)


def test_ten_thousand_partitions_are_refused_beyond_the_nodes_room_and_boot_in_seconds(
    tmp_path: Path,
) -> None:
    with NodeProcess(tmp_path) as node:
        furnish(node)
        apply_all(node, [topic_spec(f"wide-{index}", 1024) for index in range(9)])
        for first in range(0, 1000, 100):  # no more at a time than a connection's streams
            apply_all(node, [topic_spec(f"t-{first + index}", 1) for index in range(100)])
        client = node.client(EDITOR)
        stub = stream_pb2_grpc.StreamStub(node.channel)
        topics = [client.topic(f"wide-{index}") for index in range(2)]
        calls = [
            stub.Produce.future(
                request(topic, plain(b"x"), partition), metadata=METADATA, timeout=120
            )
            for topic in topics
            for partition in range(1024)
        ]
        taken = [call for call in calls if call.exception() is None]
        refused = {refusal(call)[1].code for call in calls if call.exception() is not None}
        # By default a shard has room for 1024 partitions with records.
        assert len(taken) == 1024
        assert refused == {"PARTITIONS_FULL"}
        assert memory_mib(node) < 256
        node.kill()
        began = time.monotonic()
        node.start()
        assert time.monotonic() - began < 10
        assert memory_mib(node) < 256
        assert node.client(EDITOR).values(topics[0], 0) == [b"x"]
