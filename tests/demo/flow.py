"""Act *flow*: a spec over REST becomes a topic; every flight flows through it to a group."""

import time
import urllib.request

import headrace
from api.embedded.flights import flights
from headrace.admin.readiness import is_ready
from tests.demo.flights import FLIGHTS_COUNT, row_of
from tests.support.stories.stage import Figures, Stage, account

TOPIC = "departures"
PARTITIONS = 4


def desired(stage: Stage) -> float:
    """POST the topic as anybody could, wait until it is Ready; seconds from desired to Ready."""
    profile = stage.platform.profile()
    body = f'{{"name": "{TOPIC}", "spec": {{"partitions": {PARTITIONS}}}}}'.encode()
    request = urllib.request.Request(
        f"{profile.api_url}/v1/topics?wait=30s",
        data=body,
        headers={
            "authorization": f"Bearer {profile.key}",
            "content-type": "application/json",
            "idempotency-key": "demo-flow-departures",
        },
        method="POST",
    )
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201, answer.status  # 202 would mean: accepted, not yet there
    seconds = time.monotonic() - began
    with stage.connect() as client:
        assert is_ready(client.admin.topic(TOPIC))
    return seconds


def play_flow(stage: Stage) -> tuple[Figures, str]:
    """Produce all flights, consume them with a group, account for every row."""
    ready_seconds = desired(stage)
    records = [headrace.Record(key=key, value=value, timestamp_us=0) for key, value in flights()]
    now_us = time.time_ns() // 1000
    records = [record._replace(timestamp_us=now_us) for record in records]
    with stage.connect() as client:
        topic = client.topic(TOPIC)
        began = time.monotonic()
        acks = topic.send_many(records)
        produce_seconds = time.monotonic() - began
        acked = sum(ack.count for ack in acks)
        assert acked == FLIGHTS_COUNT, f"{acked} of {FLIGHTS_COUNT} acknowledged"

        began = time.monotonic()
        rows: list[int] = []
        consumer = topic.consume(group="board", start="earliest", until="end")
        for batch in consumer.batches():
            rows.extend(row_of(value) for value in batch.values if value is not None)
        consume_seconds = time.monotonic() - began
    stage.topics.append(TOPIC)
    duplicates, missing = account(rows, FLIGHTS_COUNT)
    assert (duplicates, missing) == (0, 0), f"duplicates {duplicates}, missing {missing}"
    figures: Figures = {
        "records_produced": acked,
        "records_consumed": len(rows),
        "produce_records_per_second": round(acked / produce_seconds),
        "consume_records_per_second": round(len(rows) / consume_seconds),
        "topic_ready_seconds": round(ready_seconds, 3),
        "duplicates": duplicates,
        "missing": missing,
        "acked_lost": missing,
    }
    return figures, (
        f"{acked:,} records in at {figures['produce_records_per_second']:,}/s, "
        f"out at {figures['consume_records_per_second']:,}/s"
    )
