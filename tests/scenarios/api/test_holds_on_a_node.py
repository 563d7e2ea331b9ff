"""Holds and purges from REST down to the logs of a real node, and what its readers are told."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from api.bootstrap.seed import readdress
from api.node.messages import instant
from headrace import codec
from headrace.wire import stream_pb2
from tests.support.builders.control_plane import Body, Service
from tests.support.builders.seeds import seed_of
from tests.support.processes.node_process import Client, NodeProcess
from tests.support.processes.platform import wait_until

MIB = 1 << 20
VALUE = bytes(range(256)) * 1024  # a quarter of a MiB


@pytest.fixture
def node_process(service: Service, tmp_path: Path) -> Iterator[NodeProcess]:
    """A real node in the place of the scripted one."""
    folder = tmp_path / "real"
    folder.mkdir()
    with NodeProcess(folder) as running:
        service.settings.node.admin_key_file.write_text(running.node_key)
        address = f"127.0.0.1:{running.grpc_port}"
        readdress(service.database, node_id=service.first.identity.node_id, node_address=address)
        yield running


@pytest.mark.parametrize("installation", ["sqlite"], indirect=True)
def test_what_is_held_outlives_its_policy_and_purges_and_a_release_lets_it_go(
    service: Service, node_process: NodeProcess
) -> None:
    topic, client, place = _filled(service, node_process)
    _tells_what_a_shorter_retention_lets_go(service, topic, client, place)
    hold = service.hold(topic)
    _until(service, lambda: _hold(service, hold)["state"] == "ACTIVE")
    spec = {"spec": {"retention_bytes": str(2 * MIB)}}
    path = f"/v1/topics/{topic['id']}"
    headers = {**service.owner, "If-Match": '"r1"'}
    assert service.client.patch(path, json=spec, headers=headers).status_code == 202
    _until(service, lambda: _hold(service, hold)["status"]["partitions"][0]["held_bytes"] != "0")
    assert client.fetch(place, 0, 0).status == stream_pb2.OK
    purge = {"partitions": [{"index": 0, "before_offset": "3"}]}
    headers["If-Match"] = '"r2"'
    for refused in (
        service.client.post(f"{path}:purge", json=purge, headers=headers),
        service.client.delete(path, headers=headers),
        service.client.delete(f"{path}?force=true&reason=lost", headers=headers),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "TOPIC_HELD")
    released = service.client.delete(
        f"/v1/legal-holds/{hold['id']}", headers={**service.owner, "If-Match": '"r1"'}
    )
    assert released.status_code == 202
    _until(service, lambda: _hold(service, hold)["state"] == "RELEASED")
    # Trimmed again: by the policy, and then by a purge of the rest.
    _until(service, lambda: client.fetch(place, 0, 0).status == stream_pb2.TRUNCATED)
    end = service.get(f"{path}?live=true")["status"]["partitions"][0]["end_offset"]
    purge = {"partitions": [{"index": 0, "before_offset": end}]}
    accepted = service.client.post(f"{path}:purge", json=purge, headers=headers)
    assert accepted.status_code == 202, accepted.text
    _until(service, lambda: str(client.fetch(place, 0, 0).log_start) == end)
    operation = service.get(f"/v1/operations/{accepted.headers['Operation-Id']}")
    assert operation["state"] == "SUCCEEDED"


def _tells_what_a_shorter_retention_lets_go(
    service: Service, topic: Body, client: Client, place: stream_pb2.Topic
) -> None:
    """The logs are asked: where a time lies, and how large they are."""
    seventh = next(codec.batches(client.fetch(place, 0, 7).batches, seed_of(place, 0)))
    appended = seventh.append_time_us
    service.clock.moment = instant(appended) + timedelta(hours=1)
    path = f"/v1/topics/{topic['id']}?dry_run=true"
    headers = {**service.owner, "If-Match": '"r1"'}
    told = []
    for limit in ({"retention_ms": "3600000"}, {"retention_bytes": str(2 * MIB)}):
        answer = service.client.patch(path, json={"spec": limit}, headers=headers)
        told.append(answer.json()["plan"]["data_loss"]["records"])
    assert told == ["7", "4"]


def _filled(service: Service, node: NodeProcess) -> tuple[Body, Client, stream_pb2.Topic]:
    """A topic of twelve records of a quarter of a MiB, and a client of the node."""
    topic = service.topic("orders", segment_bytes=str(MIB))
    _until(service, lambda: _ready(service, topic))
    client = node.client(service.first.token.text)
    place = client.topic("orders")
    for sequence in range(12):
        client.produce(place, 0, [VALUE], sequence=sequence)
    return topic, client, place


def _hold(service: Service, hold: Body) -> Body:
    return service.get(f"/v1/legal-holds/{hold['id']}")


def _ready(service: Service, topic: Body) -> bool:
    conditions = service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def _until(service: Service, condition: Callable[[], bool]) -> None:
    """Passes, and time between them, until it is so."""

    def looked() -> bool:
        service.settle()
        service.clock.advance(700)
        return condition()

    wait_until(looked, "what was wished is so", 120)
