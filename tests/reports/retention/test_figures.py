"""Which trims count, how old what went was, what lives by age, and what is due when.

Every scenario is a topic of its own and all of them are computed at once: what holds for one topic
must not depend on the others, and Spark plans once.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from reports.retention import figures
from reports.retention.figures import DAY_US
from reports.retention.partition_state import PLACES
from tests.reports.building import HOUR_US, TEN_US
from tests.reports.retention.building import (
    DAY_MS,
    REVISION,
    Stored,
    Trim,
    batches_frame,
    log_of,
    trims_frame,
)

MINUTE_US = HOUR_US // 60
# All logs and trims are told as of this moment.
NOW_US = TEN_US + 40 * DAY_US


def splits(trim: Trim, pieces: int) -> list[Trim]:
    """The same segments, gone one by one instead of at once."""
    size = trim.bytes // pieces
    step = (trim.last + 1) // pieces
    found = []
    for index in range(pieces):
        first = index * step
        last = trim.last if index == pieces - 1 else first + step - 1
        rest = trim.bytes - size * (pieces - 1) if index == pieces - 1 else size
        found.append(replace(trim, sequence=index + 1, first=first, last=last, bytes=rest))
    return found


def shuffled(trims: Sequence[Trim]) -> list[Trim]:
    """In another order, with copies."""
    found = [*trims, *trims[3:20]]
    random.Random(7).shuffle(found)
    return found


THREE = [Trim(1, 0, 9), Trim(2, 10, 19), Trim(3, 20, 29)]
MANY = [
    Trim(n + 1, 10 * n, 10 * n + 9, 1000 + n, newest_us=TEN_US + n * MINUTE_US) for n in range(40)
]
WHOLE = Trim(1, 0, 999, bytes=12_345)
TRIMS = {
    "three": THREE,
    "gap": [THREE[0], THREE[2]],
    "torn": [THREE[0], replace(THREE[1], first=12)],
    "headless": THREE[1:],
    "conflict": [THREE[0], replace(THREE[0], bytes=7)],
    "in_order": MANY,
    "shuffled": shuffled(MANY),
    "whole": [WHOLE],
    "split": splits(WHOLE, 7),
    # 1 record of 50 minutes, 3 of 30, 96 of 10: the median record was 10 minutes old.
    "weighed": [
        Trim(1, 0, 0, newest_us=TEN_US + 10 * MINUTE_US),
        Trim(2, 1, 3, newest_us=TEN_US + 30 * MINUTE_US),
        Trim(3, 4, 99, newest_us=TEN_US + 50 * MINUTE_US, oldest_us=TEN_US),
    ],
    # A purge inside a segment: nothing whole went, and nobody knows an age.
    "cut": [Trim(1, 0, 39, bytes=0, cause="purge", newest_us=0, records=0)],
    # The trim that takes the segment takes all of its bytes, and the records that were left.
    "cut_and_gone": [
        Trim(1, 0, 39, bytes=0, cause="purge", newest_us=0, records=0),
        Trim(2, 40, 99, bytes=5000, cause="purge", records=100),
    ],
}
NUMBERS = {name: 100 + index for index, name in enumerate(TRIMS)}


@dataclass(frozen=True)
class Deleted:
    """Rows of all scenarios of trims."""

    sums: dict[str, Row]
    gaps: list[Row]
    gaps_of_trimmed: list[Row]
    conflicts: set[int]

    def missing(self, name: str) -> list[tuple[int, int, int, int]]:
        """(after sequence, next sequence, first and last offset that went untold)."""
        return [tuple(row)[3:] for row in self.gaps if row.topic == NUMBERS[name]]


@pytest.fixture(scope="module")
def deleted(spark: SparkSession) -> Deleted:
    """Every scenario of trims, in one pass."""
    rows = [
        replace(trim, topic=NUMBERS[name], topic_id=f"tp_{name}")
        for name, trims in TRIMS.items()
        for trim in trims
    ]
    unique = figures.unique_trims(trims_frame(spark, rows)).cache()
    sums = figures.deleted(unique, ["topic_id", "cause"]).collect()
    return Deleted(
        {row.topic_id.removeprefix("tp_"): row for row in sums},
        figures.trim_gaps(unique, from_beginning=True).collect(),
        figures.trim_gaps(unique, from_beginning=False).collect(),
        {row.topic for row in unique.where("conflict").collect()},
    )


def test_contiguous_trims_have_no_gap_and_are_summed(deleted: Deleted) -> None:
    assert deleted.missing("three") == []
    row = deleted.sums["three"]
    assert (row.trims, row.records, row.first_offset, row.last_offset) == (3, 30, 0, 29)


def test_a_missing_trim_is_a_gap_with_its_offsets(deleted: Deleted) -> None:
    assert deleted.missing("gap") == [(1, 3, 10, 19)]


def test_offsets_that_do_not_join_are_a_gap_too(deleted: Deleted) -> None:
    assert deleted.missing("torn") == [(1, 2, 10, 11)]


def test_a_missing_first_trim_counts_only_while_the_topic_is_whole(deleted: Deleted) -> None:
    assert deleted.missing("headless") == [(0, 2, 0, 9)]
    found = {row.topic for row in deleted.gaps_of_trimmed}
    assert found == {NUMBERS["gap"], NUMBERS["torn"]}


def test_two_trims_of_one_id_that_differ_are_a_conflict_and_the_first_stands(
    deleted: Deleted,
) -> None:
    assert deleted.conflicts == {NUMBERS["conflict"]}
    assert deleted.sums["conflict"].bytes == THREE[0].bytes


def test_the_order_of_records_and_copies_of_trims_change_nothing(deleted: Deleted) -> None:
    assert tuple(deleted.sums["shuffled"])[1:] == tuple(deleted.sums["in_order"])[1:]
    assert deleted.missing("shuffled") == []


def test_a_trim_split_in_seven_says_what_the_whole_trim_says(deleted: Deleted) -> None:
    whole, split = deleted.sums["whole"].asDict(), deleted.sums["split"].asDict()
    assert (whole.pop("trims"), split.pop("trims")) == (1, 7)
    assert (whole.pop("topic_id"), split.pop("topic_id")) == ("tp_whole", "tp_split")
    assert split == whole


def test_the_median_age_is_that_of_the_median_record(deleted: Deleted) -> None:
    row = deleted.sums["weighed"]
    ages = (row.age_min_ms, row.age_p50_ms, row.age_max_ms)
    assert ages == (600_000, 600_000, 3_600_000)


def test_a_purge_inside_a_batch_counts_the_records_that_became_unreadable(deleted: Deleted) -> None:
    cut, gone = deleted.sums["cut"], deleted.sums["cut_and_gone"]
    assert (cut.bytes, cut.records, cut.first_offset, cut.last_offset) == (0, 40, 0, 39)
    assert (gone.bytes, gone.records, gone.first_offset, gone.last_offset) == (5000, 100, 0, 99)
    assert deleted.missing("cut_and_gone") == []


def test_what_was_cut_has_no_age(deleted: Deleted) -> None:
    row = deleted.sums["cut"]
    assert (row.age_min_ms, row.age_p50_ms, row.age_max_ms) == (None, None, None)


@dataclass(frozen=True)
class Log:
    """A log and the policy it stands under."""

    batches: list[Stored]
    retention_ms: int = -1
    retention_bytes: int = -1
    min_retention_ms: int = 0
    held_from: int | None = None
    log_start: int | None = None


def at(*ages_us: int, size: int = 100) -> list[Stored]:
    """Batches of these ages, in the order of the log."""
    return log_of([(size, NOW_US - age_us) for age_us in ages_us], base=50, before=7000)


# One batch every six hours for a day: 400 bytes a day, the oldest a day old.
DAILY = at(DAY_US - 1, 18 * HOUR_US, 12 * HOUR_US, 6 * HOUR_US, 0)
LOGS = {
    "unbounded": Log(DAILY),
    "aged": Log(at(2 * DAY_US, DAY_US, DAY_US - 1, 0), retention_ms=DAY_MS),
    "sized": Log(DAILY, retention_bytes=300),
    "promised": Log(DAILY, retention_bytes=300, min_retention_ms=2 * DAY_MS),
    "aeons": Log(DAILY, retention_ms=2**63 - 1, retention_bytes=300, min_retention_ms=2**63 - 1),
    "held": Log(at(3 * DAY_US, 2 * DAY_US, 2 * DAY_US), retention_ms=DAY_MS, held_from=60),
    "quiet": Log(at(9 * DAY_US, 9 * DAY_US), retention_bytes=200),
    "future": Log(at(-HOUR_US, -1), retention_ms=DAY_MS),
    # A hundred records in one batch, purged before the fortieth.
    "cut": Log([Stored(5000, NOW_US - 2 * DAY_US, 0, 5000, records=100)], DAY_MS, log_start=40),
    "undated": Log([Stored(100, 0, 50, 100)]),
    "year": Log(at(366 * DAY_US, 365 * DAY_US, 365 * DAY_US - 1, HOUR_US, HOUR_US - 1)),
}
LOG_NUMBERS = {name: 100 + index for index, name in enumerate(LOGS)}


@dataclass(frozen=True)
class Live:
    """Rows of all scenarios of logs."""

    logs: dict[int, Row]
    ages: list[Row]
    schedule: list[Row]

    def due(self, name: str) -> tuple[int, ...]:
        """Bytes due now, within 1 h, 24 h, 7 d."""
        row = self.logs[LOG_NUMBERS[name]]
        return tuple(row[f"bytes_{horizon}"] for horizon in figures.HORIZONS)

    def by_age(self, name: str) -> dict[str, int]:
        """Bytes of each bucket."""
        return {row.bucket: row.bytes for row in self.ages if row.topic == LOG_NUMBERS[name]}

    def days(self, name: str) -> dict[int, int]:
        """Bytes due on each day."""
        return {row.day: row.bytes for row in self.schedule if row.topic == LOG_NUMBERS[name]}


@pytest.fixture(scope="module")
def live(spark: SparkSession) -> Live:
    """Every scenario of logs, in one pass."""
    batches = [
        replace(batch, topic=LOG_NUMBERS[name])
        for name, log in LOGS.items()
        for batch in log.batches
    ]
    places = [
        {
            "topic": LOG_NUMBERS[name],
            "created_revision": REVISION,
            "partition": 0,
            "retention_ms": log.retention_ms,
            "retention_bytes": log.retention_bytes,
            "min_retention_ms": log.min_retention_ms,
            "held_from": log.held_from,
            "log_start": log.log_start,
        }
        for name, log in LOGS.items()
    ]
    stored = batches_frame(spark, batches)
    table = spark.createDataFrame(pa.Table.from_pylist(places, schema=PLACES))
    due = figures.placed(stored, table, NOW_US).cache()
    return Live(
        {row.topic: row for row in figures.logs(due, NOW_US).collect()},
        figures.ages(due, NOW_US).collect(),
        figures.schedule(due, NOW_US).collect(),
    )


def test_without_a_limit_nothing_is_ever_due(live: Live) -> None:
    assert live.due("unbounded") == (0, 0, 0, 0)
    assert live.days("unbounded") == {}


def test_a_batch_is_due_at_the_age_of_the_policy_and_not_a_microsecond_before(live: Live) -> None:
    assert live.due("aged") == (200, 300, 400, 400)
    assert live.days("aged") == {0: 200, 1: 200}


def test_size_takes_what_is_beyond_and_then_at_the_rate_of_the_last_day(live: Live) -> None:
    # 500 bytes live, 300 are kept: two batches now; at 500 a day the other three within a day.
    assert live.due("sized") == (200, 200, 500, 500)


def test_size_takes_nothing_before_the_promised_age(live: Live) -> None:
    # The oldest was a microsecond short of a day old, so its two days end after the next one.
    assert live.due("promised") == (0, 0, 0, 500)
    assert live.days("promised") == {2: 500}


def test_a_limit_that_no_calendar_holds_is_no_fault_and_never_due(live: Live) -> None:
    row = live.logs[LOG_NUMBERS["aeons"]]
    assert live.due("aeons") == (0, 0, 0, 0)
    assert (row.expired_bytes, row.aged_bytes) == (0, 0)


def test_what_is_held_is_never_due(live: Live) -> None:
    row = live.logs[LOG_NUMBERS["held"]]
    assert live.due("held") == (100, 100, 100, 100)
    assert (row.held_bytes, row.end_due_24h) == (200, 60)


def test_a_log_that_nobody_writes_to_does_not_fill_up(live: Live) -> None:
    assert live.due("quiet") == (0, 0, 0, 0)


def test_live_bytes_are_told_by_age_the_future_and_the_unknown_apart(live: Live) -> None:
    assert live.by_age("future") == {"future": 100, "<1h": 100}
    assert live.by_age("undated") == {"unknown": 100}
    assert live.by_age("year") == {">365d": 200, "90-365d": 100, "1-6h": 100, "<1h": 100}


def test_a_batch_that_the_start_cuts_lives_with_its_bytes_and_the_records_left(live: Live) -> None:
    row = live.logs[LOG_NUMBERS["cut"]]
    assert (row.live_bytes, row.live_records, row.log_start, row.log_end) == (5000, 60, 40, 100)
    assert (row.bytes_now, row.records_now, row.bytes_before) == (5000, 60, 0)
    (aged,) = [one for one in live.ages if one.topic == LOG_NUMBERS["cut"]]
    (due,) = [one for one in live.schedule if one.topic == LOG_NUMBERS["cut"]]
    assert (aged.bytes, aged.records) == (due.bytes, due.records) == (5000, 60)
    assert (due.first_offset, due.last_offset) == (40, 99)


def test_dates_more_than_five_minutes_ahead_are_counted_as_future(live: Live) -> None:
    assert live.logs[LOG_NUMBERS["future"]].future_bytes == 100
