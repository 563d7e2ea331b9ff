"""Workers that pause, freeze, die or are refused before a real node: what the node has in the end
is what was wished, once, and whoever lost its lease changes nothing more.
"""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from api.bootstrap.seed import readdress
from api.node.client import NodeClient
from api.node.pool import NodePool
from api.reconcile.backoff import BACKOFF_MAX
from api.reconcile.loop import Loop
from api.reconcile.queue import LEASE
from api.topics.reconciler import SHOWN_WITHIN, TopicReconciler
from dataplane.wire import node_pb2
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.node_process import NodeProcess
from tests.support.processes.platform import wait_until
from tests.support.processes.scripted_node import refuse
from tests.support.proxies.node_proxy import NodeProxy
from tests.support.proxies.node_veil import NodeVeil, veiled

ROOT = Path(__file__).resolve().parents[3]
ONE_PASS = (sys.executable, "-m", "tests.support.processes.one_pass")
KINDS = ("topic",)
PATIENCE_SECONDS = 120.0
DEADLINE_SECONDS = 0.2
STORM = 10


@pytest.fixture
def veil(service: Service, process: NodeProcess) -> Iterator[NodeVeil]:
    """Where the first cluster's node is found: the real one behind a veil."""
    service.settings.node.admin_key_file.write_text(process.node_key)
    with veiled(f"127.0.0.1:{process.grpc_port}") as between:
        found_at(service, between.address)
        yield between


@contextmanager
def worker(service: Service, deadline_seconds: float = PATIENCE_SECONDS) -> Iterator[Loop]:
    """A worker beside the service's own, with connections of its own."""
    with NodePool(service.settings.node.admin_key_file) as nodes:
        client = NodeClient(nodes, deadline_seconds=deadline_seconds)
        yield Loop(service.database, {"topic": TopicReconciler(service.database, client)})


