"""The pool of connections before real gRPC servers: what a node that does not answer costs, and
that channels are neither made anew nor left over."""

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

import grpc
import pytest

from api.auth.tokens import new_token
from api.bootstrap.seed import readdress
from api.db.database import Database
from api.db.identifiers import new_id
from api.db.tables.nodes import Node
from api.node.addresses import registrations
from api.node.circuit_breaker import DELAY_SECONDS_MAX, JITTER, CircuitBreaker
from api.node.client import FLUSH_SECONDS, NodeClient
from api.node.failure import NodeFailure
from api.node.pool import REFRESH_SECONDS, CircuitOpenError, NodePool
from dataplane.wire import node_pb2, node_pb2_grpc
from tests.support.builders.control_plane import Body, Seconds, Service
from tests.support.processes.platform import wait_until
from tests.support.processes.scripted_node import FakeNode, serving

DEADLINE = 0.2
ROUNDS = 40

Describe: TypeAlias = Callable[..., node_pb2.DescribeReply]


@pytest.fixture
def seconds() -> Seconds:
    """The clock of the breaker, and of the refresh."""
    return Seconds()


@pytest.fixture
def pool(tmp_path: Path, seconds: Seconds) -> Iterator[NodePool]:
    """A pool that knows no database."""
    key_file = tmp_path / "node.key"
    key_file.write_text(new_token("node").text)
    with NodePool(key_file, breaker=CircuitBreaker(clock=seconds)) as nodes:
        yield nodes


@pytest.fixture
def registered(service: Service, seconds: Seconds) -> Iterator[NodePool]:
    """A pool over the nodes that are registered."""
    known = partial(registrations, service.database)
    key_file = service.settings.node.admin_key_file
    with NodePool(key_file, known, breaker=CircuitBreaker(clock=seconds)) as nodes:
        yield nodes


def failure_of(client: NodeClient, address: str) -> tuple[str, float]:
    """The code of a call that fails, and how long it took."""
    began = time.monotonic()
    with pytest.raises(NodeFailure) as failed:
        client.node_status(address)
    return failed.value.code, time.monotonic() - began


