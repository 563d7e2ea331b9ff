"""Altering, explaining, groups and names, as they are typed."""

import json

import pytest

from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi, Seen, named, problem
from tests.headrace.scripted_node import ScriptedNode


@pytest.fixture(autouse=True)
def filled(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 0
    headrace("topic", "create", "orders")
    api.seen.clear()


def test_alter_sends_what_changes_with_the_etag_it_read(headrace: Run, api: ScriptedApi) -> None:
    desired = ["--partitions", "4", "--retention", "1h", "--set", "retention_bytes="]
    assert headrace("topic", "alter", "orders", *desired).code == 0
    (sent,) = altered(api)
    spec = {"retention_bytes": None, "retention_ms": "3600000", "partitions": 4}
    assert sent.body == {"spec": spec}
    assert sent.headers["if-match"] == "r1"


LOSS = {
    "records": "12",
    "bytes_estimate": "1200",
    "partitions": 2,
    "oldest_at": "2026-11-26T12:00:00Z",
}
TELLS = "12 records in 2 partitions, about 1200 bytes, the oldest from 2026-11-26T12:00:00Z"


def test_a_shorter_retention_tells_what_goes_and_goes_on_with_the_name(
    headrace: Run, api: ScriptedApi
) -> None:
    api.loss = dict(LOSS)
    desired = ["topic", "alter", "orders", "--retention", "1h"]
    unasked = headrace(*desired)
    assert (unasked.code, altered(api)) == (2, [])
    assert "--yes to change the topic without confirmation" in unasked.err
    other = headrace(*desired, stdin=b"payments\n", terminal=True)
    assert ("nothing was changed" in other.err, altered(api)) == (True, [])
    done = headrace(*desired, stdin=b"orders\n", terminal=True)
    assert (done.code, len(altered(api))) == (0, 1), done.err
    told = f"This changes the topic orders and deletes:\n  {TELLS}\n  Whole segments go.\n"
    assert done.err.startswith(told)
    unasked = headrace(*desired, "--yes")
    assert (unasked.code, len(altered(api))) == (0, 2)
    assert unasked.err == f"Will be deleted: {TELLS}\n  Whole segments go.\n"


def test_a_dry_run_of_alter_changes_nothing_and_what_is_unknown_is_not_nothing(
    headrace: Run, api: ScriptedApi
) -> None:
    desired = ["topic", "alter", "orders", "--set", "retention_bytes=1"]
    dry = "Dry run: the topic orders was not changed.\n"
    assert headrace(*desired, "--dry-run").err == f"{dry}No records would be deleted now.\n"
    api.loss = dict.fromkeys(LOSS, "unknown")
    assert headrace(*desired, "--dry-run").err.startswith(
        f"{dry}Would be deleted: an unknown number of records"
    )
    assert (headrace(*desired).code, altered(api)) == (2, [])
    api.loss = LOSS | {"records": "0"}
    # Nothing goes, so nobody is asked.
    assert (headrace(*desired).code, len(altered(api))) == (0, 1)


def test_a_dry_run_of_alter_shows_each_setting_before_and_after(
    headrace: Run, api: ScriptedApi
) -> None:
    desired = ["topic", "alter", "orders", "--dry-run", "--retention", "1h"]
    done = headrace(*desired, "--partitions", "4")
    assert done.out.splitlines() == [
        "SETTING       BEFORE  AFTER",
        "partitions    1       4",
        "retention_ms  7d      1h",
    ]
    # Programs get the body that REST answers with.
    body = json.loads(headrace(*desired, "-o", "json").out)
    assert body["status"]["effective"]["retention_ms"] == "3600000"
    same = headrace("topic", "alter", "orders", "--dry-run", "--retention", "7d")
    assert (same.out, "No settings would change." in same.err) == ("", True)
    assert altered(api) == []


def altered(api: ScriptedApi) -> list[Seen]:
    """The changes that were no trial."""
    return [each for each in api.seen if each.method == "PATCH" and not each.query.get("dry_run")]


def test_alter_waits_for_the_generation_it_made(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 3
    assert headrace("topic", "alter", "orders", "--partitions", "4").code == 0
    assert [seen.method for seen in api.seen][-2:] == ["GET", "GET"]


def test_alter_without_a_change_is_a_mistake_of_usage(headrace: Run) -> None:
    assert headrace("topic", "alter", "orders").code == 2


def test_a_topic_that_changed_meanwhile_is_exit_code_5(headrace: Run, api: ScriptedApi) -> None:
    def refused(seen: object) -> tuple[int, dict[str, object]]:
        return problem(412, "ETAG_MISMATCH", "It was changed meanwhile")

    api._alter_topic = refused  # type: ignore[method-assign]
    assert headrace("topic", "alter", "orders", "--partitions", "4").code == 5


def test_a_name_that_fits_two_objects_is_refused_with_their_ids(
    headrace: Run, api: ScriptedApi
) -> None:
    api.streams += [named("st_1", "twice"), named("st_2", "twice")]
    done = headrace("stream", "describe", "twice")
    assert done.code == 8
    assert "st_1, st_2" in done.err
    assert headrace("stream", "describe", "st_2").code == 0


@pytest.mark.parametrize("kind", ["org", "project", "stream", "key", "node"])
def test_what_is_not_there_is_exit_code_3_and_says_where_to_look(headrace: Run, kind: str) -> None:
    done = headrace(kind, "describe", "nope")
    assert done.code == 3
    assert f"headrace {kind} list" in done.err


def test_explain_shows_summary_steps_conditions_and_operations(headrace: Run) -> None:
    out = headrace("explain", "topic/orders").out
    assert "orders is ready: generation 1 is in effect." in out
    heads = [line.split()[0] for line in out.splitlines() if line.isupper() or "WHAT" in line]
    assert heads == ["AT", "CONDITION", "OPERATION"]


def test_the_secret_of_a_key_is_printed_once(headrace: Run, api: ScriptedApi) -> None:
    made = headrace("key", "create", "robot", "--role", "viewer", "-o", "json")
    assert json.loads(made.out)["secret"] == "hr_user_new"
    assert "hr_user_new" not in headrace("key", "describe", "robot", "-o", "json").out
    api.seen.clear()
    assert headrace("key", "create", "first", "--organization", "default").code == 0
    (sent,) = [seen for seen in api.seen if seen.method == "POST"]
    assert sent.body["organization_id"] == "org_1"
    assert headrace("key", "create", "first", "--organization", "nope").code == 3


def test_a_group_is_described_by_its_members(headrace: Run, node: ScriptedNode) -> None:
    headrace("produce", "single", stdin=b"a\nb\nc\n")
    headrace("consume", "single", "-g", "g", "--from", "start", "-n", "2")
    body = json.loads(headrace("group", "describe", "g", "-o", "json").out)
    assert (body["name"], body["members"]) == ("g", [])
    (row,) = json.loads(headrace("group", "lag", "g", "-o", "json").out)["items"]
    assert (row["topic"], row["committed"], row["log_end"], row["lag"]) == ("single", "2", "3", "1")


def test_a_monitor_ends_with_1_when_the_lag_is_too_long(headrace: Run) -> None:
    headrace("produce", "single", stdin=b"a\nb\nc\n")
    headrace("consume", "single", "-g", "g", "--from", "start", "-n", "1")
    assert headrace("group", "lag", "g", "--exit-on-lag", "2").code == 0
    done = headrace("group", "lag", "g", "--exit-on-lag", "1", "-o", "name")
    assert (done.code, done.out) == (1, "single[0]\n")
    assert "LAG_TOO_LONG" in done.err


def test_a_list_says_where_the_lag_of_a_group_is_that_nobody_reads_in(headrace: Run) -> None:
    headrace("produce", "single", stdin=b"a\nb\n")
    headrace("consume", "single", "-g", "g", "--from", "start", "-n", "1")
    assert "headrace group lag NAME" in headrace("group", "list").err
    assert headrace("group", "list", "--no-lag").err == ""


def test_a_topic_that_is_there_already_is_told_with_the_way_on(headrace: Run) -> None:
    done = headrace("topic", "create", "orders")
    assert done.code == 5
    assert "headrace topic describe orders; or pass --if-not-exists" in done.err


def test_a_group_that_never_was_is_exit_code_3(headrace: Run) -> None:
    assert headrace("group", "describe", "nobody").code == 3
