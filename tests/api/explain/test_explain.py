"""Explanations: every object says why it is as it is, to those who may read it and nobody else."""

from datetime import UTC, datetime

import grpc
import pytest

from api.auth.permissions import ROLES
from api.explain.subjects import KINDS
from api.explain.summary import State, sentence
from api.http.resource import ConditionBody
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.scripted_node import refuse, vanish

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOT_READY = (
    "The stream s is not ready: Busy (wait). The next attempt is at 2026-03-01T12:00:00.000000Z."
)
WAITING = "Generation 2 of the stream s waits for a worker; the last reconciled generation is 1."
WORDS = sorted(kind.word for kind in KINDS.values())


def test_a_topic_that_is_ready_says_what_was_asked_done_and_answered(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    found = _explain(service, topic["id"])
    assert found["object"] == {"kind": "topic", "id": topic["id"], "name": "default/orders"}
    assert found["summary"] == "The topic default/orders is ready: generation 1 is in effect."
    what = [each["what"] for each in found["steps"]]
    assert what[0] == "topics.create"
    assert "PutTopic with fence 1.1.1" in what
    put = found["steps"][what.index("PutTopic with fence 1.1.1")]
    assert put["why"] == "not on the cluster yet"
    assert put["next"].startswith("the cluster answered: applied, metadata op ")
    assert "Ready became True" in what
    assert (what[-1], found["steps"][-1]["next"]) == (
        "the next attempt",
        "its commands carry fence 1.1.2",
    )
    assert [each["at"] for each in found["steps"]] == sorted(each["at"] for each in found["steps"])
    assert {each["type"] for each in found["conditions"]} >= {"Ready", "Stalled"}
    assert [(each["kind"], each["state"]) for each in found["operations"]] == [
        ("create_topic", "SUCCEEDED")
    ]


def test_a_change_says_which_member_the_cluster_has_otherwise(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    patch = {"spec": {"codec": "zstd", "partitions": 3}}
    service.client.patch(f"/v1/topics/{topic['id']}", json=patch, headers=service.owner)
    waiting = _explain(service, topic["id"])
    assert "Generation 2" in waiting["summary"]
    assert waiting["steps"][-1]["why"] == "the spec changed"
    service.settle()
    whys = [each["why"] for each in _explain(service, topic["id"])["steps"]]
    assert "the cluster has another partitions, codec" in whys


def test_a_topic_that_fails_says_its_last_error_and_when_it_is_tried_again(
    service: Service,
) -> None:
    service.settle()
    topic = service.topic("orders")
    service.node.before.append(refuse(grpc.StatusCode.INTERNAL, "DISK_SICK"))
    service.loop.run_once(["topic"])
    found = _explain(service, topic["id"])
    assert found["summary"].startswith("The topic default/orders is not ready: DiskSick")
    assert "The next attempt is at 2026-03-01T12:00:0" in found["summary"]
    last = found["steps"][-1]
    assert last["what"] == "the next attempt after 1 failed attempts"
    assert last["why"] == "DISK_SICK: disk_sick"


def test_a_topic_that_goes_and_is_gone_says_so_by_id_and_by_name(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.node.closing_polls = 3
    headers = {**service.owner, "If-Match": '"r1"'}
    service.client.delete(f"/v1/topics/{topic['id']}", headers=headers)
    service.loop.run_once(["topic"])
    going = _explain(service, "topic/orders")
    assert "has been in deletion since 2026-03-01T12:00:00.000000Z: Closing (" in going["summary"]
    for _ in range(4):
        service.clock.advance(1)
        service.settle()
    for name in (topic["id"], "topic/orders", "topic/default/orders"):
        gone = _explain(service, name)
        assert gone["object"]["id"] == topic["id"]
        assert "was removed at" in gone["summary"]
        sent = [each for each in gone["steps"] if each["what"].startswith("DeleteTopic")]
        assert [each["next"].split(",")[0] for each in sent] == [
            "the cluster answered: applied",
            "the cluster answered: gone",
        ]
    again = service.topic("orders")
    assert _explain(service, "topic/orders")["object"]["id"] == again["id"]


def test_a_worker_at_work_is_named_with_its_lease(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    seen: list[Body] = []
    service.node.on_apply = lambda: seen.append(_explain(service, topic["id"])["steps"][-1])
    service.settle()
    assert seen[0]["what"].startswith("worker ")


@pytest.mark.parametrize("word", WORDS)
def test_every_kind_is_explained_by_id_and_by_name(service: Service, word: str) -> None:
    objects = _objects(service)
    object_id, name = objects[word]
    for text in (object_id, f"{word}/{name}"):
        found = _explain(service, text)
        assert (found["object"]["kind"], found["object"]["id"]) == (word, object_id)
        assert found["summary"].endswith(".")
        assert all(each["what"] and each["why"] for each in found["steps"])


@pytest.mark.parametrize("word", WORDS)
def test_another_organization_is_told_of_no_object_but_the_shared_cluster(
    service: Service, other: tuple[str, dict[str, str]], word: str
) -> None:
    object_id, _ = _objects(service)[word]
    response = service.client.get(f"/v1/explain?object={object_id}", headers=other[1])
    expected = 200 if word == "cluster" else 404
    assert response.status_code == expected, response.text
    assert service.first.owner_key_id not in response.text
    assert "node-1" not in response.text


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_is_told_of_the_kinds_it_may_read(service: Service, role: str) -> None:
    objects, header = _objects(service), service.key(role)
    for kind in KINDS.values():
        object_id = objects[kind.word][0]
        response = service.client.get(f"/v1/explain?object={object_id}", headers=header)
        allowed = kind.permission in ROLES[role]
        assert response.status_code == (200 if allowed else 403), (kind.word, response.text)
        assert allowed or response.json()["permission"] == kind.permission


def test_a_key_of_a_project_is_told_of_that_project_only(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})
    header = service.key("owner", project_id=project["id"])
    outside = service.topic("orders")
    inside = service.post("/v1/topics", {"name": "orders"}, header)
    found = service.get("/v1/explain?object=topic/orders", header)
    assert found["object"]["id"] == inside["id"]
    for text in (outside["id"], "project/default"):
        response = service.client.get(f"/v1/explain?object={text}", headers=header)
        assert response.status_code == 404


def test_a_name_in_two_other_projects_must_be_told_apart_by_id(service: Service) -> None:
    for name in ("sales", "support"):
        project = service.post("/v1/projects", {"name": name})
        service.post("/v1/streams", {"name": "clicks", "project_id": project["id"]})
    response = service.client.get("/v1/explain?object=stream/clicks", headers=service.owner)
    assert response.status_code == 400
    assert response.json()["errors"][0]["code"] == "AMBIGUOUS"
    mine = service.post("/v1/streams", {"name": "clicks"})
    assert _explain(service, "stream/clicks")["object"]["id"] == mine["id"]


@pytest.mark.parametrize("text", ["orders", "nonsense/orders", "topic/", "/", "xx_1"])
def test_a_text_that_is_no_object_is_refused_with_what_would_be_one(
    service: Service, text: str
) -> None:
    response = service.client.get(f"/v1/explain?object={text}", headers=service.owner)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
    assert "topic" in response.json()["hint"]


@pytest.mark.parametrize("text", ["tp_0", "topic/none", "topic/none/orders", "operation/op_0"])
def test_what_is_not_there_is_not_found(service: Service, text: str) -> None:
    response = service.client.get(f"/v1/explain?object={text}", headers=service.owner)
    assert response.status_code == 404


def test_a_node_is_asked_and_one_that_is_away_is_called_so(service: Service) -> None:
    node_id, _ = _objects(service)["node"]
    asked = _explain(service, node_id)["steps"][-1]
    assert asked["next"].startswith("it answered: cluster")
    service.node.describe = [vanish]
    assert "NODE_UNREACHABLE" in _explain(service, node_id)["steps"][-1]["next"]


def test_a_revoked_key_says_that_it_is(service: Service) -> None:
    service.key("viewer")
    service.settle()
    assert "is ready" in _explain(service, "key/viewer-0")["summary"]
    path = f"/v1/api-keys/{service.keys['viewer-0']}"
    service.client.delete(path, headers=service.owner)
    service.settle()
    found = _explain(service, "key/viewer-0")
    assert found["summary"] == "The key viewer-0 is revoked on every cluster."
    assert "RevokeKey with fence 1.2.2" in [each["what"] for each in found["steps"]]


def test_the_name_of_a_key_means_one_that_the_caller_sees(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})
    header = service.key("owner", project_id=project["id"])
    own = service.post("/v1/api-keys", {"name": "ci", "spec": {"role": "viewer"}}, header)
    service.client.delete(f"/v1/api-keys/{own['id']}", headers=header)
    outside = service.post("/v1/api-keys", {"name": "ci", "spec": {"role": "viewer"}})
    found = service.get("/v1/explain?object=key/ci", header)
    assert found["object"]["id"] == own["id"]
    assert _explain(service, "key/ci")["object"]["id"] == outside["id"]


def test_an_explanation_never_holds_a_secret(service: Service) -> None:
    created = service.post("/v1/api-keys", {"name": "k", "spec": {"role": "viewer"}})
    service.settle()
    text = service.client.get(f"/v1/explain?object={created['id']}", headers=service.owner).text
    assert created["secret"] not in text
    assert created["secret"].split("_")[3] not in text


@pytest.mark.parametrize(
    ("conditions", "generation", "expected"),
    [
        ([], 1, "The stream s exists and needs no reconciliation."),
        ([("Ready", "True", "Done", "")], 1, "The stream s is ready: generation 1 is in effect."),
        (
            [("Ready", "False", "Busy", "wait.")],
            1,
            NOT_READY,
        ),
        (
            [("Ready", "True", "Done", "")],
            2,
            WAITING,
        ),
    ],
)
def test_a_summary_is_one_sentence(
    conditions: list[tuple[str, str, str, str]], generation: int, expected: str
) -> None:
    state = State(
        subject="stream s",
        generation=generation,
        observed_generation=1,
        conditions=[
            ConditionBody(
                type=type_,
                status=status,
                reason=reason,
                message=message,
                observed_generation=1,
                last_transition_at=AT,
            )
            for type_, status, reason, message in conditions
        ],
        deleted_at=None,
        purged_at=None,
        due_at=AT,
    )
    assert sentence(state) == expected


def _explain(service: Service, text: str) -> Body:
    return service.get(f"/v1/explain?object={text}")


def _objects(service: Service) -> dict[str, tuple[str, str]]:
    """An object of every kind: its id, and how it is called after its kind."""
    topic = service.topic("orders")
    hold = service.hold(topic)
    key = service.post("/v1/api-keys", {"name": "object", "spec": {"role": "viewer"}})
    run = service.post("/v1/report-runs", {"kind": "usage"})
    operation = service.get("/v1/operations")["items"][0]
    node = service.get(f"/v1/clusters/{topic['cluster_id']}/nodes")["items"][0]
    return {
        "organization": (topic["organization_id"], "default"),
        "project": (topic["project_id"], "default"),
        "stream": (topic["stream_id"], "default"),
        "topic": (topic["id"], "orders"),
        "hold": (hold["id"], hold["id"]),
        "key": (key["id"], "object"),
        "cluster": (topic["cluster_id"], "local"),
        "node": (node["id"], node["name"]),
        "operation": (operation["id"], operation["id"]),
        "report-run": (run["id"], run["id"]),
    }
