"""A real node behind a road with faults: answers that are lost, late, or never come.

Whatever is lost on the way, the node ends with what was wished, once; and a node that is silent
keeps nobody else waiting.
"""

import time
from collections.abc import Callable

import pytest

from api.api_keys.reconciler import KeyReconciler
from api.bootstrap.seed import readdress
from api.db.identifiers import new_id
from api.node.client import NodeClient
from api.node.failure import NodeFailure
from api.reconcile.loop import Loop
from api.topics.reconciler import TopicReconciler
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.node_process import NodeProcess
from tests.support.processes.platform import wait_until
from tests.support.proxies.node_proxy import NodeProxy
from tests.support.proxies.node_veil import veiled

SILENT_TOPICS = 40
WORKERS = 4
DEADLINE_SECONDS = 1.0
# If three of the four workers waited for it all the time, 40 objects would take 13 seconds.
PROMPT_SECONDS = 9.0


def settled(service: Service, condition: Callable[[], bool]) -> None:
    """Passes, each second of the service's own time, until it is so."""

    def tried() -> bool:
        service.settle()
        service.clock.advance(2)
        return condition()

    wait_until(tried, "what was wished is so", 120)


class Condition:
    """Whether an object has come to where it shall be."""

    def __init__(self, service: Service, path: str, wanted: str) -> None:
        self._service, self._path, self._wanted = service, path, wanted

    def __call__(self) -> bool:
        answer = self._service.client.get(self._path, headers=self._service.owner)
        if self._wanted == "gone":
            return answer.status_code == 404
        status = answer.json()["status"]
        return any(
            each["type"] == self._wanted and each["status"] == "True"
            for each in status["conditions"]
        )


def held(process: NodeProcess, topic_id: str) -> list[str]:
    """The topics of this id on the node."""
    return [
        each.topic_id
        for each in process.admin().describe_node().topics
        if each.topic_id == topic_id
    ]


def test_a_topic_is_made_once_whichever_answer_is_lost(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    service.settle()
    for number in (1, 2, 3):
        lost = road.lost
        road.lose_answer(number)
        topic = service.topic(f"lost-{number}", partitions=2)
        settled(service, Condition(service, f"/v1/topics/{topic['id']}", "Ready"))
        assert held(process, topic["id"]) == [topic["id"]]
        assert road.lost == lost + 1, f"answer {number} was to be lost on the way"


def test_a_node_that_does_not_show_what_it_just_took_is_not_told_twice(
    service: Service, process: NodeProcess
) -> None:
    service.settings.node.admin_key_file.write_text(process.node_key)
    with veiled(f"127.0.0.1:{process.grpc_port}") as veil:
        node_id = service.first.identity.node_id
        readdress(service.database, node_id=node_id, node_address=veil.address)
        veil.hides = True
        topic = service.topic("late")
        for _ in range(10):
            service.settle()
            service.clock.advance(0.5)
        assert veil.puts == [topic["id"]], "for 5 s it says that there is none"
        veil.hides = False
        settled(service, Condition(service, f"/v1/topics/{topic['id']}", "Ready"))
        assert veil.puts == [topic["id"]]
        assert held(process, topic["id"]) == [topic["id"]]


def test_a_topic_that_is_half_made_goes_whichever_answer_was_lost(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    service.settle()
    # Look, put, look: of the first create the node never heard, of the others it did.
    for number in (1, 2, 3):
        lost = road.lost
        road.lose_answer(number)
        topic = service.topic(f"half-{number}")
        service.settle()
        assert road.lost == lost + 1
        path = f"/v1/topics/{topic['id']}"
        etag = service.get(path)["etag"]
        road.lose_answer(number)
        deleted = service.client.delete(path, headers={**service.owner, "If-Match": f'"{etag}"'})
        assert deleted.status_code == 202, deleted.text
        settled(service, Condition(service, path, "gone"))
        assert held(process, topic["id"]) == []
        assert road.lost == lost + 2


def test_a_key_reaches_the_cluster_that_answers_while_another_is_silent(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    second_cluster(service, process)
    road.silent = True
    nodes = NodeClient(service.nodes, deadline_seconds=DEADLINE_SECONDS)
    loop = Loop(service.database, {"key": KeyReconciler(service.database, nodes)})
    key: Body = service.post("/v1/api-keys", {"name": "shop", "spec": {"role": "editor"}})

    def known() -> bool:
        loop.run_once(["key"])
        service.clock.advance(2)
        return any(
            each.key_id == key["id"] and each.active
            for each in process.admin().describe_node().keys
        )

    wait_until(known, "the key is at the cluster that answers", 120)


def test_a_silent_node_keeps_no_other_object_waiting(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    cluster = second_cluster(service, process)
    streams = {
        name: service.post("/v1/streams", {"name": name, "cluster_id": place})["id"]
        for name, place in (("silent", service.first.identity.cluster_id), ("well", cluster))
    }
    road.silent = True
    for number in range(SILENT_TOPICS):
        service.post("/v1/topics", {"name": f"t{number}", "stream_id": streams["silent"]})
    well: Body = service.post("/v1/topics", {"name": "well", "stream_id": streams["well"]})
    nodes = NodeClient(service.nodes, deadline_seconds=DEADLINE_SECONDS)
    reconcilers = {"topic": TopicReconciler(service.database, nodes)}
    loop = Loop(service.database, reconcilers, pools=((("topic",), WORKERS),))
    service.clock.advance(2)
    loop.start()
    try:
        ready = Condition(service, f"/v1/topics/{well['id']}", "Ready")
        wait_until(ready, "the topic of the node that answers", PROMPT_SECONDS)
    finally:
        loop.stop()


def test_a_node_that_was_silent_is_found_again_when_it_answers(
    service: Service, process: NodeProcess, road: NodeProxy
) -> None:
    nodes = NodeClient(service.nodes, deadline_seconds=DEADLINE_SECONDS)
    road.silent = True
    for _ in range(3):
        began = time.monotonic()
        with pytest.raises(NodeFailure, match="does not answer"):
            nodes.describe([road.address])
    assert time.monotonic() - began < DEADLINE_SECONDS / 2, "nobody waits for it again at once"
    road.silent = False
    # What it was sent in its silence is lost: those connections say nothing any more.
    road.break_all()

    def answers() -> bool:
        try:
            nodes.describe([road.address])
        except NodeFailure:
            return False
        return True

    wait_until(answers, "the node is asked again", 120)


def second_cluster(service: Service, process: NodeProcess) -> str:
    """A cluster whose node is the same one, by its own address."""
    cluster: Body = service.post("/v1/clusters", {"name": "second"})
    address = f"127.0.0.1:{process.grpc_port}"
    body: Body = {"id": new_id("nd"), "name": "node-1", "spec": {"address": address}}
    service.post(f"/v1/clusters/{cluster['id']}/nodes", body)
    return str(cluster["id"])
