"""A group from outside: who reads what, and how far."""

import asyncio

import pytest

from headrace.async_client import AsyncClient
from headrace.client import Client
from headrace.errors import NotFound
from headrace.groups import PartitionLag
from headrace.messages import TopicPartition
from headrace.settings import Settings
from tests.headrace.scripted_node import ScriptedNode


def test_a_group_that_never_had_a_member_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound) as caught:
        client.describe_group("nobody")
    assert caught.value.code == "GROUP_NOT_FOUND"


def test_a_description_names_members_and_their_partitions(client: Client) -> None:
    client.topic("single").send(b"one")
    with client.topic("single").consume(group="g", start="earliest", member="a") as consumer:
        assert consumer.poll("5s") is not None
        found = client.describe_group("g")
    assert (found.name, found.state) == ("g", "STABLE")
    assert [m.member for m in found.members] == ["a"]
    assert found.members[0].partitions == (TopicPartition("single", 0),)


def test_the_lag_is_what_is_there_and_not_committed(client: Client, node: ScriptedNode) -> None:
    node.append("single", 0, *[b"x"] * 5)
    consumer = client.topic("single").consume(group="g", start="earliest", ack="manual")
    with consumer:
        consumer.poll("5s")
        consumer.poll("5s")
        consumer.commit()
    assert client.group_lag("g") == [PartitionLag("single", 0, 2, 0, 5, "")]
    assert [each.lag for each in client.group_lag("g")] == [3]


def test_partitions_without_a_commit_count_when_the_group_reads_their_topic(
    client: Client, node: ScriptedNode
) -> None:
    node.append("orders", 1, b"x")
    consumer = client.topic("orders").consume(group="g", start="earliest", ack="manual")
    with consumer:
        consumer.poll("5s")
        consumer.poll("100ms")
        consumer.commit()
    node.append("orders", 3, b"y", b"z")
    assert [(each.partition, each.lag) for each in client.group_lag("g")] == [
        *[(0, 0), (1, 0), (2, 0), (3, 2)]
    ]


def test_a_named_topic_is_told_whether_or_not_the_group_was_there(
    client: Client, node: ScriptedNode
) -> None:
    node.append("orders", 2, b"x", b"y")
    with client.topic("single").consume(group="g", start="earliest") as consumer:
        consumer.poll("100ms")
    told = client.group_lag("g", ["orders"])
    assert [(each.partition, each.committed, each.lag) for each in told] == [
        *[(0, None, 0), (1, None, 0), (2, None, 2), (3, None, 0)]
    ]


def test_records_that_retention_removed_do_not_count(client: Client, node: ScriptedNode) -> None:
    assert PartitionLag("t", 0, 3, 10, 12, "").lag == 2
    assert PartitionLag("t", 0, 12, 0, 12, "").lag == 0


def test_the_async_client_asks_the_same(settings: Settings, node: ScriptedNode) -> None:
    async def main() -> list[PartitionLag]:
        async with AsyncClient(settings) as client:
            consumer = client.topic("single").consume(group="g", start="earliest")
            await consumer.poll("100ms")
            await consumer.close()
            assert (await client.describe_group("g")).members == ()
            return await client.group_lag("g", ["single"])

    assert [each.lag for each in asyncio.run(main())] == [0]
