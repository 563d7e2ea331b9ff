"""Callers over a real port: what was answered is there to read, an answer that was lost makes
nothing twice, and who waits after a change waits for that change.
"""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

import headrace
from headrace.cli.main import run
from tests.support.builders.control_plane import OFTEN, Body, Service
from tests.support.processes.node_process import NodeProcess
from tests.support.processes.platform import wait_until
from tests.support.proxies.database_proxy import DatabaseProxy
from tests.support.proxies.node_proxy import NodeProxy

HELD_SECONDS = 60.0
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def port(service: Service) -> Iterator[int]:
    """Where the service listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(service.client.app, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        wait_until(lambda: server.started, "it listens")
        yield int(listener.getsockname()[1])
        server.should_exit = True
        thread.join()


@contextmanager
def calling(port: int) -> Iterator[http.client.HTTPConnection]:
    """One connection of a caller that repeats nothing by itself."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        yield connection
    finally:
        connection.close()


def test_what_was_answered_as_made_is_there_to_read_at_once(service: Service, port: int) -> None:
    with calling(port) as connection:
        for number in range(OFTEN):
            status, made = ask(service, connection, "POST", "/v1/streams", {"name": f"s{number}"})
            assert status == 201, made
            assert ask(service, connection, "GET", f"/v1/streams/{made['id']}") == (200, made)


def test_a_create_whose_answer_is_lost_is_made_once_however_it_is_repeated(
    service: Service, port: int, process: NodeProcess, road: NodeProxy
) -> None:
    service.settle()
    with DatabaseProxy(port) as lossy, ThreadPoolExecutor(1) as pool:
        # The SDK repeats with its Idempotency-Key, and never learns that anything was lost.
        lossy.delay_seconds = HELD_SECONDS
        url = f"http://127.0.0.1:{lossy.port}"
        with headrace.connect(
            bootstrap=road.address, key=service.first.token.text, api_url=url
        ) as client:
            creating = pool.submit(client.admin.create_topic, "with-key", wait=False)
            first = made(service, "with-key")
            lossy.delay_seconds = 0.0
            lossy.break_all()
            assert creating.result()["id"] == first["id"]
        # Whoever repeats without one is told which it was that was made.
        lossy.delay_seconds = HELD_SECONDS
        desired = {"name": "without"}
        with calling(lossy.port) as connection:
            losing = pool.submit(ask, service, connection, "POST", "/v1/topics", desired)
            second = made(service, "without")
            lossy.break_all()
            with pytest.raises(ConnectionError):
                losing.result()
        with calling(port) as connection:
            status, problem = ask(service, connection, "POST", "/v1/topics", desired)
            assert (status, problem["code"], problem["existing_id"]) == (
                409, "NAME_TAKEN", second["id"],
            )  # fmt: skip
    wait_until(lambda: both_are_ready(service, first, second), "both are Ready")
    ids = [each.topic_id for each in process.admin().describe_node().topics]
    assert [ids.count(each["id"]) for each in (first, second)] == [1, 1]
    found = {each["id"] for each in service.get("/v1/topics")["items"]}
    assert found == {first["id"], second["id"]}


def test_alter_waits_for_its_own_generation_and_trusts_no_older_ready(
    service: Service,
    port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = service.topic("orders")
    service.settle()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HEADRACE_KEY", service.first.token.text)
    monkeypatch.setenv("HEADRACE_API_URL", f"http://127.0.0.1:{port}")
    alter = ["topic", "alter", "orders", "--partitions"]
    assert run([*alter, "3", "--timeout", "0.3s"]) != 0
    assert "is not Ready for generation 2" in capsys.readouterr().err
    with service.working():
        for count in ("3", "4", "5"):
            assert run([*alter, count]) == 0
            assert len(service.node.topics[topic["id"]].partitions) == int(count)


def ask(
    service: Service,
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Body = None,
) -> tuple[int, Body]:
    """One request, sent once: status and body of its answer."""
    headers = {**service.owner, **({} if body is None else JSON)}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def made(service: Service, name: str) -> Body:
    """The one topic of this name, as soon as it is there."""

    def found() -> list[Body]:
        items = service.get("/v1/topics")["items"]
        return [each for each in items if each["name"] == name]

    wait_until(lambda: bool(found()), f"{name} is made")
    (topic,) = found()
    return topic


def both_are_ready(service: Service, *topics: Body) -> bool:
    """Whether topics are, after a pass and a while."""
    service.settle()
    service.clock.advance(2)
    conditions = [
        each
        for topic in topics
        for each in service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    ]
    return [each["status"] for each in conditions if each["type"] == "Ready"] == ["True", "True"]
