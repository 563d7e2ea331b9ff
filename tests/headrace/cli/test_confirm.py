"""Deletions tell what goes, ask for the name, and are never done unasked by mistake."""

import pytest

from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi, problem


@pytest.fixture(autouse=True)
def filled(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 0
    headrace("stream", "create", "billing")
    headrace("topic", "create", "billing/orders")
    headrace("key", "create", "robot")
    api.seen.clear()


def deletes(api: ScriptedApi) -> list[str]:
    return [seen.path for seen in api.seen if seen.method == "DELETE"]


def test_a_deletion_tells_what_goes_and_goes_on_with_the_name(
    headrace: Run, api: ScriptedApi
) -> None:
    done = headrace("topic", "delete", "billing/orders", stdin=b"orders\n", terminal=True)
    assert done.code == 0
    assert done.err.splitlines()[:2] == [
        "This deletes the topic orders, including:",
        "  3 records in 1 partition, 96 bytes",
    ]
    assert done.err.endswith("Type orders to confirm: Deleted.\n")
    assert api.topics == []


def test_another_name_deletes_nothing(headrace: Run, api: ScriptedApi) -> None:
    done = headrace("topic", "delete", "billing/orders", stdin=b"yes\n", terminal=True)
    assert done.code == 1
    assert "NOT_CONFIRMED" in done.err
    assert deletes(api) == []


def test_where_nobody_can_answer_nothing_is_deleted_without_yes(
    headrace: Run, api: ScriptedApi
) -> None:
    done = headrace("topic", "delete", "billing/orders", stdin=b"orders\n")
    assert (done.code, done.out) == (2, "")
    assert "--yes" in done.err
    assert deletes(api) == []


def test_yes_asks_nothing_and_waits_until_it_is_gone(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_gone = 3
    done = headrace("topic", "delete", "billing/orders", "--yes")
    assert (done.code, done.err) == (0, "Deleted.\n")
    assert [s.method for s in api.seen][-5:] == ["DELETE", "GET", "GET", "GET", "GET"]


def test_without_waiting_it_says_where_to_look(headrace: Run) -> None:
    done = headrace("topic", "delete", "billing/orders", "--yes", "--no-wait")
    assert "headrace explain tp_0" in done.err


def test_a_deletion_that_takes_too_long_is_exit_code_7_and_goes_on(
    headrace: Run, api: ScriptedApi
) -> None:
    api.reads_until_gone = 10_000
    done = headrace("topic", "delete", "billing/orders", "--yes", "--timeout", "200ms")
    assert done.code == 7
    assert "still being deleted" in done.err


def test_a_stream_tells_its_topics_and_what_they_hold(headrace: Run, api: ScriptedApi) -> None:
    done = headrace("stream", "delete", "billing", "--cascade", stdin=b"billing\n", terminal=True)
    assert done.code == 0
    assert "  1 topic\n  3 records in 1 partition, 96 bytes\n" in done.err
    (desired,) = [seen for seen in api.seen if seen.method == "DELETE"]
    assert desired.query == {"cascade": "true"}
    assert desired.headers["if-match"] == "r1"


def test_a_project_tells_streams_topics_and_keys(headrace: Run) -> None:
    done = headrace("project", "delete", "team", stdin=b"team\n", terminal=True)
    assert "  1 stream, 1 topic, 1 key\n" in done.err


def test_partitions_that_nobody_counted_are_told_as_such(
    headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.headrace.scripted_api.SEEN", {"state": "UNKNOWN", "bytes": "0"})
    done = headrace("topic", "delete", "billing/orders", stdin=b"orders\n", terminal=True)
    assert "an unknown number of records in 1 partition" in done.err


def test_force_and_the_breaker_are_passed_on(headrace: Run, api: ScriptedApi) -> None:
    desired = ["--yes", "--force-reason", "disk lost", "--confirm-deletions", "7"]
    headrace("topic", "delete", "billing/orders", *desired)
    (sent,) = [seen for seen in api.seen if seen.method == "DELETE"]
    assert sent.query == {"force": "true", "reason": "disk lost", "confirm_deletions": "7"}


@pytest.mark.parametrize(
    ("code", "hint", "flag"),
    [
        (
            "DELETION_PROTECTED",
            "Set spec.deletion_protection",
            "alter billing/orders --set deletion_protection=false",
        ),
        ("DELETION_BREAKER", "send confirm_deletions=7 too", "pass --confirm-deletions 7"),
        ("CHILDREN_EXIST", "send cascade=true", "pass --cascade"),
    ],
)
def test_a_refused_deletion_is_exit_code_5_and_told_in_flags(
    headrace: Run, api: ScriptedApi, code: str, hint: str, flag: str
) -> None:
    def refused(seen: object) -> tuple[int, dict[str, object]]:
        status, body = problem(409, code, "Refused")
        return status, {**body, "hint": hint}

    api._delete = refused  # type: ignore[method-assign]
    done = headrace("topic", "delete", "billing/orders", "--yes")
    assert done.code == 5
    assert code in done.err
    assert flag in done.err
    assert hint not in done.err


def test_a_revoked_key_is_told_by_its_role(headrace: Run, api: ScriptedApi) -> None:
    done = headrace("key", "revoke", "robot", stdin=b"robot\n", terminal=True)
    assert done.code == 0
    assert done.err.startswith("This revokes the key robot and affects:\n")
    assert "all clients that use it (role editor)" in done.err
    assert deletes(api) == ["/api-keys/key_1"]
