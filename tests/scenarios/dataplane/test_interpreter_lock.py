"""The node's Python may hang on its interpreter lock; the shards must not notice.

A thread of the node holds the lock for 500 ms, several times, while a client produces. Had any
hot call to wait for Python, its p99 would rise to that order.
"""

import os
import statistics
import sys
import time
from pathlib import Path

import pytest

from headrace import codec
from headrace.wire import stream_pb2, stream_pb2_grpc
from tests.support.builders.node_objects import EDITOR, furnish
from tests.support.processes.node_process import NodeProcess

pytestmark = [pytest.mark.check, pytest.mark.alone]

HOLDS = 4
HOLD_SECONDS = 0.5
P99_RATIO_MAX = 3.0
P99_FLOOR_SECONDS = 0.02


def p99(latencies: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(latencies, n=100)[98]


class Producing:
    """Unary produces, one after another, timed."""

    def __init__(self, node: NodeProcess, topic: stream_pb2.Topic) -> None:
        self._stub = stream_pb2_grpc.StreamStub(node.channel)
        self._metadata = (("authorization", f"Bearer {EDITOR}"),)
        self._request = stream_pb2.ProduceRequest(
            topic=topic.number,
            created_revision=topic.created_revision,
            partition=0,
            batch=codec.encode([codec.Record(key=None, value=b"x" * 100, timestamp_us=1)]),
        )
        self.next_offset = 0

    def call(self) -> float:
        """One call; its seconds. Every call must be answered, with the next offset."""
        began = time.perf_counter()
        reply = self._stub.Produce(self._request, metadata=self._metadata, timeout=120)
        seconds = time.perf_counter() - began
        assert reply.base_offset == self.next_offset
        self.next_offset += 1
        return seconds

    def during(self, seconds: float) -> list[float]:
        """As many as fit into a time."""
        until = time.perf_counter() + seconds
        latencies = []
        while time.perf_counter() < until:
            latencies.append(self.call())
        return latencies


@pytest.mark.parametrize("shards", [1, 3])
def test_holding_the_interpreter_lock_shifts_no_produce_and_loses_no_call(
    tmp_path: Path, shards: int
) -> None:
    fifo = tmp_path / "hold"
    os.mkfifo(fifo)
    program = (sys.executable, str(Path(__file__).with_name("gil_node.py")), str(fifo))
    node = NodeProcess(tmp_path, shards=shards, program=program)
    # Open for reading too: the open does not wait for the node, and the pipe outlives a restart.
    control = os.open(fifo, os.O_RDWR)
    try:
        with node:
            furnish(node, "held")
            topic = node.client(EDITOR).topic("held")
            producing = Producing(node, topic)
            # In turns, so that both see the same neighbours of this machine.
            quiet: list[float] = []
            held: list[float] = []
            for _ in range(HOLDS):
                quiet += producing.during(HOLD_SECONDS)
                os.write(control, b"!")
                held += producing.during(HOLD_SECONDS)
            assert node.client(EDITOR).topic("held").number == topic.number
    finally:
        os.close(control)
    assert p99(held) <= max(P99_RATIO_MAX * p99(quiet), P99_FLOOR_SECONDS), (p99(quiet), p99(held))
