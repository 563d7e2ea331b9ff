"""Purges: what was looked at goes, once, and nothing that is held."""

import grpc
from httpx2 import Response
from pydantic import JsonValue as Json

from api.db.tables.topics import TopicPurge
from api.reconcile.operations import PURGE
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.scripted_node import refuse, vanish


def test_a_purge_demands_the_present_etag_and_a_dry_run_says_what_goes(service: Service) -> None:
    topic = _filled(service)
    path = f"/v1/topics/{topic['id']}:purge"
    desired = {"partitions": [{"index": 0, "before_offset": "4"}]}
    without = service.client.post(path, json=desired, headers=service.owner)
    assert (without.status_code, without.json()["code"]) == (428, "PRECONDITION_REQUIRED")
    stale = service.client.post(path, json=desired, headers={**service.owner, "If-Match": '"r9"'})
    assert (stale.status_code, stale.json()["etag"]) == (412, "r1")
    dry = _purge(service, topic, "?dry_run=true", p0=4, p1=10)
    assert (dry.status_code, dry.json()["dry_run"]) == (200, True)
    assert dry.json()["plan"]["data_loss"] == {"records": "14", "bytes_estimate": "1400"}
    service.settle()
    assert service.node.purged == []


def test_a_purge_is_said_once_with_its_generation_and_then_forgotten(service: Service) -> None:
    topic = _filled(service)
    response = _purge(service, topic, p0=4)
    assert response.status_code == 202
    assert (response.json()["etag"], response.json()["generation"]) == ("r2", 2)
    service.settle()
    (said,) = service.node.purged
    assert (said.version, [(p.index, p.before_offset) for p in said.partitions]) == (2, [(0, 4)])
    operation = service.get(f"/v1/operations/{response.headers['Operation-Id']}")
    assert (operation["kind"], operation["state"]) == ("delete_topic_records", "SUCCEEDED")
    found = service.get(f"/v1/topics/{topic['id']}")
    assert [each["start_offset"] for each in found["status"]["partitions"]] == ["4", "0"]
    service.clock.advance(3600)
    service.settle()
    assert len(service.node.purged) == 1
    events = service.get(f"/v1/audit-events?target_id={topic['id']}")["items"]
    assert events[-1]["action"] == "topics.purge_records"
    assert events[-1]["after"]["purge"] == [{"index": 0, "before_offset": "4"}]
    steps = service.get(f"/v1/explain?object={topic['id']}")["steps"]
    assert any(each["what"].startswith("Purge with fence 1.2.") for each in steps)


def test_a_purge_whose_answer_was_lost_is_said_again(service: Service) -> None:
    topic = _filled(service)
    _purge(service, topic, p0=4)
    service.node.after.append(vanish)
    service.node.before.append(refuse(grpc.StatusCode.INTERNAL, "DISK_SICK"))
    for _ in range(4):
        service.settle()
        service.clock.advance(3)
    assert [each.version for each in service.node.purged] == [2, 2]
    assert service.node.topics[topic["id"]].partitions[0].log_start == 4


def test_a_partition_that_cannot_answer_now_is_asked_again(service: Service) -> None:
    topic = _filled(service)
    service.node.purge_refusals = {1: "PARTITION_UNAVAILABLE"}
    _purge(service, topic, p0=4, p1=2)
    service.settle()
    with service.database.read() as session:
        assert session.get(TopicPurge, topic["id"]) is not None
    service.node.purge_refusals.clear()
    service.clock.advance(3)
    service.settle()
    found = service.node.topics[topic["id"]].partitions
    assert [each.log_start for each in found] == [4, 2]


def test_what_the_cluster_refuses_fails_the_operation_and_is_not_asked_again(
    service: Service,
) -> None:
    topic = _filled(service)
    service.node.purge_refusals = {0: "TOPIC_HELD"}
    response = _purge(service, topic, p0=4)
    service.settle()
    operation = service.get(f"/v1/operations/{response.headers['Operation-Id']}")
    assert (operation["state"], operation["error"]["code"]) == ("FAILED", "TOPIC_HELD")
    service.node.purge_refusals.clear()
    service.clock.advance(3600)
    service.settle()
    assert len(service.node.purged) == 1
    assert service.node.topics[topic["id"]].partitions[0].log_start == 0


def test_a_purge_takes_nothing_that_a_hold_keeps(service: Service) -> None:
    topic = _filled(service)
    service.hold(topic, partition=0, from_offset="3")
    refused = _purge(service, topic, p0=4)
    assert (refused.status_code, refused.json()["code"]) == (409, "TOPIC_HELD")
    assert _purge(service, topic, "?dry_run=true", p0=4).status_code == 409
    assert _purge(service, topic, p0=3, p1=5).status_code == 202


def test_two_purges_before_a_worker_comes_are_both_carried_out(service: Service) -> None:
    topic = _filled(service)
    _purge(service, topic, p0=4)
    again = service.get(f"/v1/topics/{topic['id']}")
    _purge(service, again, p0=2, p1=5)
    service.settle()
    (said,) = service.node.purged
    assert [(p.index, p.before_offset) for p in said.partitions] == [(0, 4), (1, 5)]
    found = [each for each in service.get("/v1/operations")["items"] if each["kind"] == PURGE]
    assert [each["state"] for each in found] == ["SUCCEEDED", "SUCCEEDED"]


