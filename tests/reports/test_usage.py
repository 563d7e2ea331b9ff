"""Which closes count, in which hour, and what is said about those that are missing."""

import random
from dataclasses import replace

from pyspark.sql import SparkSession

from reports import usage
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

Hours = dict[tuple[int, str, str], tuple[int, bool]]


def hours(spark: SparkSession, closes: list[Close]) -> Hours:
    """(hour from 10:00, key, meter): (quantity, estimated)."""
    rows = usage.hourly(usage.unique_closes(closes_frame(spark, closes))).collect()
    return {
        ((row.window_start_us - TEN_US) // HOUR_US, row.principal_id, row.meter): (
            row.quantity,
            row.estimated,
        )
        for row in rows
    }


def states(
    spark: SparkSession,
    closes: list[Close],
    batches: list[dict[str, object]],
    *,
    from_beginning: bool = True,
) -> list[tuple[int, str, int | None]]:
    """(partition, state, difference) of every partition."""
    unique = usage.unique_closes(closes_frame(spark, closes))
    missing = usage.gaps(unique, from_beginning=from_beginning)
    rows = usage.reconcile(unique, missing, batches_frame(spark, batches)).collect()
    return sorted((row.partition, row.state, row.difference) for row in rows)


def test_windows_are_summed_into_the_hour_in_which_they_ended(spark: SparkSession) -> None:
    last_minute = Close(1, (Sum(10, 1),), TEN_US + HOUR_US - MINUTE_US, TEN_US + HOUR_US)
    next_hour = Close(2, (Sum(20, 2),), TEN_US + HOUR_US, TEN_US + HOUR_US + 1)
    assert hours(spark, [last_minute, next_hour]) == {
        (0, "key_loader", "ingress_bytes"): (10, False),
        (0, "key_loader", "records"): (1, False),
        (1, "key_loader", "ingress_bytes"): (20, False),
        (1, "key_loader", "records"): (2, False),
    }


def test_an_extended_window_that_crosses_an_hour_is_marked_estimated(spark: SparkSession) -> None:
    crossing = Close(1, (Sum(10, 1),), TEN_US, TEN_US + HOUR_US + MINUTE_US)
    assert hours(spark, [crossing])[1, "key_loader", "ingress_bytes"] == (10, True)


def test_every_key_has_its_own_sums(spark: SparkSession) -> None:
    both = Close(1, (Sum(10, 1), Sum(30, 3, "key_other", 17)))
    found = hours(spark, [both])
    assert found[0, "key_loader", "ingress_bytes"] == (10, False)
    assert found[0, "key_other", "ingress_bytes"] == (30, False)


def test_the_order_of_rows_and_copies_of_closes_change_nothing(spark: SparkSession) -> None:
    closes = minutes([(100 + index, index + 1) for index in range(120)])
    shuffled = closes + closes[10:40]
    random.Random(7).shuffle(shuffled)
    assert hours(spark, shuffled) == hours(spark, closes)


def test_a_window_split_in_two_bills_what_the_whole_window_bills(spark: SparkSession) -> None:
    whole = [Close(1, (Sum(101, 5),), TEN_US, TEN_US + 2 * MINUTE_US)]
    assert hours(spark, minutes([(1, 1), (100, 4)])) == hours(spark, whole)


