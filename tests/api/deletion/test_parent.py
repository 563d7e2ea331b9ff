"""Deleting streams and projects: empty or all at once, closed from the mark on, gone at last."""

import pytest
from httpx2 import Response

from api.reconcile.queue import claim
from tests.support.builders.control_plane import Body, Service, bearer
from tests.support.processes.scripted_node import vanish


def test_a_stream_with_topics_is_deleted_only_with_cascade(service: Service) -> None:
    stream, topics = _stream(service, 2)
    refused = _delete(service, "streams", stream)
    assert (refused.status_code, refused.json()["code"]) == (409, "CHILDREN_EXIST")
    assert refused.json()["children_count"] == 2
    assert [each["id"] for each in refused.json()["children"]] == [each["id"] for each in topics]
    accepted = _delete(service, "streams", stream, "?cascade=true")
    assert accepted.status_code == 202
    assert {each["deleted_at"] for each in service.get("/v1/topics")["items"]} == {
        accepted.json()["deleted_at"]
    }
    service.settle()
    assert _gone(service, "streams", stream)
    assert all(_gone(service, "topics", each) for each in topics)
    operation = service.get(f"/v1/operations/{accepted.headers['Operation-Id']}")
    assert operation["state"] == "SUCCEEDED"


def test_an_empty_stream_goes_and_its_name_can_be_given_again(service: Service) -> None:
    stream, _ = _stream(service, 0)
    _delete(service, "streams", stream)
    taken = service.client.post("/v1/streams", json={"name": "clicks"}, headers=service.owner)
    assert taken.json()["code"] == "BEING_DELETED"
    service.settle()
    assert service.post("/v1/streams", {"name": "clicks"})["id"] != stream["id"]


@pytest.mark.parametrize("kind", ["streams", "projects"])
def test_a_parent_demands_if_match_and_the_present_one(service: Service, kind: str) -> None:
    parent = service.get(f"/v1/{kind}")["items"][0]
    path = f"/v1/{kind}/{parent['id']}?cascade=true"
    assert service.client.delete(path, headers=service.owner).status_code == 428
    stale = service.client.delete(path, headers={**service.owner, "If-Match": '"r9"'})
    assert stale.status_code == 412
    read = service.client.get(f"/v1/{kind}/{parent['id']}", headers=service.owner)
    assert read.headers["ETag"] == f'"{parent["etag"]}"'


def test_nothing_is_made_inside_what_is_being_deleted(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})
    stream = service.get(f"/v1/streams?project_id={project['id']}")["items"][0]
    _delete(service, "projects", project, "?cascade=true")
    inside: list[tuple[str, Body]] = [
        ("streams", {"name": "s", "project_id": project["id"]}),
        ("topics", {"name": "t", "project_id": project["id"]}),
        ("topics", {"name": "t", "stream_id": stream["id"]}),
        ("api-keys", {"name": "k", "project_id": project["id"], "spec": {"role": "viewer"}}),
        ("projects", {"name": "sales"}),
    ]
    for kind, body in inside:
        response = service.client.post(f"/v1/{kind}", json=body, headers=service.owner)
        assert (response.status_code, response.json()["code"]) == (409, "BEING_DELETED"), kind
    service.settle()
    for kind, body in inside[:-1]:
        response = service.client.post(f"/v1/{kind}", json=body, headers=service.owner)
        assert response.status_code == 404, kind


def test_a_project_goes_with_its_streams_and_topics_and_its_keys_are_revoked(
    service: Service,
) -> None:
    project = service.post("/v1/projects", {"name": "sales"})
    header = service.key("owner", project_id=project["id"])
    topic = service.post("/v1/topics", {"name": "orders"}, header)
    outside = service.topic("orders")
    service.settle()
    refused = _delete(service, "projects", project)
    assert [each["kind"] for each in refused.json()["children"]] == ["stream"]
    response = _delete(service, "projects", project, "?cascade=true")
    assert response.status_code == 202
    assert service.client.get("/v1/topics", headers=header).status_code == 401
    service.settle()
    assert _gone(service, "projects", project)
    assert _gone(service, "topics", topic)
    assert list(service.node.topics) == [outside["id"]]
    assert not service.node.keys[service.keys["owner-0"]].active
    assert service.post("/v1/projects", {"name": "sales"})["id"] != project["id"]
    state = service.get(f"/v1/operations/{response.headers['Operation-Id']}")["state"]
    assert state == "SUCCEEDED"


def test_a_project_waits_until_the_cluster_has_forgotten_its_keys(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})
    service.key("viewer", project_id=project["id"])
    service.settle()
    service.node.before.extend([vanish] * 2)
    _delete(service, "projects", project, "?cascade=true")
    service.settle()
    message = _deleting(service, "projects", project)
    assert message == ("ChildrenRemain", "waits until these are gone: key viewer-0")
    for _ in range(4):
        service.clock.advance(10)
        service.settle()
    assert _gone(service, "projects", project)


def test_a_parent_says_what_it_waits_for(service: Service) -> None:
    stream, _ = _stream(service, 7)
    service.settle()
    service.node.closing_polls = 1000
    _delete(service, "streams", stream, "?cascade=true&confirm_deletions=7")
    service.loop.run_once(["stream"])
    reason, message = _deleting(service, "streams", stream)
    assert reason == "ChildrenRemain"
    assert message.endswith("topic t0, topic t1, topic t2, topic t3, topic t4 and 2 more")


