"""Groups over REST: pages that miss nothing over several clusters, and lags that are known or
absent."""

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from api.groups import service
from api.groups.service import QUERIES_MAX, detail, list_page
from api.http.errors import UnavailableError
from api.node.groups import Place
from api.node.pool import NodePool
from headrace.wire import stream_pb2 as wire
from headrace.wire import stream_pb2_grpc as stubs
from tests.support.processes.scripted_node import refuse


@dataclass
class Cluster(stubs.GroupsServicer, stubs.ClusterServicer, stubs.StreamServicer):
    """A node's public services with scripted groups; ``ends``: log ends by partition index."""

    groups: dict[str, list[str]] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    committed: dict[tuple[int, int], int] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    end: int = 100
    asked: int = 0
    unknown_project: bool = False

    def ListGroups(  # noqa: N802
        self, request: wire.ListGroupsRequest, context: grpc.ServicerContext
    ) -> wire.ListGroupsReply:
        if self.unknown_project:
            refuse(grpc.StatusCode.NOT_FOUND, "PROJECT_NOT_FOUND")(context)
        later = [name for name in sorted(self.groups) if name > request.after]
        shown = later[: request.groups_max]
        return wire.ListGroupsReply(
            groups=[
                wire.GroupRow(name=name, group=16, state="STABLE", topics=self.groups[name])
                for name in shown
            ],
            next=shown[-1] if len(later) > len(shown) else "",
        )

    def DescribeGroup(  # noqa: N802
        self, request: wire.DescribeGroupRequest, context: grpc.ServicerContext
    ) -> wire.DescribeGroupReply:
        if request.group not in self.groups:
            refuse(grpc.StatusCode.NOT_FOUND, "GROUP_NOT_FOUND")(context)
        held = [wire.Assigned(name=name, partition=0) for name in self.groups[request.group]]
        members = [wire.GroupMember(member="m-1", assigned=held)] if held else []
        return wire.DescribeGroupReply(group=16, generation=7, state="STABLE", members=members)

    def Describe(  # noqa: N802
        self, request: wire.DescribeRequest, context: grpc.ServicerContext
    ) -> wire.DescribeReply:
        return wire.DescribeReply(
            topics=[
                wire.Topic(
                    name=name,
                    id=f"tp_{name}",
                    number=number,
                    created_revision=1,
                    partitions=[wire.Partition(index=index) for index in range(count)],
                )
                for number, (name, count) in enumerate(self.topics.items(), 16)
            ]
        )

    def FetchOffsets(  # noqa: N802
        self, request: wire.FetchOffsetsRequest, context: grpc.ServicerContext
    ) -> wire.FetchOffsetsReply:
        self.asked += 1
        if request.partition in self.silent:
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        offset = self.committed.get((request.topic, request.partition))
        return wire.FetchOffsetsReply(
            found=offset is not None, offset=offset or 0, log_start=10, high_watermark=self.end
        )


@pytest.fixture
def nodes() -> Iterator[NodePool]:
    """The connections of one test."""
    with NodePool(Path("unread")) as pool:
        yield pool


