"""Topics over HTTP: a spec is stored at once, readable at once, and changed only as agreed."""

from dataclasses import fields

import pytest

from api.db.tables.topics import Topic
from api.topics.schemas import EffectiveBody, TopicSpec, effective_members
from api.topics.spec import DEFAULTS, EffectiveSpec
from dataplane.metadata.rules import check_submitted, check_topic
from dataplane.wire import node_pb2
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.scripted_node import vanish


def test_what_a_wish_may_leave_out_has_a_default_that_is_shown() -> None:
    wished = set(TopicSpec.model_fields)
    assert wished == {each.name for each in fields(EffectiveSpec)}
    assert wished == set(EffectiveBody.model_fields) == set(effective_members(DEFAULTS))


def test_a_created_topic_answers_202_with_its_operation_and_can_be_read_at_once(
    service: Service,
) -> None:
    response = service.client.post(
        "/v1/topics", json={"name": "orders", "spec": {"partitions": 3}}, headers=service.owner
    )
    assert response.status_code == 202
    body = response.json()
    assert response.headers["Location"] == f"/v1/topics/{body['id']}"
    assert response.headers["ETag"] == '"r1"'
    assert service.get(f"/v1/operations/{response.headers['Operation-Id']}")["state"] == "PENDING"
    assert body["spec"] == {"partitions": 3}
    assert body["status"]["effective"]["retention_ms"] == "604800000"
    assert {each["status"] for each in body["status"]["conditions"]} == {"Unknown"}
    assert service.get(f"/v1/topics/{body['id']}") == body


def test_a_topic_is_found_at_once_however_often_it_is_created(service: Service) -> None:
    for number in range(50):
        topic = service.topic(f"t{number}")
        assert service.get(f"/v1/topics/{topic['id']}")["name"] == f"t{number}"


def test_a_topic_becomes_ready_and_its_operation_succeeds(service: Service) -> None:
    response = service.client.post(
        "/v1/topics", json={"name": "orders", "spec": {"partitions": 2}}, headers=service.owner
    )
    service.settle()
    body = service.get(response.headers["Location"])
    status = body["status"]
    assert status["observed_generation"] == body["generation"] == 1
    ready = next(each for each in status["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "True"
    assert [each["index"] for each in status["partitions"]] == [0, 1]
    operation = service.get(f"/v1/operations/{response.headers['Operation-Id']}")
    assert operation["state"] == "SUCCEEDED"
    partitions = service.get(f"/v1/topics/{body['id']}/partitions")
    assert partitions["items"] == status["partitions"]


def test_the_longest_name_becomes_ready_and_is_one_that_nodes_take(service: Service) -> None:
    topic = service.topic("x" * 249)
    service.settle()
    conditions = service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    assert _condition(conditions, "Ready")["status"] == "True"
    spec = service.node.topics[topic["id"]].spec
    check_topic(spec)
    check_submitted(node_pb2.ApplyRequest(put_topic=spec))


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        ({}, ("True", "Enforced")),
        ({"retention_ms": "unlimited", "retention_bytes": "9"}, ("True", "Enforced")),
        ({"retention_ms": "unlimited"}, ("True", "Unlimited")),
    ],
)
def test_a_topic_says_whether_its_retention_is_enforced_and_is_ready_all_the_same(
    service: Service, limits: dict[str, str], found: tuple[str, str]
) -> None:
    topic = service.topic("orders", **limits)
    before = _condition(topic["status"]["conditions"], "RetentionEnforced")
    assert (before["status"], before["reason"]) == ("Unknown", "NotObservedYet")
    service.settle()
    conditions = service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    enforced = _condition(conditions, "RetentionEnforced")
    assert (enforced["status"], enforced["reason"]) == found
    assert ("segment is deleted" in enforced["message"]) == (found[1] == "Enforced")
    assert _condition(conditions, "Ready")["status"] == "True"


@pytest.mark.parametrize("name", ["_usage", "sys.x", ".hidden", "", "a/b", "x" * 250, "ünicode"])
def test_a_name_outside_the_rules_is_refused_with_a_pointer(service: Service, name: str) -> None:
    response = service.client.post("/v1/topics", json={"name": name}, headers=service.owner)
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "#/name"


def test_two_names_that_fold_alike_cannot_both_exist(service: Service) -> None:
    first = service.topic("Order.Lines")
    response = service.client.post(
        "/v1/topics", json={"name": "order_lines"}, headers=service.owner
    )
    assert response.status_code == 409
    assert response.json()["code"] == "NAME_TAKEN"
    assert response.json()["existing_id"] == first["id"]


