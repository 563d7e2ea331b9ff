"""Which closes count, in which hour, and what is said about those that are missing.

Every scenario is a topic of its own and all of them are computed at once: what holds for one topic
must not depend on the others, and Spark plans once.
"""

import random
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import Row, SparkSession

from reports.billing import usage
from tests.reports.building import (
    HOUR_US,
    MINUTE_US,
    TEN_US,
    Close,
    Sum,
    batches_frame,
    batches_of,
    closes_frame,
    minutes,
)

# 2026-10-25T00:00Z: in Berlin the hour from 02:00 happens twice that night, in UTC nothing does.
CLOCKS_CHANGE_US = 1_792_886_400_000_000


@dataclass(frozen=True)
class Scenario:
    """Closes that were read, and those that the log's batches were made of."""

    read: list[Close]
    written: list[Close]
    batches_kept: tuple[int, ...] | None = None
    """Which of the batches are left in the log; None: all."""


def shuffled(closes: list[Close]) -> list[Close]:
    """In another order, with copies."""
    found = closes + closes[10:40]
    random.Random(7).shuffle(found)
    return found


THREE = minutes([(10, 1), (20, 2), (30, 3)])
FOUR = minutes([(10, 1), (20, 2), (30, 3), (40, 4)])
MANY = minutes([(100 + index, index + 1) for index in range(120)])
TWO_HOURS = [
    Close(1, (Sum(10, 1),), TEN_US + HOUR_US - MINUTE_US, TEN_US + HOUR_US),
    Close(2, (Sum(20, 2),), TEN_US + HOUR_US, TEN_US + HOUR_US + 1),
]
NIGHT = [
    Close(n + 1, (Sum(1, 1),), CLOCKS_CHANGE_US + n * HOUR_US, CLOCKS_CHANGE_US + n * HOUR_US + 9)
    for n in range(3)
]
TWO_KEYS = [Close(1, (Sum(10, 1), Sum(30, 3, "key_other", 17)))]
DIFFERING = replace(THREE[0], sums=(Sum(99, 1),))
OTHER_PARTITION = replace(THREE[0], partition=1)

SCENARIOS = {
    "exact": Scenario(THREE, THREE),
    "two_hours": Scenario(TWO_HOURS, TWO_HOURS),
    "extended": Scenario([replace(THREE[0], end_us=TEN_US + HOUR_US + MINUTE_US)], THREE[:1]),
    "two_keys": Scenario(TWO_KEYS, TWO_KEYS),
    "in_order": Scenario(MANY, MANY),
    "shuffled": Scenario(shuffled(MANY), MANY),
    "whole": Scenario([replace(THREE[0], sums=(Sum(101, 5),))], []),
    "split": Scenario(minutes([(1, 1), (100, 4)]), []),
    "night": Scenario(NIGHT, NIGHT),
    "gap": Scenario([FOUR[0], FOUR[3]], FOUR),
    "torn": Scenario([THREE[0], replace(THREE[1], from_op=5, to_op=6)], THREE),
    "headless": Scenario(THREE[1:], THREE),
    "conflict": Scenario([THREE[0], DIFFERING], THREE[:1]),
    "open": Scenario(THREE[:2], THREE),
    "unclosed": Scenario(THREE[:1], [THREE[0], OTHER_PARTITION]),
    "trimmed": Scenario(THREE, THREE, (2,)),
    "hole": Scenario(THREE, THREE, (0, 2)),
    "off_by_one": Scenario([THREE[0], replace(THREE[1], sums=(Sum(21, 2),))], THREE[:2]),
    "gone": Scenario(THREE, []),
}
NUMBERS = {name: 100 + index for index, name in enumerate(SCENARIOS)}


@dataclass(frozen=True)
class Computed:
    """Rows of all scenarios."""

    hours: list[Row]
    gaps: list[Row]
    gaps_of_trimmed_usage: list[Row]
    partitions: list[Row]

    def hour(self, name: str) -> dict[tuple[int, str, str], tuple[int, bool]]:
        """(hour from 10:00, key, meter): (quantity, estimated)."""
        return {
            ((row.window_start_us - TEN_US) // HOUR_US, row.principal_id, row.meter): (
                row.quantity,
                row.estimated,
            )
            for row in self.hours
            if row.topic_id == f"tp_{name}"
        }

    def states(self, name: str) -> list[tuple[int, str, int | None]]:
        """(partition, state, difference)."""
        rows = [row for row in self.partitions if row.topic == NUMBERS[name]]
        return sorted((row.partition, row.state, row.difference) for row in rows)

    def missing(self, name: str) -> list[tuple[int, int, int, int]]:
        """(after sequence, next sequence, first and last missing operation)."""
        return [
            (row.after_sequence, row.next_sequence, row.from_op, row.to_op)
            for row in self.gaps
            if row.topic == NUMBERS[name]
        ]


