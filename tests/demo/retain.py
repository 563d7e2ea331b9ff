"""Act *retain*: a small topic lets its oldest go, a legal hold stops that, and the report tells."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import headrace
from api.embedded.flights import flights
from tests.support.processes.platform import wait_until
from tests.support.stories.stage import Figures, Stage

TOPIC = "departures-recent"
KEEP_BYTES = 8 << 20
SEGMENT_BYTES = 1 << 20
BEFORE, AFTER = 40_000, 20_000


def some(first: int, count: int) -> Iterator[headrace.Record]:
    """Flights from a row on."""
    for key, value in islice(flights(), first, first + count):
        yield headrace.Record(key=key, value=value, timestamp_us=0)


def hold(stage: Stage) -> str:
    """A hold of the topic, in force; its id."""
    desired = ("--case", "demo-1", "--reason", "an audit of the departures", "-o", "json")
    made = json.loads(stage.platform.cli("hold", "create", TOPIC, *desired).stdout)
    assert made["state"] == "ACTIVE", made
    return str(made["id"])


def start_of(client: headrace.Client, topic_id: str) -> int:
    """Where the topic's log begins now."""
    topic = client.admin.request("GET", f"/topics/{topic_id}", params={"live": "true"})
    status = topic["status"]
    assert isinstance(status, dict)
    partitions = status["partitions"]
    assert isinstance(partitions, list)
    (partition,) = partitions
    assert isinstance(partition, dict)
    return int(str(partition["start_offset"]))


def play_retain(stage: Stage) -> tuple[Figures, str]:
    """Produce beyond the limit, hold, produce again, run the report, look at it as a user does."""
    with stage.connect() as client:
        limits = {"retention_bytes": str(KEEP_BYTES), "segment_bytes": str(SEGMENT_BYTES)}
        made = client.admin.create_topic(TOPIC, partitions=1, spec=limits)
        topic_id = str(made["id"])
        topic = client.topic(TOPIC)
        topic.send_many(some(0, BEFORE))
        wait_until(lambda: start_of(client, topic_id) > 0, "the oldest segments go")
        held = hold(stage)
        kept_from = start_of(client, topic_id)
        topic.send_many(some(BEFORE, AFTER))
        assert start_of(client, topic_id) == kept_from, "the hold was broken"

    run = json.loads(
        stage.platform.cli("report", "run", "retention", "--wait", "-o", "json").stdout
    )
    totals = run["result"]["totals"]
    shown = json.loads(
        stage.platform.cli("retention", "report", "--topic", TOPIC, "-o", "json").stdout
    )
    deleted, blocked = int(totals["deleted_bytes"]), int(totals["hold_blocked_bytes"])
    went = [row for row in shown["items"] if row["cause"] == "size"]
    assert sum(int(row["deleted_bytes"]) for row in went) == deleted > 0, (went, totals)
    assert sum(int(row["deleted_records"]) for row in went) == kept_from, (went, kept_from)
    (standing,) = [row for row in shown["items"] if not row["cause"]]
    assert standing["hold_id"] == held, standing
    assert blocked > 0, totals
    plan = json.loads(
        stage.platform.cli("retention", "plan", TOPIC, "--days", "7", "-o", "json").stdout
    )
    assert plan["items"] == [], plan  # what is held is not due
    stage.topics.append(TOPIC)
    stage.reports.extend(sorted(Path(run["result"]["path"]).glob("*.html")))
    figures: Figures = {
        "retention_deleted_bytes": deleted,
        "retention_violations": int(totals["violations"]),
        "hold_blocked_bytes": blocked,
    }
    return figures, f"{deleted:,} bytes went by size, a hold keeps {blocked:,} more"