@contextmanager
def serving(cluster: Cluster, cluster_id: str = "cl_a") -> Iterator[Place]:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    stubs.add_GroupsServicer_to_server(cluster, server)
    stubs.add_ClusterServicer_to_server(cluster, server)
    stubs.add_StreamServicer_to_server(cluster, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield Place(cluster_id, f"127.0.0.1:{port}", "prj_1", "default", "Bearer x")
    finally:
        server.stop(None).wait()


def test_pages_go_through_every_cluster_and_miss_nothing(nodes: NodePool) -> None:
    first = Cluster(groups={name: [] for name in ("a", "b", "c")})
    last = Cluster(groups={name: [] for name in ("a", "z")})
    empty = Cluster(unknown_project=True)
    with serving(first) as one, serving(empty, "cl_b") as two, serving(last, "cl_c") as three:
        places = [one, two, three]
        seen: list[tuple[str, str]] = []
        after, pages = list_page(nodes, places, "", 2, lag=False)[1], 1
        seen += [
            (each.cluster_id, each.name) for each in list_page(nodes, places, "", 2, lag=False)[0]
        ]
        while after:
            bodies, after = list_page(nodes, places, after, 2, lag=False)
            seen += [(each.cluster_id, each.name) for each in bodies]
            pages += 1
    assert seen == [("cl_a", "a"), ("cl_a", "b"), ("cl_a", "c"), ("cl_c", "a"), ("cl_c", "z")]
    assert pages == 3


def test_a_lag_is_the_sum_of_its_partitions_and_absent_if_one_does_not_answer(
    nodes: NodePool,
) -> None:
    cluster = Cluster(
        groups={"reads": ["orders"], "gone": ["deleted"]},
        topics={"orders": 2},
        committed={(16, 0): 40},
    )
    with serving(cluster) as place:
        # 60 behind the commit, and all 90 that are kept where nothing was committed.
        lags = {each.name: each.lag for each in list_page(nodes, [place], "", 50, lag=True)[0]}
        assert lags == {"reads": 150, "gone": None}
        cluster.silent.add(1)
        assert list_page(nodes, [place], "", 50, lag=True)[0][1].lag is None
        found = detail(nodes, [place], "reads")
    assert found is not None
    assert found.lag is None
    shown = [(each.committed, each.end_offset, each.lag, each.member) for each in found.positions]
    assert shown == [(40, 100, 60, "m-1"), (None, None, None, None)]
    assert found.complete


def test_a_group_that_nobody_reads_for_is_as_far_behind_as_in_what_it_committed(
    nodes: NodePool,
) -> None:
    cluster = Cluster(groups={"past": []}, topics={"orders": 2, "idle": 2})
    with serving(cluster) as place:
        # Without any commit nobody can say which topics count.
        assert list_page(nodes, [place], "", 50, lag=True)[0][0].lag is None
        cluster.committed[16, 0] = 40
        assert list_page(nodes, [place], "", 50, lag=True)[0][0].lag == 150
        # It may have committed where nobody answers.
        cluster.silent.add(1)
        assert list_page(nodes, [place], "", 50, lag=True)[0][0].lag is None


def test_groups_that_are_read_are_asked_about_before_those_that_are_not(
    nodes: NodePool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "QUERIES_MAX", 3)
    cluster = Cluster(
        groups={"a": [], "b": ["orders"]}, topics={"orders": 2}, committed={(16, 0): 100}, end=100
    )
    with serving(cluster) as place:
        assert [each.lag for each in list_page(nodes, [place], "", 50, lag=True)[0]] == [None, 90]


def test_no_more_is_asked_than_may_be_and_what_was_left_out_is_said(
    nodes: NodePool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert QUERIES_MAX == 1024
    monkeypatch.setattr(service, "QUERIES_MAX", 3)
    cluster = Cluster(
        groups={"a": ["orders"], "b": ["orders"]}, topics={"idle": 4, "orders": 2}, end=10
    )
    with serving(cluster) as place:
        lags = [each.lag for each in list_page(nodes, [place], "", 50, lag=True)[0]]
        assert (lags, cluster.asked) == ([0, None], 2)
        found = detail(nodes, [place], "a")
    assert found is not None
    # What it reads comes first; of what is idle only one partition could be asked.
    assert [each.topic for each in found.positions] == ["orders", "orders"]
    assert (found.complete, cluster.asked) == (False, 5)


def test_a_group_that_no_cluster_has_is_none_and_a_node_that_is_away_is_said(
    nodes: NodePool,
) -> None:
    with serving(Cluster()) as place:
        assert detail(nodes, [place], "billing") is None
    with pytest.raises(UnavailableError):
        list_page(nodes, [place], "", 50, lag=False)
