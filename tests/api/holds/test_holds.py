"""Legal holds: in force when the cluster says so and not before, and above every deletion."""

from datetime import timedelta

import grpc
import pytest
from httpx2 import Response
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue as Json
from pydantic import ValidationError

from api.auth.permissions import ROLES
from api.holds.reconciler import Desired, HoldObservation, evaluate, missing, plan
from api.holds.schemas import LegalHoldCreate
from api.holds.service import HOLDS_OF_TOPIC_MAX
from api.node.client import NodeClient
from api.node.failure import NodeFailure
from api.node.fence import Fence
from dataplane.wire import node_pb2
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.scripted_node import refuse, vanish


def test_a_hold_is_active_only_when_every_partition_says_so(service: Service) -> None:
    topic = service.topic("orders", partitions=3)
    service.settle()
    service.node.deaf = {1, 2}
    response = _post(service, topic)
    assert response.status_code == 202
    made = response.json()
    assert (made["state"], made["etag"], made["topic"]) == ("PROPAGATING", "r1", "default/orders")
    assert response.headers["Location"] == f"/v1/legal-holds/{made['id']}"
    service.loop.run_once(["hold"])
    found = _get(service, made)
    assert (found["state"], found["status"]["missing_partitions"]) == ("PROPAGATING", [1, 2])
    assert _condition(found, "Held") == ("False", "Propagating")
    assert _condition(found, "Ready") == ("False", "Propagating")
    assert "activated_at" not in found
    operation = f"/v1/operations/{response.headers['Operation-Id']}"
    assert service.get(operation)["state"] == "PENDING"
    service.node.deaf.clear()
    service.clock.advance(1)
    service.settle()
    found = _get(service, made)
    assert (found["state"], found["status"]["missing_partitions"]) == ("ACTIVE", [])
    assert found["activated_at"] == "2026-03-01T12:00:01.000000Z"
    assert _condition(found, "Held") == ("True", "Confirmed")
    assert service.get(operation)["state"] == "SUCCEEDED"
    commands = [each.WhichOneof("command") for each in service.node.applied]
    assert commands.count("put_hold") == 1, "a hold that waits is not put again"


def test_a_hold_on_a_topic_that_grew_is_propagating_until_the_new_partitions_know(
    service: Service,
) -> None:
    topic, hold = _held(service)
    service.client.patch(
        f"/v1/topics/{topic['id']}", json={"spec": {"partitions": 2}}, headers=service.owner
    )
    service.node.deaf = {1}
    service.settle()
    grown = _get(service, hold)
    assert (grown["state"], grown["status"]["missing_partitions"]) == ("PROPAGATING", [1])
    service.node.deaf.clear()
    service.clock.advance(900)
    service.settle()
    assert _get(service, hold)["state"] == "ACTIVE"
    assert _get(service, hold)["activated_at"] == hold["activated_at"]


def test_a_release_demands_the_present_etag_and_is_for_ever(service: Service) -> None:
    topic, hold = _held(service)
    path = f"/v1/legal-holds/{hold['id']}"
    without = service.client.delete(path, headers=service.owner)
    assert (without.status_code, without.json()["code"]) == (428, "PRECONDITION_REQUIRED")
    stale = service.client.delete(path, headers={**service.owner, "If-Match": '"r7"'})
    assert (stale.status_code, stale.json()["etag"]) == (412, "r1")
    dry = _release(service, hold, "?dry_run=true")
    assert dry.json()["plan"] == {"data_loss": {"bytes": "0"}, "warnings": []}
    assert _get(service, hold)["state"] == "ACTIVE"
    response = _release(service, hold)
    body = response.json()
    assert (response.status_code, body["state"], body["etag"]) == (202, "RELEASING", "r2")
    assert body["released_by"] == service.first.owner_key_id
    again = _release(service, hold)
    assert (again.status_code, again.json()) == (202, body)
    assert again.headers["Operation-Id"] == response.headers["Operation-Id"]
    service.settle()
    done = _get(service, hold)
    assert (done["state"], _condition(done, "Held")) == ("RELEASED", ("False", "Released"))
    assert done["released_at"] == "2026-03-01T12:00:00.000000Z"
    assert _release(service, hold).status_code == 200
    assert _delete(service, "topics", topic).status_code == 202


