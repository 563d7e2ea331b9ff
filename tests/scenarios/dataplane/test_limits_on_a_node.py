"""The limits of one real node: what one tenant, or one topic, takes from the others."""

import contextlib
from collections.abc import Iterator

import grpc
import pytest

from tests.support.builders import commands
from tests.support.builders.node_objects import EDITOR, furnish, topic_spec
from tests.support.clients.usage_log import closes
from tests.support.processes.node_process import Client, NodeProcess, refusal, token

PARTITION_GROUPS_MAX = 64  # native/src/limits.h
PARTITIONS_MAX = 8
FEW_PARTITIONS = ("shards = 1", f"shards = 1\npartitions_max = {PARTITIONS_MAX}")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node with few partitions, which one topic has taken as far as it may."""
    with NodeProcess(tmp_path_factory.mktemp("node"), exchange=FEW_PARTITIONS) as running:
        furnish(running)
        running.admin().apply(topic_spec("shared", partitions=1))
        client = running.client(EDITOR)
        client.produce(client.topic("shared"), 0, [b"x"])
        # To refuse the wide topic, or its records beyond a share, is one way to keep room.
        with contextlib.suppress(grpc.RpcError):
            running.admin().apply(topic_spec("wide", partitions=PARTITIONS_MAX))
            wide = client.topic("wide")
            for partition in range(PARTITIONS_MAX):
                client.produce(wide, partition, [b"x"])
        yield running


def answer_of_join(client: Client, group: str) -> str:
    """What the first member of this group is told: "assigned", or the code of its end."""
    member = client.join("reader", "shared", group=group)
    while True:
        event = member.next_event()
        if event.HasField("ended"):
            return event.ended.code
        if event.assignment.assigned:
            member.close()
            return "assigned"


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a partition keeps a row for every group that ever read it and refuses the 65th",
)
def test_a_topic_is_read_by_one_group_more_than_a_partition_has_rows(node: NodeProcess) -> None:
    client = node.client(EDITOR)
    answers = [answer_of_join(client, f"g{i}") for i in range(PARTITION_GROUPS_MAX + 1)]
    assert answers == ["assigned"] * (PARTITION_GROUPS_MAX + 1)


def other_tenant(node: NodeProcess) -> Client:
    """A client of another organization."""
    bearer, digest = token("user", "tenant0002", "tenant")
    key = commands.put_key(
        "key_2", public_id="tenant0002", organization_id="org_2", project_id="prj_2"
    ).control.request
    key.put_key.secret_sha256 = digest
    node.admin().apply(key)
    return node.client(bearer)


def answer_of_produce(client: Client, topic: str) -> str:
    """What a first record is answered: "stored", or the code of its refusal."""
    try:
        client.produce(client.topic(topic), 0, [b"first"])
    except grpc.RpcError as error:
        return refusal(error)[1].code
    return "stored"


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="one topic takes every partition slot of a shard, so topics made later store nothing",
)
def test_a_topic_stores_records_beside_a_wide_topic_of_another_organization(
    node: NodeProcess,
) -> None:
    mine = commands.put_topic("tp_2", topic="mine", organization_id="org_2", project_id="prj_2")
    node.admin().apply(mine.control.request)
    assert answer_of_produce(other_tenant(node), "mine") == "stored"


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="one topic takes every partition slot of a shard, so no usage of any is recorded",
)
def test_usage_is_recorded_beside_a_wide_topic(node: NodeProcess) -> None:
    node.admin().flush_usage(seconds=5)
    described = next(
        topic for topic in node.admin().describe_node().topics if topic.topic_id == "tp_shared"
    )
    windows = [close for close in closes(node) if close.topic_id == "tp_shared"]
    billed = sum(found.records for close in windows for found in close.sums)
    assert billed == sum(partition.log_end for partition in described.partitions)
