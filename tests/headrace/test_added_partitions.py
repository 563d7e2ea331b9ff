"""Partitions added to a topic while clients use it: producers find them, groups skip nothing."""

import time
from types import SimpleNamespace

import pytest

from headrace.client import Client
from headrace.errors import Invalid
from headrace.messages import TopicPartition
from headrace.settings import Settings
from tests.headrace.scripted_log import Log
from tests.headrace.scripted_node import ScriptedNode
from tests.support.processes.platform import wait_until

KEYS = [f"customer-{i}" for i in range(8)]


def add_partitions(node: ScriptedNode, topic: str, count: int) -> None:
    """The topic has `count` partitions from now on."""
    with node.changed:
        for partition in range(node.partitions[topic], count):
            node.logs[topic, partition] = Log(node.seed(topic, partition))
        node.partitions[topic] = count


@pytest.mark.xfail(
    strict=True,
    raises=Invalid,
    reason="a producer checks a partition against the count that it read at its first record",
)
def test_a_running_producer_sends_to_an_added_partition_that_is_asked_for(
    client: Client, node: ScriptedNode
) -> None:
    topic = client.topic("single")
    topic.send(b"before")
    add_partitions(node, "single", 4)
    assert topic.send(b"after", partition=3).partition == 3


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a producer never asks again how many partitions a topic has, so a key has two",
)
def test_an_hour_after_partitions_were_added_a_key_has_one_partition_with_every_producer(
    client: Client, settings: Settings, node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = client.topic("single")
    running.send(b"before")
    add_partitions(node, "single", 4)
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600)
    monkeypatch.setattr("headrace.transport.connection.time", later, raising=False)
    running.send(b"asks again at the latest here, without waiting for the answer")
    with Client(settings) as other:
        fresh = other.topic("single")
        partitions = {key: fresh.send(b"x", key=key).partition for key in KEYS}
    assert {key: running.send(b"x", key=key).partition for key in KEYS} == partitions


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a group that starts at latest skips what was stored in partitions added meanwhile",
)
def test_a_known_group_that_starts_at_latest_reads_added_partitions_from_their_beginning(
    client: Client, node: ScriptedNode
) -> None:
    topic = client.topic("single")
    with topic.consume(group="g", start="latest") as consumer:
        wait_until(lambda: TopicPartition("single", 0) in consumer.positions, "it reads", 120)
        node.append("single", 0, b"first")
        next(consumer)
    add_partitions(node, "single", 2)
    node.append("single", 1, b"while it was away")
    with topic.consume(group="g", start="latest") as consumer:
        wait_until(lambda: TopicPartition("single", 1) in consumer.positions, "it reads", 120)
        node.append("single", 1, b"now")
        assert next(consumer).value == b"while it was away"