@pytest.mark.parametrize("query", ["", "?force=true&reason=lost"])
@pytest.mark.parametrize("known", [False, True])
def test_nothing_deletes_what_is_held_and_the_refusal_names_the_hold(
    service: Service, query: str, known: bool
) -> None:
    topic = service.topic("orders")
    hold = service.hold(topic)
    if known:
        service.settle()
    objects = {
        "topics": topic,
        "streams": service.get(f"/v1/streams/{topic['stream_id']}"),
        "projects": service.get(f"/v1/projects/{topic['project_id']}"),
    }
    for collection, found in objects.items():
        more = "" if collection == "topics" else ("&" if query else "?") + "cascade=true"
        refused = _delete(service, collection, found, query + more)
        assert (refused.status_code, refused.json()["code"]) == (409, "TOPIC_HELD"), collection
        assert refused.json()["holds"] == [hold["id"]]
    assert service.node.deleted == {}
    assert "deleted_at" not in service.get(f"/v1/topics/{topic['id']}")


def test_a_topic_that_is_marked_while_its_hold_is_released_goes_once_the_cluster_knows(
    service: Service,
) -> None:
    topic, hold = _held(service)
    _release(service, hold)
    assert _delete(service, "topics", topic).status_code == 202
    service.loop.run_once(["topic"])
    going = service.get(f"/v1/topics/{topic['id']}")
    assert _condition(going, "Deleting") == ("True", "TopicHeld")
    service.clock.advance(1)
    service.settle()
    assert service.node.topics == {}
    assert _get(service, hold)["state"] == "RELEASED"
    late = _post(service, topic, "C-2")
    assert (late.status_code, late.json()["code"]) == (404, "TOPIC_NOT_FOUND")


def test_a_hold_that_never_reached_a_cluster_ends_with_its_topic(service: Service) -> None:
    topic = service.topic("orders")
    hold = service.hold(topic)
    _release(service, hold)
    _delete(service, "topics", topic)
    service.loop.run_once(["topic"])
    service.clock.advance(60)
    service.settle()
    assert _get(service, hold)["state"] == "RELEASED"
    assert service.node.holds == {}


def test_a_topic_that_is_being_deleted_takes_no_hold(service: Service) -> None:
    topic = service.topic("orders")
    _delete(service, "topics", topic)
    refused = _post(service, topic)
    assert (refused.status_code, refused.json()["code"]) == (409, "BEING_DELETED")


def test_a_delayed_put_of_a_worker_that_slept_changes_nothing_after_the_release(
    service: Service,
) -> None:
    topic = service.topic("orders")
    service.settle()
    hold = service.hold(topic)
    service.settle()
    stale = next(each for each in service.node.applied if each.WhichOneof("command") == "put_hold")
    _release(service, hold)
    service.settle()
    fence = Fence(stale.fence.db_epoch, stale.fence.generation, stale.fence.lease_token)
    with pytest.raises(NodeFailure, match="FENCED"):
        NodeClient(service.nodes).put_hold([service.node.address], fence, stale.put_hold)
    assert not service.node.holds[hold["id"]].active


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_command_whose_way_or_answer_was_lost_is_found_or_repeated(
    service: Service, lost: str
) -> None:
    topic = service.topic("orders")
    service.settle()
    getattr(service.node, lost).append(vanish)
    hold = service.hold(topic)
    for _ in range(3):
        service.settle()
        service.clock.advance(2)
    assert _get(service, hold)["state"] == "ACTIVE"