def test_a_dead_node_costs_one_time_out_and_then_nothing_until_it_is_probed(
    pool: NodePool, seconds: Seconds
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        first = NodeClient(pool, deadline_seconds=DEADLINE)
        code, took = failure_of(first, address)
        assert (code, took >= DEADLINE) == ("NODE_UNREACHABLE", True)
        # Another request, with a longer deadline: it learns what the first one found out.
        later = NodeClient(pool, deadline_seconds=100 * DEADLINE)
        code, took = failure_of(later, address)
        assert (code, took < DEADLINE) == ("NODE_UNREACHABLE", True)
        with pytest.raises(CircuitOpenError), pool.calling(address, DEADLINE):
            raise AssertionError("it is not called")
        seconds.advance(DEADLINE * (1 + JITTER))
        assert failure_of(first, address)[1] >= DEADLINE, "the probe"
        assert failure_of(later, address)[1] < DEADLINE


def test_a_node_that_comes_back_is_found_by_a_probe(pool: NodePool, seconds: Seconds) -> None:
    client = NodeClient(pool, deadline_seconds=DEADLINE)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        address = f"127.0.0.1:{port}"
        failure_of(client, address)

    def answers() -> bool:
        seconds.advance(DELAY_SECONDS_MAX * (1 + JITTER))
        try:
            client.node_status(address)
        except NodeFailure:
            return False
        return True

    with serving(FakeNode(), port):
        wait_until(answers, "the node is found again", 60)
        assert answers()
    assert len(pool) == 1


def test_a_flush_that_takes_long_closes_no_healthy_node_off(
    pool: NodePool, node: FakeNode, seconds: Seconds
) -> None:
    client = NodeClient(pool, deadline_seconds=DEADLINE)
    began, released = threading.Event(), threading.Event()

    def silence(_context: grpc.ServicerContext) -> None:
        released.wait(60)

    def work(_context: grpc.ServicerContext) -> None:
        began.set()
        released.wait(60)

    node.describe.append(silence)
    assert failure_of(client, node.address)[0] == "NODE_UNREACHABLE"
    seconds.advance(DELAY_SECONDS_MAX * (1 + JITTER))
    node.flush.append(work)
    # The node answers again. The flush is the first call that comes, and one that takes long.
    patient = NodeClient(pool)
    with ThreadPoolExecutor(1) as threads:
        flushing = threads.submit(patient.flush_usage, node.address)
        try:
            assert began.wait(60), "the flush is under way"
            assert patient.node_status(node.address).node_id == node.node_id
        finally:
            released.set()
        assert flushing.result(60) == 0


def test_a_flush_waits_for_a_silent_node_no_longer_than_any_call(pool: NodePool) -> None:
    client = NodeClient(pool, deadline_seconds=DEADLINE)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(NodeFailure) as failed:
            client.flush_usage(address)
    assert failed.value.code == "NODE_UNREACHABLE"
    assert time.monotonic() - began < FLUSH_SECONDS / 2


def test_a_node_that_is_found_at_another_address_gets_a_new_connection(
    service: Service, registered: NodePool
) -> None:
    client = NodeClient(registered)
    client.node_status(service.node.address)
    with registered.lease(service.node.address) as before, serving(FakeNode()) as moved:
        node_id = service.first.identity.node_id
        readdress(service.database, node_id=node_id, node_address=moved.address)
        calls, waits = method_of(before.calls), method_of(before.waits)
        client.node_status(moved.address)
        assert len(registered) == 1
        assert before.retired
        # A call that is under way ends on the connection it has.
        assert not is_closed(calls)
    assert is_closed(calls)
    assert is_closed(waits)


def test_a_node_that_registers_again_gets_a_new_connection(
    service: Service, registered: NodePool, seconds: Seconds
) -> None:
    client, address = NodeClient(registered), service.node.address
    client.node_status(address)
    with registered.lease(address) as before:
        calls = method_of(before.calls)
    for _ in range(2):
        seconds.advance(REFRESH_SECONDS)
        client.node_status(address)
    with registered.lease(address) as same:
        assert same is before
    with service.database.write() as session:
        row = session.get_one(Node, service.first.identity.node_id)
        row.revision += 1
    seconds.advance(REFRESH_SECONDS)
    client.node_status(address)
    with registered.lease(address) as after:
        assert after is not before
    assert is_closed(calls)


def test_a_pool_that_is_closed_lets_the_calls_under_way_end(pool: NodePool, node: FakeNode) -> None:
    with pool.lease(node.address) as connection:
        calls = method_of(connection.calls)
        pool.close()
        assert not is_closed(calls)
    assert is_closed(calls)
    assert len(pool) == 0


def test_connections_to_nodes_that_were_removed_are_closed(
    service: Service, registered: NodePool, seconds: Seconds
) -> None:
    client = NodeClient(registered)
    cluster_id = service.first.identity.cluster_id
    with ExitStack() as running:
        for number in range(3):
            node = running.enter_context(serving(FakeNode()))
            body: Body = {
                "id": new_id("nd"),
                "name": f"n{number}",
                "spec": {"address": node.address},
            }
            service.post(f"/v1/clusters/{cluster_id}/nodes", body)
            client.node_status(node.address)
        client.node_status(service.node.address)
        assert len(registered) == 4
        with service.database.write() as session:
            for row in session.query(Node).where(Node.name.like("n_")):
                session.delete(row)
        seconds.advance(REFRESH_SECONDS)
        client.node_status(service.node.address)
    assert len(registered) == 1


def test_a_database_that_is_away_closes_no_connection(
    tmp_path: Path, node: FakeNode, seconds: Seconds
) -> None:
    key_file = tmp_path / "node.key"
    key_file.write_text(new_token("node").text)
    away = partial(registrations, Database(f"sqlite:///{tmp_path}/none/control.db"))
    with NodePool(key_file, away, breaker=CircuitBreaker(clock=seconds)) as nodes:
        client = NodeClient(nodes)
        client.node_status(node.address)
        with nodes.lease(node.address) as before:
            seconds.advance(REFRESH_SECONDS)
            client.node_status(node.address)
            assert not before.retired
        assert len(nodes) == 1


def test_requests_leave_no_channel_behind(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    cluster_id = service.first.identity.cluster_id
    etag = {"If-Match": f'"{topic["etag"]}"'}
    shorter = {"spec": {"retention_ms": "1000"}}

    def five_requests() -> None:
        service.get(f"/v1/topics/{topic['id']}?live=true")
        service.get(f"/v1/clusters/{cluster_id}/nodes?live=true")
        service.get(f"/v1/explain?object={service.first.identity.node_id}")
        path = f"/v1/topics/{topic['id']}"
        headers = {**service.owner, **etag}
        plan = service.client.patch(f"{path}?dry_run=true", json=shorter, headers=headers)
        assert plan.status_code == 200, plan.text
        # The scripted node has no such service: the call is made all the same.
        assert service.client.get("/v1/groups", headers=service.owner).status_code == 503

    five_requests()
    before = channels()
    for _ in range(ROUNDS):
        five_requests()
    assert channels() == before
    assert len(service.nodes) == 1


def channels() -> int:
    """How many channels there are in this process."""
    gc.collect()
    return sum(isinstance(each, grpc.Channel) for each in gc.get_objects())


def method_of(channel: grpc.Channel) -> Describe:
    """A method of a channel that is open."""
    return cast("Describe", node_pb2_grpc.AdminStub(channel).Describe)


def is_closed(method: Describe) -> bool:
    """Whether the channel of a method takes no calls any more; the node behind it is there."""
    try:
        method(node_pb2.DescribeRequest(key_ids=["key_none"]), timeout=30)
    except ValueError:
        return True
    return False
