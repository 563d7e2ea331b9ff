"""The present, as the nodes tell it: each caller's part of it, and nothing that nobody knows."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fastapi import FastAPI

from api.auth.permissions import Caller
from api.db.database import Database
from api.live.observation import (
    QUERIES_MAX,
    GroupObservation,
    Observation,
    Scope,
    TopicObservation,
    live_body,
    point_between,
    point_body,
    position_queries,
)
from api.live.poller import Poller, Snapshot
from api.node.pool import NodePool
from api.node.positions import Position, PositionQuery, lag_of
from dataplane.wire import node_pb2
from tests.support.builders.control_plane import Body, Service

OURS, SIDE, THEIRS = Scope("org_1", "prj_1"), Scope("org_1", "prj_2"), Scope("org_2", "prj_3")
OWNER = Caller("key_1", "org_1", role="owner")
OPERATOR = Caller("key_2", "org_1", role="owner", operator=True)
CONFINED = Caller("key_3", "org_1", role="owner", project_id="prj_2", operator=True)
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def topic(scope: Scope, name: str, ever: int) -> TopicObservation:
    return TopicObservation(
        scope, name, stored_bytes=ever // 2, ever_bytes=ever, ever_records=ever // 10
    )


def observed_at(
    seconds: float,
    *topics: TopicObservation,
    groups: tuple[GroupObservation, ...] = (),
    fetched: dict[str, tuple[int, int]] | None = None,
    silent: int = 0,
) -> Observation:
    return Observation(
        BEGIN + timedelta(seconds=seconds),
        seconds,
        {f"tp_{each.name}": each for each in topics},
        groups,
        {"nd_1": (7, 0)} if fetched is None else fetched,
        ("STORAGE_FULL",),
        silent,
    )


def test_rates_are_what_grew_divided_by_the_time_between_two_looks() -> None:
    before = observed_at(0, topic(OURS, "a", 1000), fetched={"nd_1": (7, 500)})
    now = observed_at(
        4, topic(OURS, "a", 3000), topic(OURS, "new", 400), fetched={"nd_1": (7, 900)}
    )
    shown = live_body(now, point_between(before, now), OPERATOR)
    assert (shown.now.in_bytes, shown.now.in_records, shown.now.out_bytes) == (600, 60, 100)
    assert [(each.name, each.in_bytes) for each in shown.busiest] == [("a", 500), ("new", 100)]


def test_a_caller_sees_its_organization_and_a_confined_key_its_project() -> None:
    before = observed_at(0, topic(OURS, "a", 0), topic(SIDE, "b", 0), topic(THEIRS, "c", 0))
    now = observed_at(
        1,
        topic(OURS, "a", 10),
        topic(SIDE, "b", 20),
        topic(THEIRS, "c", 40),
        groups=(
            GroupObservation(OURS, "mine", reads=True, lag=3),
            GroupObservation(SIDE, "side", reads=True, lag=5, topic_ids=("tp_b", "tp_gone")),
            GroupObservation(THEIRS, "theirs", reads=True, lag=99),
        ),
    )
    point = point_between(before, now)
    owner, confined = live_body(now, point, OWNER), live_body(now, point, CONFINED)
    assert (owner.now.in_bytes, owner.topics, owner.groups) == (30, 2, 2)
    assert owner.worst_lag is not None
    # Its topic grows by two records a second.
    assert (owner.worst_lag.group, owner.worst_lag.seconds) == ("side", 2)
    assert (confined.now.in_bytes, confined.topics, confined.stored_bytes) == (20, 1, 10)
    # What nodes give out is of all organizations: the operator's business.
    assert (owner.now.out_bytes, confined.now.out_bytes, owner.warnings) == (None, None, [])
    assert live_body(now, point, OPERATOR).warnings == ["STORAGE_FULL"]


def test_the_history_is_summed_by_project_and_each_caller_sees_its_part() -> None:
    many = [topic(OURS, f"a{number}", 10 * number) for number in range(100)]
    before = observed_at(0, *(topic(OURS, each.name, 0) for each in many), topic(SIDE, "b", 0))
    now = observed_at(1, *many, topic(SIDE, "b", 20), topic(THEIRS, "c", 40))
    poller = Poller()
    poller._publish(before, now)
    poller._publish(now, now)
    (kept,) = poller.history()
    assert kept.into == {OURS: (49500, 4950), SIDE: (20, 2), THEIRS: (40, 4)}
    told = {caller: point_body(kept, caller).in_bytes for caller in (OWNER, CONFINED)}
    assert told == {OWNER: 49520, CONFINED: 20}


def test_what_was_not_asked_or_answered_is_unknown_and_never_0() -> None:
    first = observed_at(0, groups=(GroupObservation(OURS, "g", reads=True, lag=None),))
    shown = live_body(first, None, OPERATOR)
    assert (shown.now.in_bytes, shown.worst_lag, shown.groups_unknown) == (None, None, 1)
    restarted = observed_at(1, fetched={"nd_1": (8, 20)})
    assert point_between(first, restarted).sums.out_bytes is None
    gone = observed_at(1, silent=1)
    assert live_body(gone, point_between(first, gone), OWNER).now.in_bytes is None
    query = PositionQuery(16, 16, 1, 0)
    assert lag_of({}, [query]) is None
    assert lag_of({query: Position(None, 2, 9)}, [query]) == 7
    assert lag_of({query: Position(4, 6, 9)}, [query]) == 3
    assert lag_of({}, []) is None


def test_what_nobody_told_of_for_a_while_has_not_grown_from_nothing() -> None:
    ours, theirs = topic(OURS, "a", 1 << 40), topic(THEIRS, "c", 1000)
    silent, back = observed_at(2, silent=1), observed_at(4, ours, fetched={"nd_1": (7, 0)})
    shown = live_body(back, point_between(silent, back), OWNER)
    assert (shown.now.in_bytes, shown.busiest, shown.stored_bytes) == (None, [], 1 << 39)
    poller = Poller()
    poller._publish(observed_at(0, ours), silent)
    poller._publish(silent, back)
    assert [point_body(each, OWNER).in_bytes for each in poller.history()] == [None]
    # One partition that does not answer at the first look hides its topic alone.
    hidden = replace(observed_at(0, theirs), unknown=frozenset({"tp_a"}))
    point = point_between(hidden, observed_at(1, ours, topic(THEIRS, "c", 1010)))
    assert point.topics == {"tp_c": (10, 1)}


def test_questions_are_bounded_and_small_groups_come_first() -> None:
    reply = node_pb2.DescribeReply()
    for name, partitions in (("huge", QUERIES_MAX), ("small", 2)):
        row = reply.topics.add(topic_id=name, number=16, created_revision=1)
        for index in range(partitions):
            row.partitions.add(index=index)
    reply.groups.add(group=20, topic_ids=["huge"])
    reply.groups.add(group=21, topic_ids=["small"])
    reply.groups.add(group=22, topic_ids=["gone"])
    assert {number: len(asked) for number, asked in position_queries(reply).items()} == {21: 2}


def events(service: Service, query: str = "?looks=1") -> dict[str, Body]:
    text = service.client.get(f"/v1/live{query}", headers=service.owner).text
    parts = [part.split("\n") for part in text.split("\n\n") if part.startswith("event: ")]
    return {name.removeprefix("event: "): json.loads(data[6:]) for name, data in parts}


def test_the_stream_tells_what_the_nodes_hold_of_the_callers_organization(
    service: Service,
) -> None:
    made = service.topic("orders")
    service.settle()
    service.node.topics[made["id"]].partitions[0].bytes = 42
    service.node.groups.append(
        node_pb2.GroupStatus(
            group=16,
            organization_id=made["organization_id"],
            project_id=made["project_id"],
            name="billing",
            state="STABLE",
            topic_ids=[made["id"]],
        )
    )
    seen = events(service)
    assert seen["history"] == {"points": []}
    assert (seen["live"]["topics"], seen["live"]["stored_bytes"]) == (1, "42")
    # This node answers no queries about positions: the lag is unknown.
    assert (seen["live"]["groups"], seen["live"]["groups_unknown"]) == (1, 1)
    assert "worst_lag" not in seen["live"]


def test_a_key_that_is_revoked_while_it_looks_sees_nothing_more(
    service: Service, application: FastAPI
) -> None:
    class Followed(Poller):
        """Revokes the key between the first look and the second."""

        async def follow(
            self, database: Database, nodes: NodePool
        ) -> AsyncGenerator[Snapshot | None, None]:
            seen = Snapshot(1, observed_at(0), None)
            yield seen
            await asyncio.to_thread(revoke)
            yield seen

    key = service.key("owner")
    key_id = service.keys["owner-0"]

    def revoke() -> None:
        etag = service.get(f"/v1/api-keys/{key_id}")["etag"]
        headers = {**service.owner, "If-Match": f'"{etag}"'}
        answer = service.client.delete(f"/v1/api-keys/{key_id}", headers=headers)
        assert answer.status_code in (202, 204), answer.text

    state = application.state
    usual, state.live = state.live, Followed()
    try:
        text = service.client.get("/v1/live", headers=key).text
    finally:
        state.live = usual
    names = [line for line in text.splitlines() if line.startswith("event: ")]
    assert names == ["event: history", "event: live", "event: refused"]
    last = json.loads(text.strip().splitlines()[-1].removeprefix("data: "))
    assert (last["status"], last["code"]) == (401, "UNAUTHENTICATED")


def test_a_cluster_that_does_not_answer_is_counted_as_silent(service: Service) -> None:
    service.settings.node.admin_key_file.unlink()
    assert events(service)["live"]["silent"] == 1


def test_one_task_looks_for_all_readers_and_ends_with_the_last(service: Service) -> None:
    async def follow_twice() -> tuple[int, int, bool]:
        poller = Poller()
        first = poller.follow(service.database, service.nodes)
        second = poller.follow(service.database, service.nodes)
        await anext(first)
        await anext(second)
        readers, looks = poller.readers, poller.looks
        await first.aclose()
        assert poller.is_looking()
        await second.aclose()
        return readers, looks, poller.is_looking()

    assert asyncio.run(follow_twice()) == (2, 1, False)


def test_a_task_that_ends_wakes_nobody_who_follows_the_next(service: Service) -> None:
    async def come_as_another_goes() -> tuple[int, bool]:
        poller = Poller()
        first = poller.follow(service.database, service.nodes)
        await anext(first)
        second = poller.follow(service.database, service.nodes)
        going = asyncio.ensure_future(first.aclose())
        coming = asyncio.ensure_future(anext(second))
        await going
        is_fresh = poller._fresh.is_set()
        seen = await coming
        await second.aclose()
        return seen.number if seen else 0, is_fresh

    assert asyncio.run(come_as_another_goes()) == (2, False)


def test_a_node_says_its_version_and_a_silent_one_is_not_reachable(service: Service) -> None:
    cluster = service.get("/v1/clusters")["items"][0]["id"]
    path = f"/v1/clusters/{cluster}/nodes"
    node = service.get(path)["items"][0]
    assert "said" not in node["status"]
    stranger = service.get(f"{path}?live=true")["items"][0]["status"]
    assert stranger["conditions"][0]["reason"] == "ANOTHER_NODE"
    service.node.node_id = node["id"]
    answered = service.get(f"{path}/{node['id']}?live=true")["status"]
    assert (answered["said"]["version"], answered["said"]["shards"]) == ("1.2.3", 2)
    assert answered["conditions"][0]["status"] == "True"
    service.settings.node.admin_key_file.unlink()
    silent = service.get(f"{path}?live=true")["items"][0]["status"]
    assert ("said" in silent, silent["conditions"][0]["status"]) == (False, "False")


def test_operations_are_listed_from_the_newest_page_by_page(service: Service) -> None:
    for name in ("a", "b", "c"):
        service.topic(name)
    oldest = [each["id"] for each in service.get("/v1/operations")["items"]]
    page = service.get("/v1/operations?newest_first=true&page_size=2")
    rest = service.get(
        f"/v1/operations?newest_first=true&page_size=1000&page_token={page['next_page_token']}"
    )
    assert [each["id"] for each in page["items"] + rest["items"]] == oldest[::-1]