def test_a_second_worker_finds_what_a_first_has_made_that_is_paused(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    topic = service.topic("paused", partitions=2)
    road.hold_answer(2)
    with worker(service) as first, ThreadPoolExecutor(1) as pool:
        passing = pool.submit(first.run_once)
        assert road.holding.wait(PATIENCE_SECONDS)
        assert service.loop.run_once(KINDS) == 0, "the first one's lease holds"
        found_at(service, f"127.0.0.1:{process.grpc_port}")
        service.clock.advance(LEASE.total_seconds() + 1)
        settled(service, topic, "Ready")
        made = held(process, topic)
        road.let_go()
        assert passing.result() == 1
        assert first.counters.leases_lost == 1
    assert made is not None
    assert made.fence.lease_token == 1, "what the first made was found, and not made again"
    assert held(process, topic) == made
    assert condition(service, topic, "Ready") == "True"


def test_a_worker_killed_between_the_nodes_word_and_its_record_leaves_one_topic(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    topic = service.topic("killed", partitions=2)
    # Look, put, look: the second look is when the node has said yes and nothing is written down.
    road.hold_answer(3)
    key_file, now = service.settings.node.admin_key_file, service.clock().isoformat()
    arguments = (service.database.url, key_file, now)
    with subprocess.Popen([*ONE_PASS, *arguments], cwd=ROOT) as dying:
        try:
            assert road.holding.wait(PATIENCE_SECONDS)
        finally:
            dying.kill()
    found_at(service, f"127.0.0.1:{process.grpc_port}")
    made = held(process, topic)
    service.clock.advance(LEASE.total_seconds() - 1)
    assert service.loop.run_once(KINDS) == 0, "its lease lasts"
    assert condition(service, topic, "Ready") == "Unknown"
    service.clock.advance(2)
    settled(service, topic, "Ready")
    assert made is not None
    assert made.fence.lease_token == 1
    assert held(process, topic) == made


def test_a_worker_that_froze_over_its_lease_is_refused_by_node_and_queue(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    topic = service.topic("frozen")
    # It knows its desired, and has not seen yet that the node has no such topic.
    road.hold_answer(1)
    with worker(service) as frozen, ThreadPoolExecutor(1) as pool:
        passing = pool.submit(frozen.run_once)
        assert road.holding.wait(PATIENCE_SECONDS)
        service.clock.advance(60)
        found_at(service, f"127.0.0.1:{process.grpc_port}")
        patch(service, topic, codec="zstd")
        settled(service, topic, "Ready")
        newest = held(process, topic)
        before = service.get(f"/v1/topics/{topic['id']}")
        road.let_go()
        assert passing.result() == 1
        assert frozen.counters.failures == 1, "the node refused its command"
        assert frozen.counters.leases_lost == 1
    assert newest is not None
    assert (newest.spec.codec, newest.fence.generation) == ("zstd", 2)
    assert held(process, topic) == newest
    assert service.get(f"/v1/topics/{topic['id']}") == before


def test_a_node_that_is_late_or_shows_nothing_loses_no_topic(
    service: Service, process: NodeProcess, veil: NodeVeil
) -> None:
    topics = [service.topic(f"kept-{number}") for number in range(4)]
    for topic in topics:
        settled(service, topic, "Ready")
    before = [held(process, topic) for topic in topics]
    with NodeProxy(process.grpc_port) as road, worker(service, DEADLINE_SECONDS) as impatient:
        found_at(service, road.address)
        road.delay_seconds = 10 * DEADLINE_SECONDS
        for _ in range(3):
            service.clock.advance(3600)
            assert impatient.run_once() == 1
        assert impatient.counters.failures == 3
    assert [held(process, topic) for topic in topics] == before
    found_at(service, veil.address)
    veil.hides = True
    delete(service, topics[-1])
    settled(service, topics[-1], "gone")
    # The node's word counts, and not that it shows nothing.
    told = zip(veil.carried, veil.answers, strict=True)
    assert [answer.deleted for command, answer in told if _deletes(command)][-1]
    assert held(process, topics[-1]) is None
    for _ in range(2):
        service.clock.advance(SHOWN_WITHIN.total_seconds() + 3600)
        service.settle()
    deletions = [each.delete_topic.topic_id for each in veil.carried if _deletes(each)]
    assert set(deletions) == {topics[-1]["id"]}
    veil.hides = False
    for topic, first in zip(topics[:-1], before, strict=False):
        settled(service, topic, "Ready")
        found = held(process, topic)
        assert found is not None
        assert first is not None
        assert found.created_revision == first.created_revision


def test_a_topic_that_went_from_the_node_outside_is_deleted(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    topic = service.topic("outside")
    settled(service, topic, "Ready")
    request = node_pb2.ApplyRequest(
        fence=node_pb2.Fence(db_epoch=1, generation=1, lease_token=1 << 20),
        delete_topic=node_pb2.DeleteTopic(topic_id=topic["id"]),
    )
    wait_until(lambda: process.admin().apply(request).deleted, "the node has let it go")
    assert held(process, topic) is None
    delete(service, topic)
    settled(service, topic, "gone")
    assert held(process, topic) is None


def test_a_deleted_topic_stays_away_after_a_kill_and_commands_that_come_late(
    service: Service, process: NodeProcess, veil: NodeVeil
) -> None:
    topic = service.topic("gone", partitions=2)
    settled(service, topic, "Ready")
    patch(service, topic, codec="zstd")
    settled(service, topic, "Ready")
    delete(service, topic)
    settled(service, topic, "gone")
    process.kill()
    process.start()
    late = [each for each in veil.carried if each.put_topic.topic_id == topic["id"]]
    assert len(late) == 2
    for command in late:
        with pytest.raises(grpc.RpcError) as refused:
            process.admin().apply(command)
        assert refused.value.code() in (
            grpc.StatusCode.ABORTED,
            grpc.StatusCode.FAILED_PRECONDITION,
        )
    # And a control plane that starts again looks at all it knows.
    with worker(service) as restarted:
        restarted.start()
        restarted.stop()
    service.clock.advance(3600)
    service.settle()
    assert held(process, topic) is None


def test_no_call_about_a_paused_topic_reaches_a_node(
    service: Service, process: NodeProcess, veil: NodeVeil
) -> None:
    topic = service.topic("still")
    settled(service, topic, "Ready")
    before = held(process, topic)
    patch(service, topic, paused=True)
    service.settle()
    veil.asked.clear()
    patch(service, topic, codec="zstd", partitions=2)
    for _ in range(3):
        service.settle()
        service.clock.advance(3600)
    service.get(f"/v1/topics/{topic['id']}?live=true")
    assert [each for each in veil.asked if topic["id"] in str(each)] == []
    assert held(process, topic) == before
    patch(service, topic, paused=False)
    settled(service, topic, "Ready")
    found = held(process, topic)
    assert found is not None
    assert (found.spec.codec, len(found.partitions)) == ("zstd", 2)


def test_a_storm_of_throttling_deletes_nothing_and_takes_no_ready_away(
    service: Service, process: NodeProcess, veil: NodeVeil
) -> None:
    topics = [service.topic(f"stormy-{number}") for number in range(3)]
    for topic in topics:
        settled(service, topic, "Ready")
    before = [held(process, topic) for topic in topics]
    service.clock.advance(3600)
    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    veil.refusal = refuse(code, "RESOURCE_EXHAUSTED", retry_after_ms=1000)
    veil.carried.clear()
    for _ in range(STORM):
        while service.loop.run_once(KINDS):
            continue
        assert {condition(service, topic, "Ready") for topic in topics} == {"True"}
        service.clock.advance(1)
    assert veil.carried == []
    veil.refusal = None
    service.clock.advance(BACKOFF_MAX.total_seconds())
    service.settle()
    assert {condition(service, topic, "Synced") for topic in topics} == {"True"}
    assert [held(process, topic) for topic in topics] == before


def found_at(service: Service, address: str) -> None:
    """From now on whoever begins a pass finds the first cluster's node there."""
    node_id = service.first.identity.node_id
    readdress(service.database, node_id=node_id, node_address=address)


def held(process: NodeProcess, topic: Body) -> node_pb2.TopicStatus | None:
    """What the node itself says of a topic; there is one of an id at most."""
    found = [
        each for each in process.admin().describe_node().topics if each.topic_id == topic["id"]
    ]
    assert len(found) <= 1
    return found[0] if found else None


def _deletes(command: node_pb2.ApplyRequest) -> bool:
    return command.HasField("delete_topic")


def condition(service: Service, topic: Body, kind: str) -> str:
    """The status of one condition of a topic."""
    conditions = service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    return str(next(each["status"] for each in conditions if each["type"] == kind))


def settled(service: Service, topic: Body, wanted: str) -> None:
    """Passes of the service's own worker, and its time, until the topic is so or gone."""
    path = f"/v1/topics/{topic['id']}"

    def tried() -> bool:
        service.settle()
        service.clock.advance(2)
        answer = service.client.get(path, headers=service.owner)
        if answer.status_code == 404:
            return wanted == "gone"
        body = answer.json()
        return body["status"]["observed_generation"] == body["generation"] and any(
            (each["type"], each["status"]) == (wanted, "True")
            for each in body["status"]["conditions"]
        )

    wait_until(tried, f"{topic['name']} is {wanted}", PATIENCE_SECONDS)


def patch(service: Service, topic: Body, **spec: object) -> None:
    """Changes members of a topic's spec."""
    body: Body = {"spec": spec}
    answer = service.client.patch(f"/v1/topics/{topic['id']}", json=body, headers=service.owner)
    assert answer.status_code in (200, 202), answer.text


def delete(service: Service, topic: Body) -> None:
    """Wishes a topic gone."""
    path = f"/v1/topics/{topic['id']}"
    headers = {**service.owner, "If-Match": f'"{service.get(path)["etag"]}"'}
    answer = service.client.delete(path, headers=headers)
    assert answer.status_code == 202, answer.text