def test_a_cascade_over_the_breaker_marks_nothing_without_its_number(service: Service) -> None:
    stream, topics = _stream(service, 6)
    refused = _delete(service, "streams", stream, "?cascade=true")
    assert (refused.status_code, refused.json()["code"]) == (409, "DELETION_BREAKER")
    assert "deleted_at" not in service.get(f"/v1/streams/{stream['id']}")
    assert all("deleted_at" not in service.get(f"/v1/topics/{each['id']}") for each in topics)
    confirmed = _delete(service, "streams", stream, "?cascade=true&confirm_deletions=6")
    assert confirmed.status_code == 202
    service.settle()
    assert _gone(service, "streams", stream)


def test_one_protected_topic_keeps_the_whole_project(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})
    body: Body = {"name": "t", "project_id": project["id"], "spec": {"deletion_protection": True}}
    topic = service.post("/v1/topics", body)
    refused = _delete(service, "projects", project, "?cascade=true")
    assert (refused.status_code, refused.json()["code"]) == (409, "DELETION_PROTECTED")
    assert refused.json()["protected"] == [topic["id"]]
    assert "deleted_at" not in service.get(f"/v1/projects/{project['id']}")


def test_a_second_delete_of_a_parent_changes_nothing_and_force_reaches_its_topics(
    service: Service,
) -> None:
    stream, topics = _stream(service, 1)
    service.settle()
    service.node.topics[topics[0]["id"]].partitions[0].state = "DAMAGED"
    first = _delete(service, "streams", stream, "?cascade=true")
    again = _delete(service, "streams", stream)
    assert again.json() == first.json()
    assert again.headers["Operation-Id"] == first.headers["Operation-Id"]
    service.loop.run_once(["topic"])
    assert not _gone(service, "streams", stream)
    _delete(service, "streams", stream, "?force=true&reason=disk+lost")
    service.settle()
    assert service.node.given_up == {topics[0]["id"]: "disk lost"}
    assert _gone(service, "streams", stream)


def test_a_parent_whose_children_go_already_can_follow_without_cascade(service: Service) -> None:
    stream, topics = _stream(service, 1)
    _delete(service, "topics", topics[0])
    assert _delete(service, "streams", stream).status_code == 202
    service.settle()
    assert _gone(service, "streams", stream)


def test_a_worker_killed_after_the_burial_of_a_parent_leaves_one_clean_end(
    service: Service,
) -> None:
    stream, _ = _stream(service, 0)
    service.settle()
    _delete(service, "streams", stream)
    with service.database.write() as session:
        (item,) = claim(session, kinds=["stream"], owner="sleeper", now=service.clock())
    service.loop._pass(item)
    assert _gone(service, "streams", stream)
    service.clock.advance(31)
    service.settle()
    events = service.get(f"/v1/audit-events?target_id={stream['id']}")["items"]
    assert [each["action"] for each in events] == [
        "streams.create", "streams.delete", "streams.purge",
    ]  # fmt: skip


def test_another_organizations_project_of_the_same_name_is_left_alone(
    service: Service, other: tuple[str, dict[str, str]]
) -> None:
    mine = service.post("/v1/projects", {"name": "sales"})
    theirs = service.post("/v1/projects", {"name": "sales"}, other[1])
    _delete(service, "projects", mine, "?cascade=true")
    service.settle()
    read = service.client.get(f"/v1/projects/{theirs['id']}", headers=other[1])
    assert "deleted_at" not in read.json()


def test_a_key_confined_to_a_project_can_delete_it(service: Service) -> None:
    project = service.post("/v1/projects", {"name": "sales"})
    created = service.post(
        "/v1/api-keys", {"name": "k", "project_id": project["id"], "spec": {"role": "owner"}}
    )
    header = bearer(created["secret"])
    response = service.client.delete(
        f"/v1/projects/{project['id']}?cascade=true", headers={**header, "If-Match": '"r1"'}
    )
    assert response.status_code == 202
    service.settle()
    assert _gone(service, "projects", project)


def _stream(service: Service, topics: int) -> tuple[Body, list[Body]]:
    stream = service.post("/v1/streams", {"name": "clicks"})
    return stream, [
        service.post("/v1/topics", {"name": f"t{number}", "stream_id": stream["id"]})
        for number in range(topics)
    ]


def _delete(service: Service, kind: str, row: Body, query: str = "") -> Response:
    headers = {**service.owner, "If-Match": f'"{row["etag"]}"'}
    return service.client.delete(f"/v1/{kind}/{row['id']}{query}", headers=headers)


def _gone(service: Service, kind: str, row: Body) -> bool:
    path = f"/v1/{kind}/{row['id']}"
    listed = [each["id"] for each in service.get(f"/v1/{kind}")["items"]]
    missing = service.client.get(path, headers=service.owner).status_code == 404
    assert missing == (row["id"] not in listed)
    return missing


def _deleting(service: Service, kind: str, row: Body) -> tuple[str, str]:
    conditions = service.get(f"/v1/{kind}/{row['id']}")["status"]["conditions"]
    found = next(each for each in conditions if each["type"] == "Deleting")
    return found["reason"], found["message"]
