"""A group from outside: who reads what, and how far."""

import asyncio

import pytest

from headrace.async_client import AsyncClient
from headrace.client import Client
from headrace.consumer.groups import PartitionLag
from headrace.errors import NotFound
from headrace.messages import TopicPartition
from headrace.settings import Settings
from tests.headrace.scripted_node import Group, ScriptedNode


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


def test_a_list_turns_every_page_and_knows_the_lag_where_somebody_reads(
    client: Client, node: ScriptedNode
) -> None:
    node.append("single", 0, *[b"x"] * 3)
    for number, name in enumerate("abcde"):
        node.groups[name] = Group(node, 100 + number)
    with client.topic("single").consume(group="c", start="earliest", ack="manual") as consumer:
        consumer.poll("5s")
        found = client.list_groups(lag=True)
    assert [group.name for group in found] == ["a", "b", "c", "d", "e"]
    assert [group.lag for group in found] == [None, None, 3, None, None]
    assert (found[2].members, found[2].partitions, found[2].topics) == (1, 1, ("single",))
    assert [group.lag for group in client.list_groups()] == [None] * 5


def test_a_lag_is_unknown_when_a_topic_of_the_group_is_gone(
    client: Client, node: ScriptedNode
) -> None:
    with client.topic("single").consume(group="g", start="earliest") as consumer:
        consumer.poll("100ms")
        with node.changed:
            node.groups["g"].members[0].topics.append("gone")
        assert [group.lag for group in client.list_groups(lag=True)] == [None]


def test_the_async_client_asks_the_same(settings: Settings, node: ScriptedNode) -> None:
    async def main() -> list[PartitionLag]:
        async with AsyncClient(settings) as client:
            consumer = client.topic("single").consume(group="g", start="earliest")
            await consumer.poll("100ms")
            await consumer.close()
            assert (await client.describe_group("g")).members == ()
            assert [group.state for group in await client.list_groups()] == ["EMPTY"]
            return await client.group_lag("g", ["single"])

    assert [each.lag for each in asyncio.run(main())] == [0]
