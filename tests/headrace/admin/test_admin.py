"""The REST client over real HTTP: readiness, repetition, paging, typed errors."""

import asyncio
from collections.abc import Iterator

import pytest

from headrace.admin.admin import Admin, AsyncAdmin
from headrace.admin.readiness import is_observed, is_ready
from headrace.errors import (
    Conflict,
    DeadlineExceeded,
    HeadraceError,
    Invalid,
    QuotaExceeded,
    TopicNotFound,
    Unreachable,
)
from headrace.settings import Settings
from tests.headrace.scripted_api import ScriptedApi, problem


@pytest.fixture
def admin(api: ScriptedApi) -> Iterator[Admin]:
    admin = Admin(Settings(bootstrap=(), api_url=api.url, key="hr_user_test"))
    yield admin
    admin.close()


def test_a_topic_is_returned_when_it_is_ready(admin: Admin, api: ScriptedApi) -> None:
    api.reads_until_ready = 3
    made = admin.create_topic("billing/orders", partitions=4, spec={"codec": "zstd"})
    assert is_ready(made)
    (post,) = [s for s in api.seen if s.method == "POST"]
    assert post.body == {
        "name": "orders",
        "stream": "billing",
        "spec": {"codec": "zstd", "partitions": 4},
    }
    assert post.headers["authorization"] == "Bearer hr_user_test"


def test_readiness_looks_at_the_generation() -> None:
    status = {"observed_generation": 1, "conditions": [{"type": "Ready", "status": "True"}]}
    assert is_ready({"generation": 1, "status": status})  # type: ignore[dict-item]
    assert not is_ready({"generation": 2, "status": status})  # type: ignore[dict-item]


def test_what_does_not_become_ready_says_why(admin: Admin, api: ScriptedApi) -> None:
    api.reads_until_ready = 10_000
    with pytest.raises(DeadlineExceeded, match="Ready=Unknown: PENDING"):
        admin.create_topic("orders", timeout="300ms")


def test_a_post_whose_answer_was_lost_creates_one_thing(admin: Admin, api: ScriptedApi) -> None:
    api.lose_answers = 1
    admin.create_topic("orders", wait=False)
    posts = [s for s in api.seen if s.method == "POST"]
    assert len(posts) == 2
    assert len({s.headers["idempotency-key"] for s in posts}) == 1
    assert len(api.topics) == 1


def test_an_existing_name_is_a_conflict_unless_that_is_fine(admin: Admin) -> None:
    admin.create_topic("orders")
    with pytest.raises(Conflict, match="NAME_TAKEN"):
        admin.create_topic("orders")
    assert admin.create_topic("orders", if_not_exists=True)["name"] == "orders"


def test_pausing_returns_once_no_worker_is_at_it(admin: Admin, api: ScriptedApi) -> None:
    admin.create_topic("orders")
    paused = admin.alter_topic("orders", {"paused": True})
    assert is_observed(paused)
    assert not is_ready(paused)


def test_waiting_for_what_a_paused_topic_never_becomes_ends_at_once(
    admin: Admin, api: ScriptedApi
) -> None:
    admin.create_topic("orders", spec={"paused": True})
    with pytest.raises(Conflict, match="headrace topic alter default/orders --no-paused") as ended:
        admin.alter_topic("orders", {"codec": "zstd"}, timeout="60s")
    assert ended.value.code == "TOPIC_PAUSED"


def test_lists_are_read_over_all_pages(admin: Admin, api: ScriptedApi) -> None:
    for i in range(5):
        admin.create_topic(f"t{i}", wait=False)
    api.page_size = 2
    assert [t["name"] for t in admin.topics()] == [f"t{i}" for i in range(5)]


def test_a_missing_topic_says_how_to_create_it(admin: Admin) -> None:
    with pytest.raises(TopicNotFound, match="headrace topic create nope"):
        admin.topic("nope")


def test_a_missing_topic_is_answered_with_the_nearest_name(admin: Admin) -> None:
    for name in ("orders", "billing/invoices"):
        admin.create_topic(name, wait=False)
    with pytest.raises(TopicNotFound, match='Did you mean "orders"'):
        admin.topic("ordres")
    with pytest.raises(TopicNotFound, match='Did you mean "billing/invoices"'):
        admin.topic("billing/invoice")
    with pytest.raises(TopicNotFound) as refused:
        admin.topic("weather")
    assert "mean" not in str(refused.value)


def test_problems_are_typed(admin: Admin, api: ScriptedApi) -> None:
    api.answers = [problem(400, "INVALID_REQUEST", "partitions is above 1024")]
    with pytest.raises(Invalid, match="above 1024"):
        admin.create_topic("orders")
    api.answers = [problem(403, "QUOTA_EXCEEDED", "100 topics at most")]
    with pytest.raises(QuotaExceeded):
        admin.create_topic("orders")


def test_an_unavailable_database_is_waited_for(admin: Admin, api: ScriptedApi) -> None:
    api.answers = [problem(503, "UNAVAILABLE", "The database is busy")] * 2
    assert admin.topics() == []
    assert len(api.seen) == 3


def test_nobody_listening_is_unreachable_and_names_the_address() -> None:
    admin = Admin(Settings(bootstrap=(), api_url="http://127.0.0.1:1", key=None))
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        admin.request("GET", "/topics", timeout=0.1)
    admin.close()


def test_a_report_can_be_waited_for_and_its_failure_is_raised(
    admin: Admin, api: ScriptedApi
) -> None:
    assert admin.run_report("usage", wait=True)["state"] == "SUCCEEDED"
    failed: dict[str, object] = {
        "id": "run_2",
        "state": "FAILED",
        "error": {"code": "SPARK", "message": "no memory"},
    }
    api.answers = [(202, failed)]
    with pytest.raises(HeadraceError, match="no memory"):
        admin.run_report("usage", wait=True)


def test_a_report_that_is_waited_for_tells_every_change_of_its_state(admin: Admin) -> None:
    told: list[object] = []
    admin.run_report(wait=True, changed=lambda run: told.append(run["state"]))
    assert told == ["QUEUED", "SUCCEEDED"]


def test_a_named_project_is_resolved_once(api: ScriptedApi) -> None:
    admin = Admin(Settings(bootstrap=(), api_url=api.url, key=None, project="team"))
    admin.topics()
    admin.create_topic("orders")
    admin.close()
    assert api.topics[0]["name"] == "orders"
    assert len([s for s in api.seen if s.path == "/projects"]) == 1
    assert [s.query["project_id"] for s in api.seen if s.path == "/topics" and s.query] == ["prj_1"]


def test_the_async_face_has_the_same_calls(api: ScriptedApi) -> None:
    async def main() -> list[object]:
        admin = AsyncAdmin(Settings(bootstrap=(), api_url=api.url, key=None))
        await admin.create_topic("orders")
        await admin.create_stream("billing")
        found: list[object] = [t["name"] for t in await admin.topics()]
        found += [s["name"] for s in await admin.streams()]
        found.append((await admin.usage(by="topic"))["group_by"])
        found.append((await admin.create_key("ci", role="viewer"))["secret"])
        await admin.close()
        return found

    assert asyncio.run(main()) == ["orders", "billing", "topic", "hr_user_new"]
