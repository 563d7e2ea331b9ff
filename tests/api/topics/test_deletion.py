"""Deleting a topic: marked at once, gone when the cluster says so, and its name free only then."""

from datetime import timedelta

import grpc
import pytest
from httpx2 import Response
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, update

from api.db.tables.operations import Operation
from api.db.tables.topics import Topic
from api.db.tables.work import Work
from api.deletion.mark import BREAKER_OBJECTS_MIN, breaker_limit
from api.reconcile.backoff import BACKOFF_MAX, POLL_FIRST, POLL_MAX, poll_after
from api.reconcile.queue import Claim, claim
from tests.support.builders.control_plane import OFTEN, Body, Service
from tests.support.processes.platform import wait_until
from tests.support.processes.scripted_node import refuse, vanish


def test_a_delete_demands_if_match_and_the_present_one(service: Service) -> None:
    topic = service.topic("orders")
    path = f"/v1/topics/{topic['id']}"
    without = service.client.delete(path, headers=service.owner)
    assert (without.status_code, without.json()["code"]) == (428, "PRECONDITION_REQUIRED")
    assert topic["etag"] in without.json()["hint"]
    service.client.patch(path, json={"display_name": "A"}, headers=service.owner)
    stale = service.client.delete(path, headers={**service.owner, "If-Match": '"r1"'})
    assert (stale.status_code, stale.json()["etag"]) == (412, "r2")
    assert "deleted_at" not in service.get(path)


def test_a_deleted_topic_says_so_at_once_and_then_it_is_not_found(service: Service) -> None:
    topic = service.topic("orders", partitions=2)
    service.settle()
    response = _delete(service, topic)
    assert response.status_code == 202
    body = response.json()
    assert (body["generation"], body["etag"]) == (2, "r2")
    assert (body["deleted_at"], body["deleted_by"]) == (
        "2026-03-01T12:00:00.000000Z",
        service.first.owner_key_id,
    )
    assert _condition(body, "Deleting") == ("True", "Requested")
    assert service.get(f"/v1/topics/{topic['id']}") == body
    assert [each["id"] for each in service.get("/v1/topics")["items"]] == [topic["id"]]
    operation = f"/v1/operations/{response.headers['Operation-Id']}"
    assert service.get(operation)["state"] == "PENDING"
    service.settle()
    assert service.node.topics == {}
    assert service.client.get(f"/v1/topics/{topic['id']}", headers=service.owner).status_code == 404
    assert service.get("/v1/topics")["items"] == []
    assert service.get(operation)["state"] == "SUCCEEDED"
    assert _delete(service, topic).status_code == 404


