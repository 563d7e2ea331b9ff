"""What stored batches of one partition are bound to, for tests that read them from a node."""

from __future__ import annotations

from headrace import codec
from headrace.wire import stream_pb2

CLUSTER_ID = "cl_test"
"""Of every cluster of one test node."""


def place_seed(topic: int, created_revision: int, partition: int) -> int:
    """Of a handle of a test node."""
    return codec.partition_seed(CLUSTER_ID, topic, created_revision, partition)


def seed_of(topic: stream_pb2.Topic, partition: int) -> int:
    """Of a topic as Cluster.Describe shows it."""
    return place_seed(topic.number, topic.created_revision, partition)
