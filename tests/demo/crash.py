"""Act *crash*: kill -9 of the node while producing; nothing acknowledged is lost or there twice."""

import time
from collections.abc import Iterator
from itertools import islice

import headrace
from api.embedded.flights import flights
from tests.demo.flights import row_of
from tests.support.stories.stage import Figures, Stage, account

TOPIC = "departures-crash"
COUNT = 100_000
KILL_AT = 50_000


def records_with_a_crash(stage: Stage, killed: list[int]) -> Iterator[headrace.Record]:
    """The first flights; in the middle the node dies."""
    now_us = time.time_ns() // 1000
    for row, (key, value) in enumerate(islice(flights(), COUNT)):
        if row == KILL_AT:
            killed.append(stage.platform.kill_node())
        yield headrace.Record(key=key, value=value, timestamp_us=now_us)


def play_crash(stage: Stage) -> tuple[Figures, str]:
    """Produce through the crash, wait for the node to be back, read everything."""
    killed: list[int] = []
    with stage.connect() as client:
        client.admin.create_topic(TOPIC, partitions=2)
        topic = client.topic(TOPIC)
        began = time.monotonic()
        acks = topic.send_many(records_with_a_crash(stage, killed))
        seconds = time.monotonic() - began
        acked = sum(ack.count for ack in acks)
        stage.platform.wait_for_another_node(killed[0])
        rows = [
            row_of(value)
            for batch in topic.consume(start="earliest", until="end").batches()
            for value in batch.values
            if value is not None
        ]
    stage.topics.append(TOPIC)
    duplicates, missing = account(rows, COUNT)
    figures: Figures = {
        "records_produced": acked,
        "records_consumed": len(rows),
        "duplicates": duplicates,
        "missing": missing,
        "acked_lost": missing,
        "seconds_through_the_crash": round(seconds, 3),
    }
    assert (acked, duplicates, missing) == (COUNT, 0, 0), figures
    return figures, f"node killed at record {KILL_AT:,} of {COUNT:,}: 0 lost, 0 twice"