@pytest.fixture(scope="module")
def computed(spark: SparkSession) -> Computed:
    """Every scenario, in one pass."""
    read: list[Close] = []
    batches: list[dict[str, object]] = []
    for name, scenario in SCENARIOS.items():
        read += [
            replace(close, topic=NUMBERS[name], topic_id=f"tp_{name}") for close in scenario.read
        ]
        kept = batches_of(scenario.written)
        if scenario.batches_kept is not None:
            kept = [kept[index] for index in scenario.batches_kept]
        batches += [{**batch, "topic": NUMBERS[name]} for batch in kept]
    unique = usage.unique_closes(closes_frame(spark, read)).cache()
    gaps = usage.gaps(unique, from_beginning=True)
    return Computed(
        usage.hourly(unique).collect(),
        gaps.collect(),
        usage.gaps(unique, from_beginning=False).collect(),
        usage.reconcile(unique, gaps, batches_frame(spark, batches)).collect(),
    )


def test_windows_are_summed_into_the_hour_in_which_they_ended(computed: Computed) -> None:
    assert computed.hour("two_hours") == {
        (0, "key_loader", "ingress_bytes"): (10, False),
        (0, "key_loader", "records"): (1, False),
        (1, "key_loader", "ingress_bytes"): (20, False),
        (1, "key_loader", "records"): (2, False),
    }


def test_an_extended_window_that_crosses_an_hour_is_marked_estimated(computed: Computed) -> None:
    assert computed.hour("extended")[1, "key_loader", "ingress_bytes"] == (10, True)


def test_every_key_has_its_own_sums(computed: Computed) -> None:
    found = computed.hour("two_keys")
    assert found[0, "key_loader", "ingress_bytes"] == (10, False)
    assert found[0, "key_other", "ingress_bytes"] == (30, False)


def test_the_order_of_rows_and_copies_of_closes_change_nothing(computed: Computed) -> None:
    assert computed.hour("shuffled") == computed.hour("in_order")
    assert computed.states("shuffled") == computed.states("in_order") == [(0, "EXACT", 0)]


def test_a_window_split_in_two_bills_what_the_whole_window_bills(computed: Computed) -> None:
    assert computed.hour("split") == computed.hour("whole")


def test_an_hour_is_an_hour_in_a_night_when_clocks_change(computed: Computed) -> None:
    first = (CLOCKS_CHANGE_US - TEN_US) // HOUR_US
    assert sorted({hour - first for hour, _, _ in computed.hour("night")}) == [0, 1, 2]


def test_contiguous_closes_that_equal_their_batches_are_exact(computed: Computed) -> None:
    assert computed.states("exact") == [(0, "EXACT", 0)]
    assert computed.missing("exact") == []


def test_a_missing_close_is_a_gap_with_its_operations(computed: Computed) -> None:
    assert computed.missing("gap") == [(1, 4, 3, 6)]
    assert computed.states("gap")[0][1] == "GAP"


def test_operations_that_do_not_join_are_a_gap_too(computed: Computed) -> None:
    assert computed.missing("torn") == [(1, 2, 3, 4)]


def test_a_missing_first_close_counts_only_while_usage_is_whole(computed: Computed) -> None:
    assert computed.missing("headless") == [(0, 2, 0, 2)]
    topics = {row.topic for row in computed.gaps_of_trimmed_usage}
    assert topics == {NUMBERS["gap"], NUMBERS["torn"]}


def test_two_closes_of_one_id_that_differ_are_a_conflict_and_the_first_stands(
    computed: Computed,
) -> None:
    assert computed.hour("conflict")[0, "key_loader", "ingress_bytes"] == (10, False)
    assert computed.states("conflict")[0][1] == "CONFLICT"


def test_bytes_above_the_last_close_are_open_and_not_a_difference(computed: Computed) -> None:
    assert computed.states("open") == [(0, "OPEN", 0)]


def test_a_partition_without_any_close_is_open(computed: Computed) -> None:
    assert computed.states("unclosed") == [(0, "EXACT", 0), (1, "OPEN", 0)]


def test_what_retention_removed_is_known_from_the_cumulative_bytes(computed: Computed) -> None:
    assert computed.states("trimmed") == [(0, "EXACT", 0)]


def test_a_hole_in_the_frozen_log_is_not_taken_for_a_match(computed: Computed) -> None:
    assert computed.states("hole")[0][1] == "LOG_INCOMPLETE"


def test_a_meter_that_is_a_byte_off_is_a_difference(computed: Computed) -> None:
    assert computed.states("off_by_one") == [(0, "DIFFERENCE", -1)]


def test_closes_of_a_log_that_is_gone_are_unverified(computed: Computed) -> None:
    assert computed.states("gone")[0][1] == "UNVERIFIED"
