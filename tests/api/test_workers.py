"""Workers inside the API: a spec is applied while the caller waits."""

from collections.abc import Iterator
from functools import partial

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.db.database import Database
from api.node.addresses import registrations
from api.node.pool import NodePool
from api.workers import Workers
from tests.support.builders.control_plane import Service
from tests.support.processes.scripted_node import vanish


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    """The same control plane with the wall clock and its workers running."""
    database = Database(service.settings.database.url)
    nodes = NodePool(service.settings.node.admin_key_file, partial(registrations, database))
    workers = Workers(service.settings, database, nodes, "http://api.test")
    with nodes, TestClient(create_app(service.settings, database, nodes, workers)) as client:
        yield client
    database.close()


def test_a_create_that_waits_answers_201_when_the_topic_is_ready(
    client: TestClient, service: Service
) -> None:
    response = client.post("/v1/topics?wait=30s", json={"name": "orders"}, headers=service.owner)
    assert response.status_code == 201
    ready = next(
        each for each in response.json()["status"]["conditions"] if each["type"] == "Ready"
    )
    assert ready["status"] == "True"
    assert response.headers["Operation-Id"]
    assert response.headers["ETag"] == '"r1"'


def test_a_create_that_waits_outlasts_a_node_that_comes_back(
    client: TestClient, service: Service
) -> None:
    service.node.before.append(vanish)
    response = client.post("/v1/topics?wait=30s", json={"name": "orders"}, headers=service.owner)
    assert response.status_code == 201
