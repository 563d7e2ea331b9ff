"""Legal holds, as they are typed."""

import json

import pytest

from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi, problem

GOLDEN = {
    "id": "hold_1",
    "generation": 1,
    "etag": "r1",
    "created_at": "2026-11-27T12:00:00.000000Z",
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "reason": "Confirmed", "message": ""}],
        "observed_generation": 1,
        "missing_partitions": [],
        "partitions": [{"index": 0, "missing": False, "held_from": "0", "held_bytes": "4096"}],
    },
    "topic_id": "tp_0",
    "case_id": "C-1",
    "reason": "a suit",
    "partition": 0,
    "from_offset": "7",
    "topic": "default/orders",
    "created_by": "key_1",
    "state": "ACTIVE",
}
WISH = ["orders", "--case", "C-1", "--reason", "a suit", "--partition", "0", "--from-offset", "7"]


@pytest.fixture(autouse=True)
def filled(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 0
    headrace("topic", "create", "orders")
    api.seen.clear()


def test_create_waits_until_the_hold_is_in_force_and_prints_the_body_of_rest(
    headrace: Run, api: ScriptedApi
) -> None:
    made = headrace("hold", "create", *WISH, "-o", "json")
    assert (made.code, json.loads(made.out)) == (0, GOLDEN)
    (desired,) = [seen.body for seen in api.seen if seen.method == "POST"]
    assert desired == {
        "topic_id": "tp_0", "case_id": "C-1", "reason": "a suit", "partition": 0,
        "from_offset": "7",
    }  # fmt: skip
    assert api.seen[-1].path == "/legal-holds/hold_1"


def test_without_waiting_it_says_that_the_hold_is_not_in_force(headrace: Run) -> None:
    done = headrace("hold", "create", *WISH, "--no-wait", "-o", "json")
    assert json.loads(done.out)["state"] == "PROPAGATING"
    assert "headrace hold get hold_1" in done.err


def test_a_hold_is_for_a_case_and_a_reason(headrace: Run, api: ScriptedApi) -> None:
    assert headrace("hold", "create", "orders", "--case", "C-1").code == 2
    assert headrace("hold", "create", "orders", "--reason", "a suit").code == 2
    assert api.seen == []


def test_get_and_list_show_the_scope_and_the_state(headrace: Run, api: ScriptedApi) -> None:
    headrace("hold", "create", *WISH)
    shown = headrace("hold", "get", "hold_1", "-o", "table").out
    assert "0, from 7" in shown
    assert "4096" in shown
    api.seen.clear()
    listed = headrace(
        *["hold", "list", "--topic", "orders", "--case", "C-1", "--state", "ACTIVE", "-o", "name"]
    )
    assert listed.out == "hold_1\n"
    wanted = {"topic_id": "tp_0", "case_id": "C-1", "state": "ACTIVE"}
    assert api.seen[-1].query.items() >= wanted.items()


def test_a_release_tells_what_goes_and_asks_for_the_id(headrace: Run, api: ScriptedApi) -> None:
    headrace("hold", "create", *WISH)
    unasked = headrace("hold", "release", "hold_1")
    assert unasked.code == 2
    assert "--yes" in unasked.err
    wrong = headrace("hold", "release", "hold_1", stdin=b"C-1\n", terminal=True)
    assert "nothing was released" in wrong.err
    assert [seen for seen in api.seen if seen.method == "DELETE"] == []
    done = headrace("hold", "release", "hold_1", stdin=b"hold_1\n", terminal=True)
    assert done.code == 0
    assert "This releases the hold hold_1 and affects:" in done.err
    assert "4096 bytes of default/orders kept beyond its retention policy" in done.err
    (sent,) = [seen for seen in api.seen if seen.method == "DELETE"]
    assert (sent.path, sent.headers["if-match"]) == ("/legal-holds/hold_1", "r1")
    assert json.loads(headrace("hold", "get", "hold_1", "-o", "json").out)["state"] == "RELEASED"


def test_a_topic_that_is_held_is_exit_code_5_and_names_the_hold(
    headrace: Run, api: ScriptedApi
) -> None:
    def refused(seen: object) -> tuple[int, dict[str, object]]:
        return problem(409, "TOPIC_HELD", "The topic orders is held by hold_1 (case C-1).")

    api._delete = refused  # type: ignore[method-assign]
    done = headrace("topic", "delete", "orders", "--yes")
    assert done.code == 5
    assert "hold_1" in done.err
