"""The limit of calls under way to one node: alone, and in the API before a node that answers
nothing."""

import re
import threading
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import grpc
import pytest

from api.bootstrap.seed import readdress
from api.node.call_limit import CALLS_MAX, CallLimit, NodeBusyError
from api.node.client import NodeClient
from api.node.failure import FailureKind, NodeFailure
from api.node.messages import NodeFollower, Place
from api.node.pool import NodePool
from headrace.wire import stream_pb2, stream_pb2_grpc
from tests.support.builders.control_plane import Service
from tests.support.processes.platform import wait_until
from tests.support.processes.scripted_node import FakeNode

WAIT_S = 60.0
ADDRESS, OTHER = "127.0.0.1:1", "127.0.0.1:2"


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[NodePool]:
    """A pool that knows no database."""
    key_file = tmp_path / "node.key"
    key_file.write_text("hr_node_x")
    with NodePool(key_file) as nodes:
        yield nodes


@contextmanager
def full(limit: CallLimit, address: str) -> Iterator[ExitStack]:
    """As many calls under way to an address as there may be."""
    with ExitStack() as calls:
        for _ in range(CALLS_MAX):
            calls.enter_context(limit.call(address))
        yield calls


def test_one_call_too_many_is_refused_at_once_and_counted() -> None:
    limit = CallLimit()
    with full(limit, ADDRESS) as calls:
        for _ in range(2):
            with pytest.raises(NodeBusyError, match=str(CALLS_MAX)), limit.call(ADDRESS):
                raise AssertionError("it is not called")
        assert (limit.refused, limit.under_way) == (2, CALLS_MAX)
        with limit.call(OTHER):
            assert limit.under_way == CALLS_MAX + 1
        calls.close()
        with limit.call(ADDRESS):
            assert limit.under_way == 1
    assert (limit.refused, limit.under_way) == (2, 0)


def test_a_call_that_fails_gives_its_place_back() -> None:
    limit = CallLimit()
    with pytest.raises(ZeroDivisionError), limit.call(ADDRESS):
        raise ZeroDivisionError
    assert limit.under_way == 0


def test_many_threads_never_have_more_calls_under_way_than_the_limit() -> None:
    limit, most = CallLimit(), 0
    start = threading.Barrier(2 * CALLS_MAX)

    def call() -> int:
        start.wait(WAIT_S)
        seen = 0
        for _ in range(200):
            try:
                with limit.call(ADDRESS):
                    seen = max(seen, limit.under_way)
            except NodeBusyError:
                continue
        return seen

    with ThreadPoolExecutor(2 * CALLS_MAX) as threads:
        calls = [threads.submit(call) for _ in range(2 * CALLS_MAX)]
        most = max(each.result(WAIT_S) for each in calls)
    assert 1 <= most <= CALLS_MAX
    assert limit.under_way == 0


def test_a_refused_request_names_the_node_and_when_to_try_again(
    pool: NodePool, node: FakeNode
) -> None:
    with full(pool.limit, node.address):
        with pytest.raises(NodeFailure) as failed:
            NodeClient(pool).node_status(node.address)
        for ask in (NodeClient(pool).positions, NodeClient(pool).offsets_at):
            with pytest.raises(NodeFailure, match="NODE_BUSY"):
                ask(node.address, [])
    assert (failed.value.kind, failed.value.code) == (FailureKind.THROTTLED, "NODE_BUSY")
    assert node.address in failed.value.message
    assert failed.value.after is not None
    assert NodeClient(pool).node_status(node.address).node_id == node.node_id


def test_another_node_of_the_cluster_is_asked_if_the_first_one_is_busy(
    pool: NodePool, node: FakeNode
) -> None:
    with full(pool.limit, ADDRESS):
        reply = NodeClient(pool).describe([ADDRESS, node.address], topic_ids=["tp_none"])
    assert reply.node_id == node.node_id


def test_workers_have_threads_of_their_own_and_are_never_refused(
    pool: NodePool, node: FakeNode
) -> None:
    worker = NodeClient(pool, limited=False)
    with full(pool.limit, node.address):
        assert worker.node_status(node.address).node_id == node.node_id
        assert worker.positions(node.address, []) == {}
    assert pool.limit.refused == 0


def test_readers_that_wait_in_the_event_loop_hold_no_thread_and_are_never_refused(
    pool: NodePool,
) -> None:
    silent = Silent()
    silent.released.set()

    async def fetch(address: str) -> int:
        follower = NodeFollower(pool, Place(address, "default", "orders", 1, "Bearer x"))
        reply = await follower.fetch(0, 0, messages=1, size_bytes=1, wait_ms=0)
        return reply.high_watermark

    with silent.serving() as address, full(pool.limit, address):
        assert anyio.run(fetch, address) == 7