def test_more_replicas_than_nodes_are_refused_with_the_limit(service: Service) -> None:
    response = service.client.post(
        "/v1/topics",
        json={"name": "orders", "spec": {"replication_factor": 3}},
        headers=service.owner,
    )
    assert response.status_code == 400
    error = response.json()["errors"][0]
    assert (error["pointer"], error["limit"], error["actual"]) == (
        "#/spec/replication_factor",
        "1",
        "3",
    )


def test_a_dry_run_answers_the_body_and_keeps_nothing(service: Service) -> None:
    response = service.client.post(
        "/v1/topics?dry_run=true", json={"name": "orders"}, headers=service.owner
    )
    assert response.status_code == 200
    assert response.json()["dry_run"] is True
    assert "id" not in response.json()
    assert service.get("/v1/topics")["items"] == []
    assert service.topic("orders")["name"] == "orders"


def test_a_patch_of_the_spec_makes_a_generation_and_supersedes_the_unfinished_operation(
    service: Service,
) -> None:
    created = service.client.post("/v1/topics", json={"name": "orders"}, headers=service.owner)
    patched = service.client.patch(
        created.headers["Location"],
        json={"spec": {"retention_ms": "1209600000"}},
        headers={**service.owner, "Content-Type": "application/merge-patch+json"},
    )
    assert patched.status_code == 202
    assert patched.json()["generation"] == 2
    assert patched.json()["etag"] == "r2"
    operation = service.get(f"/v1/operations/{created.headers['Operation-Id']}")
    assert operation["state"] == "SUPERSEDED"
    service.settle()
    spec = service.node.topics[created.json()["id"]].spec
    assert spec.retention_ms == 1209600000
    second = service.get(f"/v1/operations/{patched.headers['Operation-Id']}")
    assert second["state"] == "SUCCEEDED"


def test_a_patch_that_changes_nothing_makes_no_generation_and_no_audit_row(
    service: Service,
) -> None:
    topic = service.topic("orders", retention_ms=5_000_000)
    before = service.get("/v1/audit-events")["items"]
    response = service.client.patch(
        f"/v1/topics/{topic['id']}", json={"spec": {"retention_ms": 5000000}}, headers=service.owner
    )
    assert response.status_code == 200
    assert response.json() == topic
    assert service.get("/v1/audit-events")["items"] == before


def test_a_body_that_was_read_can_be_sent_back(service: Service) -> None:
    topic = service.topic("orders", partitions=2)
    edited = {**topic, "labels": {"team": "sales"}}
    response = service.client.patch(f"/v1/topics/{topic['id']}", json=edited, headers=service.owner)
    assert response.status_code == 200
    assert response.json()["labels"] == {"team": "sales"}
    assert response.json()["generation"] == 1
    assert response.json()["etag"] == "r2"


def test_null_takes_a_member_away(service: Service) -> None:
    topic = service.topic("orders", retention_bytes="1000000")
    path = f"/v1/topics/{topic['id']}"
    service.client.patch(path, json={"labels": {"a": "1", "b": "2"}}, headers=service.owner)
    response = service.client.patch(
        path,
        json={"labels": {"a": None}, "spec": {"retention_bytes": None}},
        headers=service.owner,
    )
    assert response.json()["labels"] == {"b": "2"}
    assert response.json()["spec"] == {}
    assert response.json()["status"]["effective"]["retention_bytes"] == "unlimited"


@pytest.mark.parametrize(
    ("patch", "pointer"),
    [
        ({"name": "other"}, "#/name"),
        ({"stream_id": "st_0"}, "#/stream_id"),
        ({"stream": "other"}, "#/stream"),
        ({"spec": {"replication_factor": 3}}, "#/spec/replication_factor"),
    ],
)
def test_a_fixed_member_cannot_change(
    service: Service, patch: dict[str, object], pointer: str
) -> None:
    topic = service.topic("orders", partitions=2)
    response = service.client.patch(f"/v1/topics/{topic['id']}", json=patch, headers=service.owner)
    assert response.status_code == 400
    assert response.json()["code"] == "FIELD_IMMUTABLE"
    assert response.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(("before", "after"), [(2, 3), (2, 1024), (1, 2)])
def test_a_topic_gets_more_partitions(service: Service, before: int, after: int) -> None:
    topic = service.topic("orders", partitions=before)
    service.settle()
    path = f"/v1/topics/{topic['id']}"
    patch = {"spec": {"partitions": after}}
    preview = service.client.patch(f"{path}?dry_run=true", json=patch, headers=service.owner)
    assert (preview.json()["id"], preview.json()["dry_run"]) == (topic["id"], True)
    assert preview.json()["plan"]["partitions"] == {"before": before, "after": after}
    assert "New records of a key" in preview.json()["plan"]["warnings"][0]
    response = service.client.patch(path, json=patch, headers=service.owner)
    assert (response.status_code, response.json()["generation"]) == (202, 2)
    assert "plan" not in response.json()
    service.settle()
    assert len(service.get(path)["status"]["partitions"]) == after
    operation = service.get(f"/v1/operations/{response.headers['Operation-Id']}")
    assert operation["state"] == "SUCCEEDED"