def test_a_purge_that_was_followed_by_another_change_is_said_once_all_the_same(
    service: Service,
) -> None:
    topic = _filled(service)
    service.node.purge_refusals = {0: "TOPIC_HELD"}
    purge = _purge(service, topic, p0=4)
    patched = service.client.patch(
        f"/v1/topics/{topic['id']}",
        json={"labels": {"team": "a"}, "spec": {"retention_ms": "3600000"}},
        headers={**service.owner, "If-Match": purge.headers["ETag"]},
    )
    assert patched.status_code == 202
    assert _state(service, purge) == ("PENDING", None)
    service.settle()
    # Whoever purged hears what became of it, and not that somebody changed something else.
    assert _state(service, purge) == ("FAILED", "TOPIC_HELD")
    operation = service.get(f"/v1/operations/{patched.headers['Operation-Id']}")
    assert operation["state"] == "SUCCEEDED"
    service.node.purge_refusals.clear()
    service.clock.advance(3600)
    service.settle()
    assert [each.version for each in service.node.purged] == [2]


def test_a_purge_that_came_while_another_was_said_is_settled_with_it(service: Service) -> None:
    topic = _filled(service)
    service.node.purge_refusals = {0: "TOPIC_HELD"}
    first = _purge(service, topic, p0=4)
    later: list[Response] = []

    def purge_again(*_: object) -> None:
        later.append(_purge(service, service.get(f"/v1/topics/{topic['id']}"), p1=2))

    service.node.after.append(purge_again)
    service.settle()
    states = {_state(service, each) for each in (first, *later)}
    assert (len(later), states) == (1, {("FAILED", "TOPIC_HELD")})
    service.node.purge_refusals = {0: "PARTITION_DAMAGED"}
    _purge(service, service.get(f"/v1/topics/{topic['id']}"), p0=1)
    service.clock.advance(900)
    service.settle()
    assert _state(service, first) == ("FAILED", "TOPIC_HELD")


def test_a_purge_of_a_topic_that_goes_is_done_when_it_is_gone(service: Service) -> None:
    topic = _filled(service)
    purge = _purge(service, topic, p0=4)
    headers = {**service.owner, "If-Match": purge.headers["ETag"]}
    service.client.delete(f"/v1/topics/{topic['id']}", headers=headers)
    assert _state(service, purge) == ("PENDING", None)
    for _ in range(4):
        service.settle()
        service.clock.advance(3)
    assert _state(service, purge) == ("SUCCEEDED", None)


def test_what_is_not_there_is_pointed_at(service: Service) -> None:
    topic = _filled(service)
    for desired, pointer in (
        ({"p2": 1}, "#/partitions/0/index"),
        ({"p0": 11}, "#/partitions/0/before_offset"),
        ({"p0": 0}, "#/partitions/0/before_offset"),
        ({}, "#/partitions"),
    ):
        refused = _purge(service, topic, "", **desired)
        assert refused.status_code == 400, refused.text
        assert [each["pointer"] for each in refused.json()["errors"]] == [pointer]
    assert service.get(f"/v1/topics/{topic['id']}")["etag"] == "r1"


def test_of_a_node_that_does_not_answer_no_old_figure_says_where_a_log_ends(
    service: Service,
) -> None:
    topic = _filled(service)
    service.node.describe.append(vanish)
    dry = _purge(service, topic, "?dry_run=true", p0=4)
    assert dry.status_code == 200, dry.text
    assert "does not answer: " in dry.json()["plan"]["warnings"][0]
    service.node.describe.append(vanish)
    purge = _purge(service, topic, p0=4)
    assert purge.status_code == 202, purge.text
    service.settle()
    assert _state(service, purge) == ("SUCCEEDED", None)


def test_a_topic_that_is_being_deleted_is_not_purged(service: Service) -> None:
    topic = _filled(service)
    headers = {**service.owner, "If-Match": '"r1"'}
    service.client.delete(f"/v1/topics/{topic['id']}", headers=headers)
    refused = _purge(service, service.get(f"/v1/topics/{topic['id']}"), p0=1)
    assert (refused.status_code, refused.json()["code"]) == (409, "BEING_DELETED")


def _filled(service: Service) -> Body:
    """A topic with two partitions of ten records, 100 bytes each."""
    topic = service.topic("orders", partitions=2)
    service.settle()
    for each in service.node.topics[topic["id"]].partitions:
        each.log_end, each.bytes = 10, 1000
    return topic


def _state(service: Service, response: Response) -> tuple[str, str | None]:
    """What became of an operation, and why it failed."""
    found = service.get(f"/v1/operations/{response.headers['Operation-Id']}")
    return found["state"], found.get("error", {}).get("code")


def _purge(service: Service, topic: Body, query: str = "", /, **before: int) -> Response:
    partitions: list[Json] = [
        {"index": int(name[1:]), "before_offset": str(offset)} for name, offset in before.items()
    ]
    # An empty list is sent as it is.
    return service.client.post(
        f"/v1/topics/{topic['id']}:purge{query}",
        json={"partitions": partitions},
        headers={**service.owner, "If-Match": f'"{topic["etag"]}"'},
    )