@dataclass
class Silent(stream_pb2_grpc.GroupsServicer, stream_pb2_grpc.StreamServicer):
    """A node that takes every call and answers none before it is released."""

    released: threading.Event = field(default_factory=threading.Event)

    def ListGroups(  # noqa: N802
        self, _request: stream_pb2.ListGroupsRequest, _context: grpc.ServicerContext
    ) -> stream_pb2.ListGroupsReply:
        self.released.wait(WAIT_S)
        return stream_pb2.ListGroupsReply()

    def FetchMessages(  # noqa: N802
        self, _request: stream_pb2.FetchMessagesRequest, _context: grpc.ServicerContext
    ) -> stream_pb2.FetchMessagesReply:
        self.released.wait(WAIT_S)
        return stream_pb2.FetchMessagesReply(high_watermark=7)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Its address."""
        server = grpc.server(futures.ThreadPoolExecutor(2 * CALLS_MAX))
        stream_pb2_grpc.add_GroupsServicer_to_server(self, server)
        stream_pb2_grpc.add_StreamServicer_to_server(self, server)
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield address
        finally:
            self.released.set()
            server.stop(None).wait()


@pytest.fixture
def silent(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    """The node of the first cluster takes calls and does not answer; none times out meanwhile."""
    monkeypatch.setattr("api.node.messages.DEADLINE_SECONDS", WAIT_S)
    node = Silent()
    with node.serving() as address:
        node_id = service.first.identity.node_id
        readdress(service.database, node_id=node_id, node_address=address)
        yield node


def test_a_busy_node_is_neither_reachable_nor_unreachable(service: Service) -> None:
    node_id = service.node.node_id = service.first.identity.node_id
    path = f"/v1/clusters/{service.first.identity.cluster_id}/nodes?live=true"
    with full(service.nodes.limit, service.node.address):
        (condition,) = service.get(path)["items"][0]["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("Unknown", "NODE_BUSY")
        explained = service.get(f"/v1/explain?object={node_id}")
        assert "NODE_BUSY" in str(explained)
    (condition,) = service.get(path)["items"][0]["status"]["conditions"]
    assert condition["status"] == "True"


@contextmanager
def asking(service: Service, requests: int) -> Iterator[None]:
    """Requests that wait for the node, once as many as may are under way."""
    with ThreadPoolExecutor(requests) as threads:
        for _ in range(requests):
            threads.submit(service.client.get, "/v1/groups", headers=service.owner)
        wait_until(
            lambda: service.nodes.limit.under_way == min(requests, CALLS_MAX), "they wait", 60
        )
        yield


def test_a_request_too_many_for_a_silent_node_is_refused_and_others_are_served(
    service: Service, silent: Silent
) -> None:
    refused_before = refusals(service)
    with asking(service, CALLS_MAX):
        answer = service.client.get("/v1/groups", headers=service.owner)
        assert answer.status_code == 503, answer.text
        problem = answer.json()
        assert (problem["code"], problem["retriable"]) == ("NODE_BUSY", True)
        assert str(CALLS_MAX) in problem["detail"]
        assert "Retry-After" in problem["hint"]
        assert answer.headers["retry-after"] == "1"
        assert refusals(service) == refused_before + 1
        assert service.get("/v1/topics")["items"] == []
        silent.released.set()
    assert service.get("/v1/groups")["items"] == []
    assert refusals(service) == refused_before + 1


def test_readiness_and_metrics_wait_for_no_thread_of_requests(
    service: Service, silent: Silent
) -> None:
    portal = service.client.portal
    assert portal is not None
    before = portal.call(set_threads, 2)
    try:
        with asking(service, 2):
            assert service.client.get("/readyz").json() == {"status": "ready"}
            assert service.client.get("/healthz").json() == {"status": "ok"}
            assert metric(service, "headrace_api_node_calls") == 2
            silent.released.set()
    finally:
        portal.call(set_threads, before)


async def set_threads(count: float) -> float:
    """Gives requests so many threads; how many they had."""
    limiter = anyio.to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, count
    return before


def metric(service: Service, name: str) -> float:
    """A figure of /metrics."""
    answer = service.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    found = re.search(rf"^{re.escape(name)} (\S+)$", answer.text, re.MULTILINE)
    assert found is not None, answer.text
    return float(found[1])


def refusals(service: Service) -> float:
    """Calls that were refused because their node had as many as it may have."""
    return metric(service, 'headrace_api_node_calls_refused_total{reason="busy"}')