def test_an_hour_is_an_hour_in_a_night_when_clocks_change(spark: SparkSession) -> None:
    # 2026-10-25T00:00Z to 03:00Z: in Berlin the hour from 02:00 happens twice, in UTC nothing does.
    midnight = 1_792_886_400_000_000
    closes = [
        Close(index + 1, (Sum(1, 1),), midnight + index * HOUR_US, midnight + index * HOUR_US + 9)
        for index in range(3)
    ]
    rows = usage.hourly(usage.unique_closes(closes_frame(spark, closes))).where("meter = 'records'")
    starts = sorted((row.window_start_us - midnight) // HOUR_US for row in rows.collect())
    assert starts == [0, 1, 2]


def test_contiguous_closes_that_equal_their_batches_are_exact(spark: SparkSession) -> None:
    closes = minutes([(10, 1), (20, 2), (30, 3)])
    assert states(spark, closes, batches_of(closes)) == [(0, "EXACT", 0)]


def test_a_missing_close_is_a_gap_with_its_operations(spark: SparkSession) -> None:
    closes = minutes([(10, 1), (20, 2), (30, 3), (40, 4)])
    kept = [closes[0], closes[3]]
    unique = usage.unique_closes(closes_frame(spark, kept))
    (gap,) = usage.gaps(unique, from_beginning=True).collect()
    assert (gap.after_sequence, gap.next_sequence, gap.from_op, gap.to_op) == (1, 4, 3, 6)
    assert states(spark, kept, batches_of(closes))[0][1] == "GAP"


def test_operations_that_do_not_join_are_a_gap_too(spark: SparkSession) -> None:
    closes = minutes([(10, 1), (20, 2)])
    torn = [closes[0], replace(closes[1], from_op=5, to_op=6)]
    unique = usage.unique_closes(closes_frame(spark, torn))
    (gap,) = usage.gaps(unique, from_beginning=True).collect()
    assert (gap.from_op, gap.to_op) == (3, 4)


def test_a_missing_first_close_counts_only_while_usage_is_whole(spark: SparkSession) -> None:
    later = minutes([(10, 1), (20, 2)])[1:]
    unique = usage.unique_closes(closes_frame(spark, later))
    assert usage.gaps(unique, from_beginning=True).count() == 1
    assert usage.gaps(unique, from_beginning=False).count() == 0


def test_two_closes_of_one_id_that_differ_are_a_conflict_and_the_first_stands(
    spark: SparkSession,
) -> None:
    close = Close(1, (Sum(10, 1),))
    closes = [close, replace(close, sums=(Sum(99, 1),))]
    assert hours(spark, closes)[0, "key_loader", "ingress_bytes"] == (10, False)
    assert states(spark, closes, batches_of([close]))[0][1] == "CONFLICT"


def test_bytes_above_the_last_close_are_open_and_not_a_difference(spark: SparkSession) -> None:
    closes = minutes([(10, 1), (20, 2)])
    assert states(spark, closes[:1], batches_of(closes)) == [(0, "OPEN", 0)]


def test_a_partition_without_any_close_is_open(spark: SparkSession) -> None:
    closes = minutes([(10, 1)])
    found = states(spark, closes, batches_of([*closes, replace(closes[0], partition=1)]))
    assert found == [(0, "EXACT", 0), (1, "OPEN", 0)]


def test_what_retention_removed_is_known_from_the_cumulative_bytes(spark: SparkSession) -> None:
    closes = minutes([(10, 1), (20, 2), (30, 3)])
    assert states(spark, closes, batches_of(closes)[2:]) == [(0, "EXACT", 0)]


def test_a_hole_in_the_frozen_log_is_not_taken_for_a_match(spark: SparkSession) -> None:
    closes = minutes([(10, 1), (20, 2), (30, 3)])
    batches = batches_of(closes)
    assert states(spark, closes, [batches[0], batches[2]])[0][1] == "LOG_INCOMPLETE"


def test_a_meter_that_is_a_byte_off_is_a_difference(spark: SparkSession) -> None:
    closes = minutes([(10, 1), (20, 2)])
    wrong = [closes[0], replace(closes[1], sums=(Sum(21, 2),))]
    assert states(spark, wrong, batches_of(closes)) == [(0, "DIFFERENCE", -1)]


def test_closes_of_a_log_that_is_gone_are_unverified(spark: SparkSession) -> None:
    assert states(spark, minutes([(10, 1)]), [])[0][1] == "UNVERIFIED"