@pytest.mark.parametrize(
    "patch", [{"spec": {"partitions": 1}}, {"spec": {"partitions": None}}, {"spec": None}]
)
def test_a_topic_never_gets_fewer_partitions(service: Service, patch: dict[str, object]) -> None:
    topic = service.topic("orders", partitions=2)
    response = service.client.patch(f"/v1/topics/{topic['id']}", json=patch, headers=service.owner)
    assert (response.status_code, response.json()["code"]) == (400, "PARTITIONS_DECREASE")
    error = response.json()["errors"][0]
    assert (error["pointer"], error["limit"], error["actual"]) == ("#/spec/partitions", "2", "1")


def test_a_cluster_that_has_more_partitions_than_wished_stalls_the_topic(service: Service) -> None:
    topic = service.topic("orders", partitions=1)
    service.settle()
    service.node.topics[topic["id"]].partitions.add(index=1, state="READY")
    service.node.topics[topic["id"]].spec.partitions = 2
    service.clock.advance(3600)
    service.settle()
    conditions = service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    stalled = _condition(conditions, "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "PartitionsDecrease")


def test_under_a_mask_the_named_members_become_what_the_body_says(service: Service) -> None:
    topic = service.topic("orders", partitions=2, codec="lz4", retention_bytes="1000")
    path = f"/v1/topics/{topic['id']}"
    first = {"labels": {"a": "1"}, "display_name": "Orders"}
    service.client.patch(path, json=first, headers=service.owner)
    response = service.client.patch(
        f"{path}?update_mask=labels,spec.codec,spec.partitions",
        json={"labels": {"b": "2"}, "display_name": "ignored", "spec": {"partitions": 3}},
        headers=service.owner,
    )
    body = response.json()
    assert (body["labels"], body["display_name"]) == ({"b": "2"}, "Orders")
    assert body["spec"] == {"partitions": 3, "retention_bytes": "1000"}


def test_a_mask_of_everything_replaces_everything(service: Service) -> None:
    topic = service.topic("orders", partitions=2, codec="lz4")
    path = f"/v1/topics/{topic['id']}"
    service.client.patch(path, json={"labels": {"a": "1"}}, headers=service.owner)
    body = service.client.patch(
        f"{path}?update_mask=*", json={"spec": {"partitions": 2}}, headers=service.owner
    ).json()
    assert (body["labels"], body["spec"]) == ({}, {"partitions": 2})
    fewer = service.client.patch(f"{path}?update_mask=*", json={}, headers=service.owner)
    assert fewer.json()["code"] == "PARTITIONS_DECREASE"


@pytest.mark.parametrize("mask", ["nonsense", "spec.nothing", "labels.a", "name", "*,labels", ","])
def test_a_mask_that_names_nothing_of_the_users_is_refused(service: Service, mask: str) -> None:
    topic = service.topic("orders")
    response = service.client.patch(
        f"/v1/topics/{topic['id']}?update_mask={mask}", json={}, headers=service.owner
    )
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "?update_mask"


def test_if_match_lets_only_one_of_two_editors_win(service: Service) -> None:
    topic = service.topic("orders")
    path, headers = f"/v1/topics/{topic['id']}", {**service.owner, "If-Match": '"r1"'}
    first = service.client.patch(path, json={"display_name": "A"}, headers=headers)
    second = service.client.patch(path, json={"display_name": "B"}, headers=headers)
    assert (first.status_code, second.status_code) == (200, 412)
    assert second.json()["etag"] == "r2"
    assert service.get(path)["display_name"] == "A"


def test_a_status_that_moved_leaves_the_etag_alone_and_is_still_seen(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    after = service.get(f"/v1/topics/{topic['id']}")
    assert after["etag"] == topic["etag"]
    assert after["status"] != topic["status"]


def test_a_shorter_retention_demands_if_match(service: Service) -> None:
    topic = service.topic("orders")
    path, patch = f"/v1/topics/{topic['id']}", {"spec": {"retention_ms": "1000"}}
    refused = service.client.patch(path, json=patch, headers=service.owner)
    assert (refused.status_code, refused.json()["code"]) == (428, "PRECONDITION_REQUIRED")
    accepted = service.client.patch(path, json=patch, headers={**service.owner, "If-Match": '"r1"'})
    assert accepted.status_code == 202


def test_a_wait_that_is_over_before_ready_answers_202_all_the_same(service: Service) -> None:
    response = service.client.post(
        "/v1/topics?wait=0.05s", json={"name": "orders"}, headers=service.owner
    )
    assert response.status_code == 202


def test_a_wait_that_is_no_time_is_refused(service: Service) -> None:
    response = service.client.post(
        "/v1/topics?wait=61s", json={"name": "orders"}, headers=service.owner
    )
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "?wait"


def test_null_for_a_fixed_member_is_fine_where_the_default_is_what_holds(service: Service) -> None:
    topic = service.topic("orders", partitions=1)
    patch = {"spec": {"partitions": None, "replication_factor": None}}
    response = service.client.patch(f"/v1/topics/{topic['id']}", json=patch, headers=service.owner)
    assert response.status_code == 202
    assert response.json()["status"]["effective"]["partitions"] == 1


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("partitions", True),
        ("partitions", 4.0),
        ("partitions", "4"),
        ("replication_factor", True),
        ("replication_factor", 1.0),
        ("retention_ms", True),
        ("retention_ms", 5000.0),
        ("retention_bytes", 1e9),
        ("min_retention_ms", True),
        ("segment_bytes", 16777216.0),
        ("max_message_bytes", 4096.0),
        ("deletion_protection", 1),
        ("deletion_protection", "yes"),
    ],
)
def test_a_member_of_a_spec_is_of_its_type_and_never_turned_into_it(
    service: Service, member: str, value: object
) -> None:
    body = {"name": "orders", "spec": {member: value}}
    response = service.client.post("/v1/topics", json=body, headers=service.owner)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
    assert response.json()["errors"][0]["pointer"].startswith(f"#/spec/{member}")