def test_a_cluster_that_is_away_leaves_the_hold_propagating_and_says_so(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.node.describe.extend([vanish] * 2)
    hold = service.hold(topic)
    service.settle()
    found = _get(service, hold)
    assert (found["state"], _condition(found, "Ready")) == (
        "PROPAGATING",
        ("Unknown", "NodeUnreachable"),
    )
    service.clock.advance(5)
    service.settle()
    service.clock.advance(5)
    service.settle()
    assert _get(service, hold)["state"] == "ACTIVE"


def test_a_refusal_of_the_cluster_stalls_the_hold(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    hold = service.hold(topic)
    service.node.before.append(refuse(grpc.StatusCode.FAILED_PRECONDITION, "HOLD_RELEASED"))
    service.settle()
    assert _condition(_get(service, hold), "Stalled") == ("True", "HoldReleased")
    assert _get(service, hold)["state"] == "PROPAGATING"


def test_a_hold_waits_for_a_topic_that_the_cluster_has_not_yet(service: Service) -> None:
    topic = service.topic("orders")
    hold = service.hold(topic, partition=0, from_offset="7")
    service.loop.run_once(["hold"])
    waiting = _get(service, hold)
    assert _condition(waiting, "Ready") == ("False", "Propagating")
    service.clock.advance(1)
    service.settle()
    service.clock.advance(1)
    service.settle()
    found = _get(service, hold)
    assert (found["state"], found["partition"], found["from_offset"]) == ("ACTIVE", 0, "7")
    assert service.node.holds[hold["id"]].from_offset == 7
    assert found["status"]["partitions"] == [
        {"index": 0, "missing": False, "held_from": "7", "held_bytes": "0"}
    ]


WRONG: list[tuple[dict[str, Json], str]] = [
    ({"case_id": ""}, "#/case_id"),
    ({"reason": " "}, "#/reason"),
    ({"reason": "a\nb"}, "#/reason"),
    ({"case_id": "a\n"}, "#/case_id"),
    ({"partition": 1}, "#/partition"),
    ({"partition": -1}, "#/partition"),
    ({"partition": True}, "#/partition"),
    ({"from_offset": "-1"}, "#/from_offset"),
    ({"state": "ACTIVE"}, "#/state"),
]


@pytest.mark.parametrize(
    "text", ["\u200b", "\ufeff", "\u00ad\u00ad", "\u2800", " \u3164 ", "\u180e", "\u200d\ufe0f"]
)
def test_a_case_or_a_reason_of_invisible_characters_is_refused(text: str) -> None:
    good: dict[str, Json] = {"topic_id": "tp_1", "case_id": "C", "reason": "r"}
    for member in ("case_id", "reason"):
        with pytest.raises(ValidationError, match="text that can be seen"):
            LegalHoldCreate.model_validate({**good, member: text})
        # They may stand in a text.
        LegalHoldCreate.model_validate({**good, member: f"a{text}b".replace(" ", "")})


def test_a_wrong_member_is_pointed_at(service: Service) -> None:
    good: dict[str, Json] = {
        "topic_id": service.topic("orders")["id"], "case_id": "C", "reason": "r",
    }  # fmt: skip
    for member, pointer in WRONG:
        refused = service.client.post(
            "/v1/legal-holds", json={**good, **member}, headers=service.owner
        )
        assert refused.status_code == 400, refused.text
        assert [each["pointer"] for each in refused.json()["errors"]] == [pointer]
    for name in good:
        short = {key: value for key, value in good.items() if key != name}
        refused = service.client.post("/v1/legal-holds", json=short, headers=service.owner)
        assert refused.status_code == 400
    assert service.get("/v1/legal-holds")["items"] == []


def test_an_offset_of_a_topic_with_several_partitions_needs_its_partition(
    service: Service,
) -> None:
    topic = service.topic("orders", partitions=2)
    refused = _post(service, topic, from_offset="3")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (400, "NEEDS_PARTITION")


def test_one_case_holds_one_thing_once_and_a_topic_has_a_bounded_number(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, hold = _held(service)
    twice = _post(service, topic)
    assert (twice.status_code, twice.json()["code"]) == (409, "HOLD_EXISTS")
    assert twice.json()["existing_id"] == hold["id"]
    assert HOLDS_OF_TOPIC_MAX == 256
    monkeypatch.setattr("api.holds.service.HOLDS_OF_TOPIC_MAX", 2)
    service.hold(topic, "C-2")
    full = _post(service, topic, "C-3")
    assert (full.status_code, full.json()["code"]) == (409, "TOO_MANY_HOLDS")


def test_a_repetition_with_its_key_is_one_hold_and_a_dry_run_is_none(service: Service) -> None:
    topic = service.topic("orders")
    desired = {"topic_id": topic["id"], "case_id": "C-1", "reason": "a suit"}
    dry = service.client.post("/v1/legal-holds?dry_run=true", json=desired, headers=service.owner)
    assert (dry.status_code, dry.json()["dry_run"], "id" in dry.json()) == (200, True, False)
    assert service.get("/v1/legal-holds")["items"] == []
    header = {**service.owner, "Idempotency-Key": "k" * 16}
    first = service.client.post("/v1/legal-holds", json=desired, headers=header)
    again = service.client.post("/v1/legal-holds", json=desired, headers=header)
    assert (first.status_code, again.json()) == (202, first.json())
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(service.get("/v1/legal-holds")["items"]) == 1


def test_holds_are_listed_by_topic_case_and_state_and_audited(service: Service) -> None:
    topic, hold = _held(service)
    other = service.topic("other")
    second = service.hold(other, "C-2")
    _release(service, hold)
    for query, expected in (
        ("", [hold["id"], second["id"]]),
        (f"?topic_id={topic['id']}", [hold["id"]]),
        ("?case_id=C-2", [second["id"]]),
        ("?state=RELEASING", [hold["id"]]),
        ("?state=RELEASED", []),
    ):
        items = service.get(f"/v1/legal-holds{query}")["items"]
        assert [each["id"] for each in items] == expected, query
    events = service.get(f"/v1/audit-events?target_id={hold['id']}")["items"]
    assert [each["action"] for each in events] == ["holds.create", "holds.release"]
    assert events[0]["after"]["reason"] == "a suit"


def test_owners_hold_and_release_and_viewers_see(service: Service) -> None:
    may = {role: {"holds:create", "holds:release"} <= ROLES[role] for role in ROLES}
    sees = {role: "holds:read" in ROLES[role] for role in ROLES}
    assert may == {"owner": True, "editor": False, "viewer": False, "billing-viewer": False}
    assert sees == {"owner": True, "editor": True, "viewer": True, "billing-viewer": False}


def test_a_key_of_a_project_sees_and_holds_in_that_project_only(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    topic, hold = _held(service)
    project = service.post("/v1/projects", {"name": "sales"})
    confined = service.key("owner", project_id=project["id"])
    for header in (confined, other[1]):
        assert service.get("/v1/legal-holds", header)["items"] == []
        path = f"/v1/legal-holds/{hold['id']}"
        assert service.client.get(path, headers=header).status_code == 404
        desired = {"topic_id": topic["id"], "case_id": "C-9", "reason": "a suit"}
        refused = service.client.post("/v1/legal-holds", json=desired, headers=header)
        assert refused.status_code == 404


def test_an_explanation_of_a_topic_shows_its_holds(service: Service) -> None:
    topic, hold = _held(service)
    steps = service.get(f"/v1/explain?object={topic['id']}")["steps"]
    (shown,) = [each for each in steps if hold["id"] in each["what"]]
    assert shown["what"] == f"legal hold {hold['id']} for case C-1"
    assert shown["next"].startswith("ACTIVE")
    found = service.get(f"/v1/explain?object={hold['id']}")
    assert found["summary"] == f"The hold {hold['id']} of case C-1 on {topic['id']} is ACTIVE."
    assert any(each["what"].startswith("PutHold with fence 1.1.") for each in found["steps"])
    _release(service, hold)
    service.settle()
    assert hold["id"] not in str(service.get(f"/v1/explain?object={topic['id']}"))


PARTITION = st.builds(
    node_pb2.PartitionStatus,
    index=st.integers(0, 3),
    held=st.booleans(),
    held_from=st.integers(0, 3),
)


@given(
    released=st.booleans(),
    known=st.sampled_from([None, (True, True), (True, False), (False, True), (False, False)]),
    partitions=st.lists(PARTITION, max_size=4, unique_by=lambda each: each.index),
    of=st.sampled_from([[], [1]]),
)
def test_a_plan_that_was_carried_out_plans_nothing_and_no_doubt_is_called_done(
    released: bool,
    known: tuple[bool, bool] | None,
    partitions: list[node_pb2.PartitionStatus],
    of: list[int],
) -> None:
    hold = node_pb2.PutHold(hold_id="hold_1", topic_id="tp_1", partitions=of, from_offset=1)
    topic = node_pb2.TopicStatus(topic_id="tp_1", partitions=partitions)
    status = node_pb2.HoldStatus(active=known[0], confirmed=known[1]) if known else None
    desired = Desired(1, released, False, timedelta(), ("a:1",), Fence(1, 1, 1), hold)
    seen = HoldObservation(topic, status)
    state, why = evaluate(desired, seen)
    assert (state in ("ACTIVE", "RELEASED")) == (not why)
    if not why:
        assert status is not None
        assert (status.active, status.confirmed) == (not released, True)
        assert released or (missing(hold, seen) == [] and len(partitions) > max(of, default=0))
    done = HoldObservation(topic, node_pb2.HoldStatus(active=not released, confirmed=True))
    assert plan(desired, done) is None
    assert set(missing(hold, seen)) <= (set(of) or set(range(4)))
    if plan(desired, seen) is None and why:
        waits = status and not status.confirmed
        lacks = not released and missing(hold, seen)
        assert len(partitions) <= max(of, default=0) or waits or lacks


def test_a_hold_that_was_confirmed_is_propagating_while_a_partition_lacks_it() -> None:
    hold = node_pb2.PutHold(hold_id="hold_1", topic_id="tp_1", from_offset=5)
    desired = Desired(1, False, False, timedelta(), ("a:1",), Fence(1, 1, 1), hold)
    confirmed = node_pb2.HoldStatus(active=True, confirmed=True)
    held = node_pb2.PartitionStatus(index=0, held=True, held_from=3)
    for lacking in (
        node_pb2.PartitionStatus(index=1),
        node_pb2.PartitionStatus(index=1, held=True, held_from=6),
    ):
        seen = HoldObservation(node_pb2.TopicStatus(partitions=[held, lacking]), confirmed)
        assert evaluate(desired, seen) == ("PROPAGATING", "waits for the logs of partitions 1")
    lacking = node_pb2.PartitionStatus(index=1, held=True, held_from=5)
    seen = HoldObservation(node_pb2.TopicStatus(partitions=[held, lacking]), confirmed)
    assert evaluate(desired, seen) == ("ACTIVE", "")


def _held(service: Service) -> tuple[Body, Body]:
    """A topic, and a hold on it that is in force."""
    topic = service.topic("orders")
    service.settle()
    hold = service.hold(topic)
    service.settle()
    return topic, _get(service, hold)


def _post(service: Service, topic: Body, case: str = "C-1", **more: Json) -> Response:
    desired = {"topic_id": topic["id"], "case_id": case, "reason": "a suit", **more}
    return service.client.post("/v1/legal-holds", json=desired, headers=service.owner)


def _get(service: Service, hold: Body) -> Body:
    return service.get(f"/v1/legal-holds/{hold['id']}")


def _release(service: Service, hold: Body, query: str = "") -> Response:
    return service.client.delete(
        f"/v1/legal-holds/{hold['id']}{query}", headers={**service.owner, "If-Match": '"r1"'}
    )


def _delete(service: Service, collection: str, found: Body, query: str = "") -> Response:
    headers = {**service.owner, "If-Match": f'"{found["etag"]}"'}
    return service.client.delete(f"/v1/{collection}/{found['id']}{query}", headers=headers)


def _condition(body: Body, type_: str) -> tuple[str, str]:
    found = next(each for each in body["status"]["conditions"] if each["type"] == type_)
    return found["status"], found["reason"]
