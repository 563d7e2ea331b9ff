"""`headrace topic purge`: what goes is told first, and nothing goes unasked."""

import pytest

from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import ScriptedApi

TELLS = "3 records, about 96 bytes"


@pytest.fixture(autouse=True)
def filled(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 0
    headrace("topic", "create", "orders")
    api.seen.clear()


def purges(api: ScriptedApi) -> list[object]:
    return [
        seen.body["partitions"]
        for seen in api.seen
        if seen.path.endswith(":purge") and not seen.query.get("dry_run")
    ]


def test_a_purge_tells_what_goes_and_goes_on_with_the_name(headrace: Run, api: ScriptedApi) -> None:
    unasked = headrace("topic", "purge", "orders", "--before", "2")
    assert (unasked.code, purges(api)) == (2, [])
    assert "--yes to purge the topic without confirmation" in unasked.err
    done = headrace(
        *["topic", "purge", "orders", "--before", "2"], stdin=b"orders\n", terminal=True
    )
    assert done.code == 0, done.err
    assert f"This purges the topic orders and deletes:\n  {TELLS}\n" in done.err
    assert done.err.endswith("Purged.\n")
    assert purges(api) == [[{"index": 0, "before_offset": "2"}]]
    assert [seen.headers["if-match"] for seen in api.seen if seen.method == "POST"][-1] == "r1"


def test_end_is_where_the_log_ends_now(headrace: Run, api: ScriptedApi) -> None:
    assert headrace("topic", "purge", "orders", "--before", "end", "--yes").code == 0
    assert purges(api) == [[{"index": 0, "before_offset": "3"}]]
    assert {"live": "true"} in [seen.query for seen in api.seen if seen.method == "GET"]


def test_a_dry_run_takes_nothing(headrace: Run, api: ScriptedApi) -> None:
    done = headrace("topic", "purge", "orders", "--before", "end", "--dry-run")
    assert (done.code, purges(api)) == (0, [])
    dry = "Dry run: no records of the topic orders were deleted."
    assert done.err == f"{dry}\nWould be deleted: {TELLS}.\n"
    heads, row = done.out.splitlines()
    assert heads.split("  ") == ["PARTITION", "START BEFORE", "START AFTER"]
    assert row.split() == ["0", "0", "3"]


def test_what_the_cluster_refuses_is_told_with_its_code(headrace: Run, api: ScriptedApi) -> None:
    error = {"code": "TOPIC_HELD", "detail": "partition 0 of tp_0 is held"}
    api.purge_ends = {"state": "FAILED", "error": error}
    done = headrace("topic", "purge", "orders", "--before", "2", "--yes")
    assert done.code == 5
    assert "TOPIC_HELD" in done.err
    assert "partition 0 of tp_0 is held" in done.err


def test_what_is_no_offset_is_refused_before_anything_is_sent(
    headrace: Run, api: ScriptedApi
) -> None:
    assert headrace("topic", "purge", "orders", "--before", "yesterday", "--yes").code == 8
    assert headrace("topic", "purge", "orders", "--yes").code == 2
    assert purges(api) == []


def test_partitions_that_nobody_has_seen_are_not_guessed(headrace: Run, api: ScriptedApi) -> None:
    api.is_seen = False
    refused = headrace("topic", "purge", "orders", "--before", "end", "--yes")
    assert (refused.code, purges(api)) == (8, [])
    assert "headrace explain tp_" in refused.err
