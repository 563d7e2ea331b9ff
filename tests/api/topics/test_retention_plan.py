"""A shorter retention: its dry run says what is beyond it now, and never guesses."""

import grpc
import pytest
from pydantic import JsonValue as Json

from api.db.database import microseconds
from api.topics.retention_plan import BY_SIZE, KEYS_MOVE, UNREAD, WHOLE_SEGMENTS
from dataplane.wire import node_pb2
from headrace.wire import stream_pb2
from tests.support.builders.control_plane import Body, Service
from tests.support.processes.scripted_node import refuse

HOUR = 3_600_000
UNKNOWN = dict.fromkeys(("records", "bytes_estimate", "partitions", "oldest_at"), "unknown")
TEN_HOURS_AGO = "2026-03-01T02:00:00.000000Z"


def test_what_is_older_than_the_new_age_goes_and_the_oldest_that_stays_is_named(
    service: Service,
) -> None:
    topic = _filled(service)
    plan = _plan(service, topic, retention_ms=str(4 * HOUR + 1), partitions=3)
    assert plan["data_loss"] == {
        "records": "12",
        "bytes_estimate": "1200",
        "partitions": 2,
        "oldest_at": TEN_HOURS_AGO,
    }
    assert plan["retention"]["holds"] == []
    assert plan["retention"]["partitions"][1] == {
        "index": 1,
        "records": "6",
        "bytes_estimate": "600",
        "held_records": "0",
        "oldest_at": TEN_HOURS_AGO,
        "oldest_kept_at": "2026-03-01T08:00:00.000000Z",
    }
    assert plan["partitions"] == {"before": 2, "after": 3}
    assert plan["warnings"][0] == KEYS_MOVE
    assert plan["warnings"][-2:] == [WHOLE_SEGMENTS, UNREAD]
    everything = _plan(service, topic, retention_ms="1")
    assert everything["data_loss"]["records"] == "20"
    assert everything["retention"]["partitions"][0]["oldest_kept_at"] is None
    nothing = _plan(service, topic, retention_ms=str(11 * HOUR))
    assert nothing["data_loss"] == {
        "records": "0",
        "bytes_estimate": "0",
        "partitions": 0,
        "oldest_at": None,
    }
    assert nothing["warnings"] == []
    assert nothing["retention"]["partitions"][0]["oldest_kept_at"] == TEN_HOURS_AGO


def test_what_goes_by_size_is_an_estimate_and_young_records_keep_their_promise(
    service: Service,
) -> None:
    topic = _filled(service, min_retention_ms=str(8 * HOUR))
    plan = _plan(service, topic, retention_bytes="300")
    assert [each["records"] for each in plan["retention"]["partitions"]] == ["2", "2"]
    assert plan["retention"]["partitions"][0]["oldest_kept_at"] is None
    assert BY_SIZE in plan["warnings"]
    roomy = _plan(service, topic, retention_bytes="850")
    assert roomy["data_loss"] | {"oldest_at": ""} == {
        "records": "2",
        "bytes_estimate": "200",
        "partitions": 2,
        "oldest_at": "",
    }
    assert _plan(service, topic, retention_bytes="1000")["data_loss"]["records"] == "0"


def test_a_hold_that_keeps_some_is_named_and_its_records_do_not_go(service: Service) -> None:
    topic = _filled(service)
    hold = service.hold(topic, partition=0, from_offset="2")
    service.hold(topic, "later", partition=1, from_offset="9")
    plan = _plan(service, topic, retention_ms=str(4 * HOUR + 1))
    assert (plan["data_loss"]["records"], plan["retention"]["holds"]) == ("8", [hold["id"]])
    assert [each["held_records"] for each in plan["retention"]["partitions"]] == ["4", "0"]
    assert (
        f"Legal holds keep 4 records that would otherwise be deleted: {hold['id']} (case C-1)."
        in (plan["warnings"])
    )


