"""What was and will be deleted, as it is typed."""

import json

import pytest

from tests.headrace.cli.conftest import Run
from tests.headrace.scripted_api import NOW, ScriptedApi


@pytest.fixture(autouse=True)
def filled(headrace: Run, api: ScriptedApi) -> None:
    api.reads_until_ready = 0
    headrace("topic", "create", "known")
    api.seen.clear()


def test_the_plan_says_what_is_due_until_when_and_what_is_left(headrace: Run) -> None:
    done = headrace("retention", "plan", "known", "--days", "7", "-o", "json")
    assert (done.code, json.loads(done.out)) == (
        0,
        {
            "topic": "default/known",
            "topic_id": "tp_0",
            "as_of": NOW,
            "days": 7,
            "items": [
                {
                    "until": "2026-11-27T12:00:00Z",
                    "bytes": "100",
                    "records": "1",
                    "live_bytes": "3996",
                },
                {
                    "until": "2026-11-28T12:00:00Z",
                    "bytes": "200",
                    "records": "1",
                    "live_bytes": "3796",
                },
            ],
        },
    )
    assert "300 bytes of default/known will be deleted within 7 days" in done.err
    assert "Legal holds keep 512 bytes" in done.err
    assert "whole segments" in done.err


def test_a_plan_looks_a_month_ahead_at_most(headrace: Run) -> None:
    done = headrace("retention", "plan", "known", "--days", "30", "-o", "json")
    assert len(json.loads(done.out)["items"]) == 3
    assert headrace("retention", "plan", "known", "--days", "31").code == 2


def test_a_report_lists_deletions_and_partitions_and_sums_them_beside(
    headrace: Run, api: ScriptedApi
) -> None:
    done = headrace("retention", "report", "--topic", "known", "--cause", "size", "-o", "csv")
    assert api.seen[-1].query == {"topic_id": "tp_0", "cause": "size"}
    header, trim, partition = done.out.splitlines()
    assert header.startswith("topic,partition,cause,deleted,bytes")
    assert trim.startswith(f"default/known,0,size,{NOW},1024,10,0,9,0")
    assert partition.startswith("default/known,0,,,0,0,0,9,4096")
    assert "Deleted by size: 1024 bytes in 1 deletion" in done.err
    assert "UNBOUNDED: 2" in done.err


def test_a_partition_without_records_has_no_last_offset(headrace: Run, api: ScriptedApi) -> None:
    row = {"topic": "default/known", "partition": 0, "cause": ""}
    rows = [
        {**row, "first_offset": "0", "last_offset": "-1"},
        {**row, "first_offset": "40", "last_offset": "39"},
    ]
    answer = {"summary": {"deleted": [], "violations": {}}, "items": rows, "as_of": NOW}
    api.answers.append((200, {**answer, "run_id": "run_1"}))
    lines = headrace("retention", "report", "-o", "csv").out.splitlines()[1:]
    assert [line.split(",")[6:8] for line in lines] == [["0", "empty"], ["40", "empty"]]


def test_before_any_run_the_next_step_is_named(headrace: Run, api: ScriptedApi) -> None:
    api.answers.append((200, {"summary": {"deleted": [], "violations": {}}, "items": []}))
    done = headrace("retention", "report")
    assert done.code == 0
    assert "headrace report run retention --wait" in done.err
