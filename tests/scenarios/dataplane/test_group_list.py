"""Groups.ListGroups on a real node: whose groups are told, and how they are cut into pages."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from headrace.client import Client
from headrace.consumer import groups
from headrace.settings import Settings
from headrace.wire import stream_pb2 as wire
from tests.support.builders import commands
from tests.support.builders.node_objects import EDITOR, VIEWER, furnish, key_spec
from tests.support.processes.node_process import NodeProcess, refusal, token
from tests.support.processes.platform import wait_until

RIVAL, RIVAL_SHA256 = token("user", "rival00001", "rival")
WIDE, WIDE_SHA256 = token("user", "wide000001", "wide")
BILLING, BILLING_SHA256 = token("user", "billing001", "billing")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    folder: Path = tmp_path_factory.mktemp("node")
    with NodeProcess(folder) as running:
        furnish(running, "orders", "visits")
        admin = running.admin()
        other = commands.put_topic(
            "tp_rival", topic="orders", organization_id="org_2", project_id="prj_2"
        )
        admin.apply(other.control.request)
        rival = key_spec("key_rival", "rival00001", RIVAL_SHA256, "editor")
        rival.put_key.organization_id, rival.put_key.project_id = "org_2", "prj_2"
        admin.apply(rival)
        wide = key_spec("key_wide", "wide000001", WIDE_SHA256, "editor")
        wide.put_key.project_id = ""
        admin.apply(wide)
        admin.apply(key_spec("key_billing", "billing001", BILLING_SHA256, "billing-viewer"))
        yield running


def names(node: NodeProcess, key: str, project: str = "") -> list[str]:
    return [row.name for row in node.client(key).list_groups(project).groups]


def test_a_list_says_state_members_partitions_and_topics(node: NodeProcess) -> None:
    client = node.client(EDITOR)
    first = client.join("a", "orders", "visits", group="lively")
    first.assigned(4)
    second = client.join("b", "orders", group="lively")
    # Partitions move from one member to the other: both read on, which releases and takes.
    first.assignment(lambda seen: len(seen.assigned) < 4 and not seen.revoked)
    second.assignment(lambda seen: len(seen.assigned) > 0 and not seen.revoked)

    def row() -> wire.GroupRow:
        return next(row for row in client.list_groups().groups if row.name == "lively")

    wait_until(lambda: row().state == "STABLE", "the group is at rest")
    lively = row()
    described = client.describe_group("lively")
    assert (lively.group, lively.generation) == (described.group, described.generation)
    assert (lively.members, lively.partitions) == (2, 4)
    assert list(lively.topics) == ["default/orders", "default/visits"]
    first.close()
    second.close()
    wait_until(
        lambda: "EMPTY" in {r.state for r in client.list_groups().groups if r.name == "lively"},
        "the group has no members",
    )
    empty = next(row for row in client.list_groups().groups if row.name == "lively")
    assert (empty.members, empty.partitions, list(empty.topics)) == (0, 0, [])


def test_pages_are_ascending_by_name_and_miss_nothing(node: NodeProcess) -> None:
    client = node.client(EDITOR)
    for number in range(5):
        client.join("m", "orders", group=f"paged-{number}").close()
    whole = [row.name for row in client.list_groups().groups]
    assert whole == sorted(whole)
    seen: list[str] = []
    after, pages = "", 0
    while True:
        page = client.list_groups(after=after, groups_max=2)
        assert len(page.groups) <= 2
        seen += [row.name for row in page.groups]
        pages += 1
        after = page.next
        if not after:
            break
        assert after == page.groups[-1].name
    assert (seen, pages) == (whole, (len(whole) + 1) // 2)
    assert not client.list_groups(after=whole[-1]).groups
    # However many are asked for: never more than the node gives.
    assert not client.list_groups(groups_max=2**32 - 1).next


def test_an_organization_never_sees_the_groups_of_another(node: NodeProcess) -> None:
    node.client(EDITOR).join("m", "orders", group="ours").close()
    node.client(RIVAL).join("m", "orders", group="theirs").close()
    assert "ours" in names(node, EDITOR)
    assert "ours" in names(node, VIEWER)
    assert "ours" in names(node, WIDE, "default")
    assert names(node, RIVAL) == ["theirs"]
    assert "theirs" not in names(node, EDITOR) + names(node, WIDE, "default")
    for key, project in ((EDITOR, "prj_2"), (WIDE, "prj_2"), (RIVAL, "prj_1")):
        with pytest.raises(grpc.RpcError) as caught:
            node.client(key).list_groups(project)
        assert refusal(caught.value)[1].code == "PROJECT_NOT_FOUND"


def test_keys_that_may_not_consume_are_refused(node: NodeProcess) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        node.client(BILLING).list_groups()
    assert caught.value.code() in (
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
    )


def test_the_client_tells_the_lag_of_what_a_group_reads(node: NodeProcess) -> None:
    client = node.client(EDITOR)
    topic = client.topic("visits")
    reader = client.join("m", "visits", group="behind")
    assigned = reader.assigned(2).assigned
    before = sum(client.fetch(topic, index).high_watermark for index in range(2))
    client.produce(topic, 0, [b"one", b"two", b"three"])
    client.commit(next(a for a in assigned if a.partition == 0), reader.joined.group, 1)
    settings = Settings(bootstrap=(f"127.0.0.1:{node.grpc_port}",), api_url="", key=EDITOR)
    with Client(settings) as sdk:
        found = {group.name: group for group in sdk.list_groups(lag=True)}
        assert found["behind"].lag == before + 2
        assert found["behind"].lag == sum(each.lag for each in sdk.group_lag("behind"))
        quick = {group.name: group for group in sdk.list_groups()}
        assert quick["behind"].lag is None
        assert isinstance(quick["behind"], groups.GroupSummary)
    reader.close()