@pytest.mark.parametrize("member", ["retention_ms", "retention_bytes"])
@pytest.mark.parametrize("zero", [0, "0", "00"])
def test_a_limit_of_0_is_refused_and_says_how_unlimited_is_written(
    service: Service, member: str, zero: object
) -> None:
    body = {"name": "orders", "spec": {member: zero}}
    response = service.client.post("/v1/topics", json=body, headers=service.owner)
    (fault,) = response.json()["errors"]
    assert (response.status_code, fault["code"]) == (400, "LIMIT_ZERO")
    assert (fault["pointer"], fault["detail"]) == (
        f"#/spec/{member}",
        'must be 1 or more; write "unlimited" to keep everything',
    )


def test_a_limit_of_0_that_an_earlier_release_stored_is_told_as_what_it_is(
    service: Service,
) -> None:
    topic = service.topic("orders", retention_bytes="unlimited")
    with service.database.write() as session:
        row = session.get_one(Topic, topic["id"])
        row.spec = {"retention_ms": "0", "retention_bytes": "0"}
    path = f"/v1/topics/{topic['id']}"
    body = service.get(path)
    limits = {"retention_ms": "unlimited", "retention_bytes": "unlimited"}
    assert body["spec"] == limits
    assert body["status"]["effective"].items() >= limits.items()
    service.settle()
    said = service.node.topics[topic["id"]].spec
    assert (said.retention_ms, said.retention_bytes) == (-1, -1)
    patch = {"spec": {"partitions": 2}}
    changed = service.client.patch(path, json=patch, headers=service.owner).json()
    assert changed["spec"] == {"partitions": 2, **limits}


def test_figures_say_when_they_were_observed_and_are_of_now_when_asked_live(
    service: Service,
) -> None:
    topic = service.topic("orders")
    service.settle()
    then = service.get(f"/v1/topics/{topic['id']}")["status"]["partitions"][0]
    service.clock.advance(60)
    service.node.topics[topic["id"]].partitions[0].log_end = 70
    service.node.topics[topic["id"]].partitions[0].bytes = 7000
    path = f"/v1/topics/{topic['id']}"
    assert service.get(path)["status"]["partitions"] == [then]
    assert (then["end_offset"], then["observed_at"]) == ("0", "2026-03-01T12:00:00.000000Z")
    for found in (
        service.get(f"{path}?live=true")["status"]["partitions"],
        service.get(f"{path}/partitions?live=true")["items"],
    ):
        assert (found[0]["end_offset"], found[0]["bytes"]) == ("70", "7000")
        assert found[0]["observed_at"] == "2026-03-01T12:01:00.000000Z"


def test_a_live_read_of_a_node_that_is_away_shows_what_was_observed_last(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    known = service.get(f"/v1/topics/{topic['id']}")
    service.node.describe = [vanish]
    assert service.get(f"/v1/topics/{topic['id']}?live=true") == known


def _condition(conditions: Body, type_: str) -> Body:
    return next(each for each in conditions if each["type"] == type_)