def test_what_the_node_does_not_say_is_unknown_and_no_error(service: Service) -> None:
    topic = _filled(service)
    hold = service.hold(topic, partition=1)
    service.node.mute = {1}
    plan = _plan(service, topic, retention_ms=str(4 * HOUR + 1))
    assert plan["data_loss"] == UNKNOWN
    assert [each["records"] for each in plan["retention"]["partitions"]] == ["6", "unknown"]
    assert plan["retention"]["holds"] == [hold["id"]]
    assert "1 of 2 partitions did not answer" in plan["warnings"][0]
    service.node.mute.clear()
    # One that recovers has figures of nothing yet.
    service.node.topics[topic["id"]].partitions[0].state = "RECOVERING"
    assert _plan(service, topic, retention_bytes="1")["data_loss"] == UNKNOWN
    service.node.describe.append(refuse(grpc.StatusCode.UNAVAILABLE, "GONE"))
    silent = _plan(service, topic, retention_ms="1")
    assert (silent["data_loss"], silent["retention"]["partitions"]) == (UNKNOWN, [])
    assert "no node answered in time" in silent["warnings"][0]
    service.settings.node.admin_key_file.unlink()
    assert _plan(service, topic, retention_ms="1")["data_loss"] == UNKNOWN


@pytest.mark.parametrize(
    "spec",
    [{"retention_ms": str(8 * 24 * HOUR)}, {"retention_bytes": None}, {"codec": "lz4"}],
)
def test_who_lets_nothing_go_has_no_such_plan_and_no_node_is_asked(
    service: Service, spec: dict[str, Json]
) -> None:
    topic = _filled(service)
    service.node.asked.clear()
    dry = _patch(service, topic, spec, "?dry_run=true")
    assert (dry["dry_run"], "plan" in dry) == (True, False)
    # Nor is it asked for what is not a trial, nor about what is paused.
    assert "plan" not in _patch(service, topic, {"retention_ms": "5", "paused": True})
    paused = service.get(f"/v1/topics/{topic['id']}")
    plan = _patch(service, paused, {"retention_ms": "4"}, "?dry_run=true")["plan"]
    assert (plan["data_loss"], service.node.asked) == (UNKNOWN, [])
    assert "the topic is paused" in plan["warnings"][0]


def test_a_topic_of_many_partitions_is_asked_about_each_of_them_once(service: Service) -> None:
    topic = service.topic("wide", partitions=130)
    service.settle()
    service.node.asked.clear()
    assert _plan(service, topic, retention_ms="1")["data_loss"]["records"] == "0"
    kinds = [type(each) for each in service.node.asked]
    assert kinds.count(stream_pb2.ListOffsetsRequest) == 130
    assert kinds.count(node_pb2.DescribeRequest) == 1
    assert service.node.tokens == {
        f"Bearer {service.settings.node.admin_key_file.read_text(encoding='ascii')}"
    }


def _filled(service: Service, **spec: Json) -> Body:
    """A topic with two partitions of ten records of 100 bytes, one an hour until an hour ago."""
    topic = service.topic("orders", partitions=2, **spec)
    service.settle()
    now = microseconds(service.clock())
    for each in service.node.topics[topic["id"]].partitions:
        times = [now - age * HOUR * 1000 for age in range(10, 0, -1)]
        service.node.appended[each.index] = times
        each.log_end, each.bytes, each.oldest_us = 10, 1000, times[0]
    return topic


def _plan(service: Service, topic: Body, **spec: Json) -> Body:
    return _patch(service, topic, spec, "?dry_run=true")["plan"]


def _patch(service: Service, topic: Body, spec: dict[str, Json], query: str = "") -> Body:
    headers = {**service.owner, "If-Match": f'"{topic["etag"]}"'}
    path = f"/v1/topics/{topic['id']}{query}"
    response = service.client.patch(path, json={"spec": spec}, headers=headers)
    assert response.status_code in (200, 202), response.text
    return response.json()
