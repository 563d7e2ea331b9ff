"""load.c against a server: what gets through, and what it costs that server."""

import json

import grpc

from headrace import codec
from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as rpc
from tests.performance.machine import FOLDER, Figures, built, cpu_seconds, said
from tests.support.processes.platform import Profile

SECONDS = 2.0
IN_FLIGHT = 64
STREAM_IN_FLIGHT = 1000
PREFIX = "/headrace.stream.v1.Stream/"


def topic_of(profile: Profile, name: str) -> wire.Topic:
    """A topic's handle, as any client reads it."""
    with grpc.insecure_channel(profile.bootstrap) as channel:
        described = rpc.ClusterStub(channel).Describe(
            wire.DescribeRequest(topics=[name]),
            metadata=(("authorization", f"Bearer {profile.key}"),),
            timeout=10,
        )
    found: wire.Topic = described.topics[0]
    return found


def produce_message(profile: Profile, topic: str, size: int) -> bytes:
    """A ProduceRequest of one record, without a producer id: it may be sent again and again."""
    record = codec.Record(key=None, value=b"x" * size, timestamp_us=0)
    found = topic_of(profile, topic)
    return wire.ProduceRequest(
        topic=found.number, created_revision=found.created_revision, batch=codec.encode([record])
    ).SerializeToString()


def load(
    pid: int,
    port: str,
    key: str,
    method: str,
    message: bytes,
    *,
    how: str,
    amount: int = IN_FLIGHT,
    seconds: float = SECONDS,
) -> Figures:
    """Runs load.c (its arguments: there) on Stream's `method`; adds `cpu_us`: the CPU of `pid` in
    all that time, microseconds."""
    path = FOLDER / "message.bin"
    path.write_bytes(message)
    program = built("load", "nghttp2")
    cpu = cpu_seconds(pid)
    figures = said(program, port, PREFIX + method, key, path, str(amount), str(seconds), how)
    figures["cpu_us"] = (cpu_seconds(pid) - cpu) * 1e6
    assert not figures["errors"], json.dumps(figures)
    return figures
