"""Topics that are left alone: paused ones are nobody's business, unmanaged ones are looked at."""

import pytest
from httpx2 import Response
from pydantic import JsonValue as Json

from tests.support.builders.control_plane import Body, Service


def test_no_call_of_any_kind_is_made_while_a_topic_is_paused(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    paused = _patch(service, topic, paused=True)
    assert paused.status_code == 200, "there is nothing to wait for"
    service.settle()
    service.node.asked.clear()
    _patch(service, topic, codec="zstd", partitions=2)
    for _ in range(3):
        service.settle()
        service.clock.advance(3600)
    service.get(f"/v1/topics/{topic['id']}?live=true")
    service.get("/v1/topics?live=true")
    service.get(f"/v1/explain?object={topic['id']}")
    assert _asked_about(service, topic) == set()
    for aspect in ("Ready", "Synced", "Reachable", "RetentionEnforced"):
        assert _condition(service, topic, aspect) == ("Unknown", "Paused")
    assert service.node.topics[topic["id"]].spec.codec == "none"


def test_a_topic_that_is_no_longer_paused_converges(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    _patch(service, topic, paused=True)
    _patch(service, topic, codec="zstd", partitions=2)
    service.settle()
    resumed = _patch(service, topic, paused=False)
    assert resumed.status_code == 202
    service.settle()
    assert _condition(service, topic, "Ready") == ("True", "PartitionsReady")
    spec = service.node.topics[topic["id"]].spec
    assert (spec.codec, spec.partitions) == ("zstd", 2)
    assert _operation(service, resumed)["state"] == "SUCCEEDED"


@pytest.mark.parametrize("alone", [{"paused": True}, {"managed": False}])
def test_a_topic_that_was_left_alone_for_long_is_polled_soon_again(
    service: Service, alone: dict[str, Json]
) -> None:
    topic = service.topic("orders")
    service.settle()
    _patch(service, topic, **alone)
    _patch(service, topic, codec="zstd")
    service.settle()
    service.clock.advance(24 * 3600)
    service.settle()
    service.node.partition_state = "RECOVERING"
    _patch(service, topic, paused=None, managed=None)
    service.settle()
    service.node.partition_state = "READY"
    for each in service.node.topics[topic["id"]].partitions:
        each.state = "READY"
    service.clock.advance(0.1)
    service.settle()
    assert _condition(service, topic, "Ready") == ("True", "PartitionsReady")


def test_a_topic_that_is_made_paused_is_not_made_until_it_is_resumed(service: Service) -> None:
    service.settle()
    topic = service.topic("orders", paused=True)
    service.settle()
    assert service.node.topics == {}
    _patch(service, topic, paused=None)
    service.settle()
    assert _condition(service, topic, "Ready") == ("True", "PartitionsReady")


def test_an_unmanaged_topic_is_looked_at_and_not_changed(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    _patch(service, topic, managed=False)
    service.settle()
    service.node.asked.clear()
    _patch(service, topic, codec="zstd")
    service.settle()
    service.clock.advance(3600)
    service.settle()
    assert _asked_about(service, topic) == {"DescribeRequest"}
    assert _condition(service, topic, "Synced") == ("False", "Unmanaged")
    assert "codec" in _message(service, topic, "Synced")
    _patch(service, topic, managed=True)
    service.settle()
    assert _condition(service, topic, "Synced") == ("True", "Applied")
    assert service.node.topics[topic["id"]].spec.codec == "zstd"


def test_an_unmanaged_topic_that_is_as_wished_is_ready(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    _patch(service, topic, managed=False)
    service.settle()
    assert _condition(service, topic, "Ready") == ("True", "PartitionsReady")
    # Somebody else made it so.
    changed = _patch(service, topic, codec="lz4")
    service.node.topics[topic["id"]].spec.codec = "lz4"
    service.settle()
    assert _operation(service, changed)["state"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("alone", "code"),
    [({"paused": True}, "TOPIC_PAUSED"), ({"managed": False}, "TOPIC_UNMANAGED")],
)
def test_an_operation_that_nobody_goes_on_with_says_so(
    service: Service, alone: dict[str, Json], code: str
) -> None:
    topic = service.topic("orders")
    service.settle()
    _patch(service, topic, **alone)
    changed = _patch(service, topic, codec="zstd")
    assert changed.status_code == 202
    service.settle()
    operation = _operation(service, changed)
    assert (operation["state"], operation["error"]["code"]) == ("FAILED", code)
    assert "stored" in operation["error"]["detail"]


@pytest.mark.parametrize(
    ("alone", "code"),
    [({"paused": True}, "TOPIC_PAUSED"), ({"managed": False}, "TOPIC_UNMANAGED")],
)
def test_what_is_left_alone_is_neither_deleted_nor_purged(
    service: Service, alone: dict[str, Json], code: str
) -> None:
    topic = service.topic("orders")
    service.settle()
    etag = f'"{_patch(service, topic, **alone).json()["etag"]}"'
    headers = {**service.owner, "If-Match": etag}
    path = f"/v1/topics/{topic['id']}"
    body = {"partitions": [{"index": 0, "before_offset": "1"}]}
    stream = f"/v1/streams/{topic['stream_id']}"
    of_stream = {**service.owner, "If-Match": f'"{service.get(stream)["etag"]}"'}
    for answer in (
        service.client.delete(path, headers=headers),
        service.client.delete(f"{path}?force=true&reason=gone", headers=headers),
        service.client.delete(f"{stream}?cascade=true", headers=of_stream),
        service.client.post(f"{path}:purge", json=body, headers=headers),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, code), answer.text
        assert answer.json()["topics"] == [topic["id"]]


def test_a_purge_that_was_not_carried_out_before_the_pause_never_is(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    service.node.topics[topic["id"]].partitions[0].log_end = 10
    path = f"/v1/topics/{topic['id']}"
    headers = {**service.owner, "If-Match": f'"{service.get(path)["etag"]}"'}
    body = {"partitions": [{"index": 0, "before_offset": "5"}]}
    purged = service.client.post(f"{path}:purge", json=body, headers=headers)
    assert purged.status_code == 202, purged.text
    _patch(service, topic, paused=True)
    service.settle()
    operation = _operation(service, purged)
    assert (operation["state"], operation["error"]["code"]) == ("FAILED", "TOPIC_PAUSED")
    assert "The purge is not stored" in operation["error"]["detail"]
    _patch(service, topic, paused=False)
    service.settle()
    assert service.node.purged == []


def test_a_hold_is_put_on_a_paused_topic_and_its_release_waits(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    _patch(service, topic, paused=True)
    hold = service.hold(topic)
    service.settle()
    path = f"/v1/legal-holds/{hold['id']}"
    assert service.get(path)["state"] == "ACTIVE"
    headers = {**service.owner, "If-Match": f'"{service.get(path)["etag"]}"'}
    assert service.client.delete(path, headers=headers).status_code == 202
    service.settle()
    found = service.get(path)
    assert found["state"] == "RELEASING"
    ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    assert "paused" in ready["message"]
    assert service.node.holds[hold["id"]].active
    _patch(service, topic, paused=False)
    service.clock.advance(31)
    service.settle()
    assert service.get(path)["state"] == "RELEASED"


def test_an_explanation_says_that_a_topic_is_paused(service: Service) -> None:
    topic = service.topic("orders")
    service.settle()
    _patch(service, topic, paused=True)
    service.settle()
    said = service.get(f"/v1/explain?object={topic['id']}")
    assert "Paused (spec.paused: reconciliation is paused)" in said["summary"]


def test_a_node_that_does_not_show_a_topic_yet_is_not_told_twice(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    service.node.unseen.add(str(topic["id"]))
    sent = len(service.node.applied)
    for _ in range(10):
        service.settle()
        service.clock.advance(0.5)
    assert _condition(service, topic, "Synced") == ("False", "NotAppliedYet")
    assert len(service.node.applied) == sent + 1
    service.node.unseen.clear()
    service.clock.advance(5)
    service.settle()
    assert _condition(service, topic, "Ready") == ("True", "PartitionsReady")
    assert len(service.node.applied) == sent + 1


def test_a_topic_that_stays_unseen_is_told_again(service: Service) -> None:
    service.settle()
    topic = service.topic("orders")
    service.settle()
    sent = len(service.node.applied)
    del service.node.topics[topic["id"]]
    service.clock.advance(3600)
    service.settle()
    assert len(service.node.applied) == sent + 1
    assert _condition(service, topic, "Ready") == ("True", "PartitionsReady")


def _asked_about(service: Service, topic: Body) -> set[str]:
    """The kinds of calls that named the topic, in whatever member."""
    asked = service.node.asked
    return {type(each).__name__ for each in asked if str(topic["id"]) in str(each)}


def _patch(service: Service, topic: Body, **spec: Json) -> Response:
    answer = service.client.patch(
        f"/v1/topics/{topic['id']}", json={"spec": spec}, headers=service.owner
    )
    assert answer.status_code in (200, 202), answer.text
    return answer


def _operation(service: Service, answer: Response) -> Body:
    return service.get(f"/v1/operations/{answer.headers['Operation-Id']}")


def _found(service: Service, topic: Body, aspect: str) -> Body:
    conditions = service.get(f"/v1/topics/{topic['id']}")["status"]["conditions"]
    return next(each for each in conditions if each["type"] == aspect)


def _condition(service: Service, topic: Body, aspect: str) -> tuple[str, str]:
    found = _found(service, topic, aspect)
    return found["status"], found["reason"]


def _message(service: Service, topic: Body, aspect: str) -> str:
    return str(_found(service, topic, aspect)["message"])
