"""Nodes that answer late, nothing or no: the spec is reached, and nothing is made twice or lost."""

import copy
from collections.abc import Iterator

import pytest

from api.db.identifiers import new_id
from api.db.tables.topics import Topic
from api.db.tables.work import Work
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.scripted_node import FakeNode, serving, vanish

STORM = 20


@pytest.fixture
def second(service: Service) -> Iterator[FakeNode]:
    """The node of a second cluster, which is a newcomer there and alone."""
    with serving(FakeNode()) as node:
        cluster = service.post("/v1/clusters", {"name": "second"})
        body: Body = {"id": new_id("nd"), "name": "node-1", "spec": {"address": node.address}}
        service.post(f"/v1/clusters/{cluster['id']}/nodes", body)
        yield node


def test_a_cluster_that_always_fails_does_not_keep_a_key_from_the_others(
    service: Service, second: FakeNode
) -> None:
    service.settle()
    service.node.describe.extend([vanish] * STORM)
    created = service.post("/v1/api-keys", {"name": "shop", "spec": {"role": "editor"}})
    for _ in range(3):
        service.settle()
        service.clock.advance(2)
    assert second.keys[created["id"]].active
    assert created["id"] not in service.node.keys
    service.node.describe.clear()
    service.clock.advance(2)
    service.settle()
    assert service.node.keys[created["id"]].active


def test_a_database_that_lost_its_last_commits_does_not_undo_what_the_node_has(
    service: Service,
) -> None:
    topic = service.topic("orders")
    service.settle()
    with service.database.read() as session:
        lost = copy.deepcopy(session.get_one(Topic, topic["id"]).spec)
    patch(service, topic, codec="zstd")
    patch(service, topic, codec="lz4")
    service.settle()
    # What a standby knows that was promoted without the two changes.
    with service.database.write() as session:
        row = session.get_one(Topic, topic["id"])
        row.spec, row.generation, row.revision = lost, 1, 1
        work = session.get_one(Work, ("topic", topic["id"]))
        work.requested_generation, work.lease_token = 1, 1
    service.clock.advance(3600)
    service.loop.run_once(["topic"])
    assert service.node.fenced == 1
    assert service.node.topics[topic["id"]].spec.codec == "lz4"
    assert condition(service, topic, "Synced") == "False"
    for codec in ("zstd", "none", "zstd"):
        patch(service, topic, codec=codec)
    service.settle()
    assert service.node.topics[topic["id"]].spec.codec == "zstd"
    assert condition(service, topic, "Ready") == "True"


def patch(service: Service, topic: Body, **spec: str) -> None:
    """Changes members of a topic's spec."""
    body: Body = {"spec": spec}
    response = service.client.patch(f"/v1/topics/{topic['id']}", json=body, headers=service.owner)
    assert response.status_code == 202, response.text


def condition(service: Service, topic: Body, kind: str) -> str:
    """The status of one condition of a topic."""
    conditions = service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    return str(next(each["status"] for each in conditions if each["type"] == kind))
