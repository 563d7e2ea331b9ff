"""A node with a topic and keys, and an ordinary grpcio client of it, for the engine's gRPC tests.

Owns the rows that are there, the fixtures `host` (every shard count) and `channel`, and how a
request is made and a refusal read.
"""

from collections.abc import Iterator

import grpc
import pytest

from headrace import codec
from headrace.wire import stream_pb2 as wire
from tests.support.builders.seeds import place_seed
from tests.support.processes import engine_host
from tests.support.processes.engine_host import Host, grant_row, token, topic_row

WAIT_S = engine_host.WAIT_S
PRODUCE = "/headrace.stream.v1.Stream/Produce"
SECRET = "s" * 43
EDITOR, VIEWER, STRANGER, EXPIRED, SCOPED = (
    "editor0001",
    "viewer0001",
    "stranger01",
    "expired001",
    "scoped0001",
)
TOPIC, SYSTEM_TOPIC, SMALL_TOPIC = 20, 21, 22
PARTITIONS = 6
GRPC_OPTIONS = [("grpc.max_receive_message_length", 32 << 20), ("grpc.max_send_message_length", -1)]

ROWS = (
    topic_row(TOPIC, revision=7, partitions=PARTITIONS),
    topic_row(SYSTEM_TOPIC, revision=7, flags=1),
    topic_row(SMALL_TOPIC, revision=7, message_bytes_max=256),
    grant_row(EDITOR, SECRET, principal=16),
    grant_row(VIEWER, SECRET, principal=17, verbs=engine_host.CONSUME),
    grant_row(STRANGER, SECRET, principal=18, organization=2),
    grant_row(EXPIRED, SECRET, principal=19, expires_at_us=1),
    grant_row(SCOPED, SECRET, principal=20, project=9),
)


@pytest.fixture(scope="module", params=[1, 2, 3])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("node") / "node"
    settings = engine_host.config(folder, shards=request.param, direct_io=request.param != 2)
    with Host(settings) as running:
        running.submit(*ROWS)
        yield running


@pytest.fixture
def channel(host: Host) -> Iterator[grpc.Channel]:
    # Own connections, so that round-robin puts them on every shard.
    options = [*GRPC_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(host.address, options) as opened:
        yield opened


def bearer(public_id: str = EDITOR) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token(public_id, SECRET)}"),)


def batch(*values: bytes) -> bytes:
    return codec.encode([codec.Record(None, value, 1_000_000) for value in values])


def request(values: tuple[bytes, ...] = (b"v",), /, **changes: int) -> wire.ProduceRequest:
    fields = {"topic": TOPIC, "created_revision": 7, "partition": 0, **changes}
    return wire.ProduceRequest(batch=batch(*values), **fields)


def produce(
    channel: grpc.Channel,
    message: wire.ProduceRequest,
    *,
    metadata: tuple[tuple[str, str], ...] | None = None,
    compression: grpc.Compression | None = None,
) -> wire.ProduceReply:
    call = channel.unary_unary(
        PRODUCE, wire.ProduceRequest.SerializeToString, wire.ProduceReply.FromString
    )
    sent = bearer() if metadata is None else metadata
    return call(message, metadata=sent, timeout=WAIT_S, compression=compression)


def fetch(channel: grpc.Channel, **fields: int) -> wire.FetchReply:
    call = channel.unary_unary(
        "/headrace.stream.v1.Stream/Fetch",
        wire.FetchRequest.SerializeToString,
        wire.FetchReply.FromString,
    )
    message = wire.FetchRequest(**{"topic": TOPIC, "created_revision": 7, "partition": 0, **fields})
    return call(message, metadata=bearer(VIEWER), timeout=WAIT_S)


def values_of(reply: wire.FetchReply, partition: int = 0) -> list[bytes | None]:
    """What a fetch of TOPIC found."""
    found = codec.batches(reply.batches, place_seed(TOPIC, 7, partition))
    return [value for stored in found for value in codec.decode(stored).values]


def raw(channel: grpc.Channel, path: str) -> "grpc.UnaryUnaryMultiCallable[bytes, bytes]":
    return channel.unary_unary(path, lambda data: data, lambda data: data)


def refusal(failure: pytest.ExceptionInfo[grpc.RpcError]) -> tuple[grpc.StatusCode, wire.Error]:
    """The status and the Error in its details."""
    error = failure.value
    trailers = {entry.key: entry.value for entry in error.trailing_metadata()}
    details = trailers["grpc-status-details-bin"]
    status = wire.Status.FromString(details)
    assert status.code == error.code().value[0]
    assert status.message == error.details()
    (packed,) = status.details
    found = wire.Error()
    assert packed.Unpack(found)
    assert found.hint
    return error.code(), found


def high_watermark(channel: grpc.Channel, partition: int, topic: int = TOPIC) -> int:
    return fetch(channel, topic=topic, partition=partition).high_watermark


def metric(host: Host, name: str, labels: str = "") -> int:
    """The sum over all shards of a metric whose labels contain `labels`."""
    lines = (line.rpartition(" ") for line in host.engine.metrics().splitlines())
    return sum(
        int(value)
        for series, _, value in lines
        if series.partition("{")[0] == name and labels in series
    )