def test_the_cluster_is_asked_until_nothing_is_left_and_ever_more_rarely(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.node.closing_polls = 4
    _delete(service, topic)
    for _ in range(4):
        service.loop.run_once(["topic"])
        body = service.get(f"/v1/topics/{topic['id']}")
        assert _condition(body, "Deleting") == ("True", "Closing")
        assert _condition(body, "Ready") == ("False", "Deleting")
        service.clock.advance(1)
    service.settle()
    assert _gone(service, topic)


@given(st.timedeltas(min_value=timedelta(0)))
def test_the_next_question_is_soon_at_first_and_never_late(age: timedelta) -> None:
    assert POLL_FIRST <= poll_after(age) <= POLL_MAX


def test_a_second_delete_changes_nothing_and_names_the_same_operation(service: Service) -> None:
    topic = service.topic("orders")
    first = _delete(service, topic)
    events = service.get(f"/v1/audit-events?target_id={topic['id']}")["items"]
    for headers in ({"If-Match": '"r1"'}, {}):
        again = service.client.delete(
            f"/v1/topics/{topic['id']}", headers={**service.owner, **headers}
        )
        assert again.status_code == 202
        assert again.json() == first.json()
        assert again.headers["Operation-Id"] == first.headers["Operation-Id"]
    assert service.get(f"/v1/audit-events?target_id={topic['id']}")["items"] == events


def test_a_topic_the_cluster_never_had_is_deleted_all_the_same(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    _delete(service, topic)
    service.settle()
    assert _gone(service, topic)
    assert [each.WhichOneof("command") for each in service.node.applied][-1] == "delete_topic"
    assert topic["id"] in service.node.deleted, "an older PutTopic could still make it"


def test_a_put_whose_answer_was_lost_cannot_bring_a_deleted_topic_back(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    (sleeper,) = _claims(service)
    _delete(service, topic)
    service.clock.advance(60)
    service.settle()
    assert _gone(service, topic)
    reconciler = service.loop._reconcilers["topic"]
    reconciler.reconcile(sleeper)
    assert service.node.topics == {}


@pytest.mark.parametrize("answers", [[refuse(grpc.StatusCode.INTERNAL, "INTERNAL")], [vanish] * 3])
def test_a_topic_whose_creation_failed_half_way_can_be_deleted(
    service: Service, answers: list[object]
) -> None:
    service.settle()
    topic = service.topic("orders")
    service.node.before.extend(answers)  # type: ignore[arg-type]
    service.loop.run_once(["topic"])
    _delete(service, topic)
    for _ in range(6):
        service.clock.advance(2)
        service.settle(passes=1_000)
    assert _gone(service, topic)


def test_an_empty_answer_of_a_node_deletes_nothing(service: Service) -> None:
    topics = [service.topic(f"t{number}") for number in range(3)]
    service.settle()
    service.node.topics.clear()
    service.clock.advance(3600)
    service.settle()
    assert sorted(service.node.topics) == sorted(each["id"] for each in topics)
    assert service.node.deleted == {}


def test_a_node_that_still_lists_the_topic_keeps_it_from_being_buried(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.node.lagging.add(topic["id"])
    _delete(service, topic)
    service.loop.run_once(["topic"])
    assert _condition(service.get(f"/v1/topics/{topic['id']}"), "Deleting") == (
        "True",
        "NodeBehind",
    )
    service.node.lagging.clear()
    service.clock.advance(1)
    service.settle()
    assert _gone(service, topic)


def test_a_cluster_that_is_away_parks_the_delete_with_its_reason(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.node.describe.extend([vanish] * 100)
    _delete(service, topic)
    for _ in range(30):
        service.settle()
        service.clock.advance(1.5)
    body = service.get(f"/v1/topics/{topic['id']}")
    assert _condition(body, "Deleting") == ("True", "NodeUnreachable")
    assert _condition(body, "Reachable") == ("False", "NodeUnreachable")
    assert _condition(body, "Stalled")[0] == "False"
    with service.database.read() as session:
        assert session.get_one(Work, ("topic", topic["id"])).attempts == 0
    service.node.describe.clear()
    service.clock.advance(1.5)
    service.settle()
    assert _gone(service, topic)


def test_a_delete_that_the_cluster_refuses_stalls_and_keeps_the_mark(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    _delete(service, topic)
    service.node.before.append(refuse(grpc.StatusCode.FAILED_PRECONDITION, "NOT_NOW"))
    service.settle()
    body = service.get(f"/v1/topics/{topic['id']}")
    assert _condition(body, "Deleting") == ("True", "NotNow")
    assert _condition(body, "Stalled") == ("True", "NotNow")
    service.clock.advance(900)
    service.settle()
    assert _gone(service, topic)


@pytest.mark.parametrize("step", ["marked", "asked", "answered", "buried"])
def test_a_worker_killed_at_any_step_leaves_one_clean_end(service: Service, step: str) -> None:
    topic = service.topic("orders")
    service.settle()
    _delete(service, topic)
    service.node.closing_polls = 1 if step == "asked" else 0
    service.node.after.extend([vanish] if step == "answered" else [])
    (item,) = _claims(service)
    if step != "marked":
        _quietly(service, item)
    service.clock.advance(31)
    service.settle()
    service.clock.advance(31)
    service.settle()
    assert _gone(service, topic)
    assert service.node.topics == {}
    with service.database.read() as session:
        assert session.get(Work, ("topic", topic["id"])) is None
        states = session.scalars(select(Operation).filter_by(kind="delete_topic")).all()
        assert [each.succeeded_at is not None for each in states] == [True]
    purges = service.get(f"/v1/audit-events?target_id={topic['id']}")["items"]
    assert [each["action"] for each in purges].count("topics.purge") == 1


def test_a_worker_that_lost_its_lease_buries_nothing(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    _delete(service, topic)
    (sleeper,) = _claims(service)
    service.clock.advance(60)
    assert len(_claims(service)) == 1
    assert not service.loop.run(sleeper)
    assert not _gone(service, topic)


def test_the_name_is_free_once_the_topic_is_gone_and_not_before(service: Service) -> None:
    old = service.topic("orders")
    service.settle()
    _delete(service, old)
    taken = service.client.post("/v1/topics", json={"name": "orders"}, headers=service.owner)
    assert (taken.status_code, taken.json()["code"]) == (409, "BEING_DELETED")
    assert taken.json()["existing_id"] == old["id"]
    service.settle()
    new = service.topic("orders")
    assert new["id"] != old["id"]
    service.settle()
    # The old delete, repeated late, names the old id and cannot touch the new topic.
    late = service.node.applied[
        [each.HasField("delete_topic") for each in service.node.applied].index(True)
    ]
    assert late.delete_topic.topic_id == old["id"]
    assert list(service.node.topics) == [new["id"]]
    assert _condition(service.get(f"/v1/topics/{new['id']}"), "Ready")[0] == "True"


def test_a_topic_deleted_as_soon_as_it_is_made_never_leaks(service: Service) -> None:
    service.settle()
    for number in range(OFTEN // 2):
        # Before the worker looks; and while or after it tells the cluster to make it.
        topics = [service.topic(f"early-{number}")]
        assert _delete(service, topics[0]).status_code == 202
        with service.working():
            topics.append(service.topic(f"late-{number}"))
            assert _delete(service, topics[1]).status_code == 202
            _wait_until_let_go(service, topics)
    service.clock.advance(BACKOFF_MAX.total_seconds())
    service.settle()
    assert (service.node.topics, len(service.node.deleted)) == ({}, OFTEN)
    assert service.get("/v1/topics")["items"] == []
    with service.database.read() as session:
        assert session.scalars(select(Work).filter_by(kind="topic")).all() == []


def test_a_topic_that_is_being_deleted_cannot_be_changed(service: Service) -> None:
    topic = service.topic("orders")
    _delete(service, topic)
    response = service.client.patch(
        f"/v1/topics/{topic['id']}", json={"display_name": "A"}, headers=service.owner
    )
    assert (response.status_code, response.json()["code"]) == (409, "BEING_DELETED")


def test_a_protected_topic_stays_until_the_protection_is_off(service: Service) -> None:
    topic = service.topic("orders", deletion_protection=True)
    refused = _delete(service, topic, "?force=true&reason=because")
    assert (refused.status_code, refused.json()["code"]) == (409, "DELETION_PROTECTED")
    path = f"/v1/topics/{topic['id']}"
    service.client.patch(path, json={"spec": {"deletion_protection": False}}, headers=service.owner)
    assert _delete(service, service.get(path)).status_code == 202


@pytest.mark.parametrize("reason", ["", "+", "%E2%80%8B", "%E3%85%A4%C2%AD"])
def test_force_needs_a_reason_that_can_be_seen(service: Service, reason: str) -> None:
    refused = _delete(service, service.topic("orders"), f"?force=true&reason={reason}")
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["code"] == "FORCE_AND_REASON"


def test_a_dry_run_of_a_delete_checks_all_and_marks_nothing(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.node.topics[topic["id"]].partitions[0].log_end = 70
    service.node.topics[topic["id"]].partitions[0].bytes = 7000
    service.clock.advance(3600)
    service.settle()
    known = service.get(f"/v1/topics/{topic['id']}")
    response = _delete(service, topic, "?dry_run=true")
    assert response.status_code == 200
    assert response.json()["dry_run"] is True
    assert response.json()["plan"]["data_loss"] == {"bytes": "7000", "records": "70"}
    assert service.get(f"/v1/topics/{topic['id']}") == known


def test_a_delete_with_a_key_is_replayed_as_it_was_answered(service: Service) -> None:
    topic = service.topic("orders")
    headers = {**service.owner, "If-Match": '"r1"', "Idempotency-Key": "0123456789abcdef"}
    path = f"/v1/topics/{topic['id']}"
    first = service.client.delete(path, headers=headers)
    again = service.client.delete(path, headers=headers)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()


def test_a_damaged_partition_is_named_and_given_up_by_force_only(service: Service) -> None:
    topic = service.topic("orders", partitions=2)
    service.settle()
    service.node.topics[topic["id"]].partitions[1].state = "DAMAGED"
    service.node.topics[topic["id"]].partitions[1].reason = "JOURNAL_ROTTEN"
    _delete(service, topic)
    service.loop.run_once(["topic"])
    message = _message(service.get(f"/v1/topics/{topic['id']}"), "Deleting")
    assert "1 (JOURNAL_ROTTEN)" in message
    assert "force=true" in message
    forced = _delete(service, topic, "?force=true&reason=TICKET-1%3A+disk+lost")
    assert forced.json()["force_reason"] == "TICKET-1: disk lost"
    service.settle()
    assert _gone(service, topic)
    assert service.node.given_up == {topic["id"]: "TICKET-1: disk lost"}
    events = service.get(f"/v1/audit-events?target_id={topic['id']}")["items"]
    assert [each["action"] for each in events] == [
        "topics.create", "topics.delete", "topics.delete", "topics.purge",
    ]  # fmt: skip
    assert events[2]["after"]["force_reason"] == "TICKET-1: disk lost"
    assert events[3]["principal_id"] == "reconciler"


def test_force_is_for_owners_and_a_refusal_is_audited(service: Service) -> None:
    topic = service.topic("orders")
    headers = {**service.key("editor"), "If-Match": '"r1"'}
    path = f"/v1/topics/{topic['id']}"
    refused = service.client.delete(f"{path}?force=true&reason=x", headers=headers)
    assert (refused.status_code, refused.json()["permission"]) == (403, "objects:force")
    last = service.get("/v1/audit-events?page_size=1000")["items"][-1]
    assert (last["action"], last["outcome"]) == ("objects.force", "DENIED")
    assert service.client.delete(path, headers=headers).status_code == 202


@pytest.mark.parametrize(
    "query", ["?force=true", "?reason=x", "?force=true&reason=%20", "?force=true&reason=a%0Ab"]
)
def test_force_without_a_plain_reason_is_refused(service: Service, query: str) -> None:
    response = _delete(service, service.topic("orders"), query)
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "?reason"


def test_too_many_deletes_at_once_need_a_confirmation_that_names_how_many(
    service: Service,
) -> None:
    topics = [service.topic(f"t{number}") for number in range(BREAKER_OBJECTS_MIN + 2)]
    for topic in topics[:BREAKER_OBJECTS_MIN]:
        assert _delete(service, topic).status_code == 202
    refused = _delete(service, topics[-1])
    assert (refused.status_code, refused.json()["code"]) == (409, "DELETION_BREAKER")
    assert (refused.json()["deletions"], refused.json()["limit"]) == (6, 5)
    assert _delete(service, topics[-1], "?confirm_deletions=5").status_code == 409
    assert _delete(service, topics[-1], "?confirm_deletions=6").status_code == 202
    service.settle()
    assert list(service.node.topics) == [topics[-2]["id"]]


def test_marks_that_no_request_made_open_the_breaker_and_nothing_is_deleted(
    service: Service,
) -> None:
    topics = [service.topic(f"t{number}") for number in range(8)]
    service.settle()
    for topic in topics:
        with service.database.write() as session:
            session.execute(
                update(Topic).where(Topic.id == topic["id"]).values(deleted_at=service.clock())
            )
    service.clock.advance(3600)
    service.settle()
    assert len(service.node.topics) == 8
    body = service.get(f"/v1/topics/{topics[0]['id']}")
    assert _condition(body, "Deleting") == ("True", "DeletionBreakerOpen")
    assert "8 of 8" in _message(body, "Deleting")


@given(st.integers(0, 10_000))
def test_the_breaker_lets_a_tenth_pass_and_never_fewer_than_five(objects: int) -> None:
    assert breaker_limit(objects) == max(5, objects // 10)


def test_a_gone_topic_keeps_its_row_and_its_last_figures(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.node.topics[topic["id"]].partitions[0].log_end = 70
    _delete(service, topic)
    service.settle()
    with service.database.read() as session:
        row = session.get_one(Topic, topic["id"])
        assert (row.name, row.purged_at, row.finalizers) == ("orders", service.clock(), [])
    last = service.get(f"/v1/audit-events?target_id={topic['id']}")["items"][-1]
    assert last["action"] == "topics.purge"
    assert last["before"]["status"]["partitions"][0]["end_offset"] == "70"


def _delete(service: Service, topic: Body, query: str = "") -> Response:
    headers = {**service.owner, "If-Match": f'"{topic["etag"]}"'}
    return service.client.delete(f"/v1/topics/{topic['id']}{query}", headers=headers)


def _gone(service: Service, topic: Body) -> bool:
    path = f"/v1/topics/{topic['id']}"
    return service.client.get(path, headers=service.owner).status_code == 404


def _wait_until_let_go(service: Service, topics: list[Body]) -> None:
    wished = {topic["id"] for topic in topics}
    wait_until(lambda: wished <= service.node.deleted.keys(), "the cluster has let them go", 120)


def _claims(service: Service) -> list[Claim]:
    with service.database.write() as session:
        return claim(session, kinds=["topic"], owner="sleeper", now=service.clock())


def _quietly(service: Service, item: Claim) -> None:
    """A pass whose worker dies before it records anything."""
    service.loop._pass(item)


def _condition(body: Body, type_: str) -> tuple[str, str]:
    found = next(each for each in body["status"]["conditions"] if each["type"] == type_)
    return found["status"], found["reason"]


def _message(body: Body, type_: str) -> str:
    conditions = body["status"]["conditions"]
    return str(next(each["message"] for each in conditions if each["type"] == type_))
