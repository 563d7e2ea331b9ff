"""What shards count: once per id, contiguous, moving by their deltas; what is lost is known.

Every scenario is a node of its own and all are computed at once: Spark plans once.
"""

import random
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from headrace.wire import usage_pb2
from reports.billing import counters
from reports.errors import InputError
from reports.input.usage_records import decode
from tests.reports.building import HOUR_US, TEN_US, Counter, counters_frame

MODULUS = 1 << 63


def counted(*deltas: int, start: int = 0, final: bool = False) -> list[Counter]:
    """Consecutive counters of one series, ten seconds each, from a cumulative figure on."""
    found, total = [], start
    for index, delta in enumerate(deltas):
        total = (total + delta) % MODULUS
        begin = TEN_US + index * 10_000_000
        last = final and index == len(deltas) - 1
        found.append(
            Counter(index + 1, delta, total, start_us=begin, end_us=begin + 10_000_000, final=last)
        )
    return found


def shuffled(found: list[Counter]) -> list[Counter]:
    """In another order, with copies."""
    both = found + found[2:5]
    random.Random(5).shuffle(both)
    return both


MANY = counted(*range(1, 30))
WRAPPED = counted(5, 7, start=MODULUS - 6)
SCENARIOS: dict[str, list[Counter]] = {
    "running": counted(10, 20, 30),
    "ended": counted(10, 20, final=True),
    "in_order": MANY,
    "shuffled": shuffled(MANY),
    "gap": [one for one in counted(1, 2, 4) if one.sequence != 2],
    "headless": counted(1, 2, 4)[1:],
    "conflict": [*counted(1, 2), replace(counted(1, 2)[1], delta=3, cumulative=4)],
    "wrong": [counted(1, 2)[0], replace(counted(1, 2)[1], cumulative=9)],
    "wrapped": WRAPPED,
    # The row went to somebody else and came back; the second time while the spool was full.
    "anew": [Counter(1, 100, 100), Counter(2, 50, 50), Counter(3, 7, 57), Counter(4, 40, 10)],
    "two_meters": [
        Counter(1, 10, 10),
        Counter(2, 3, 3, meter="requests"),
        Counter(3, 9, 9, meter="stored_byte_seconds", principal_id=""),
        Counter(4, 5, 15),
    ],
    "hours": [
        replace(counted(1)[0], start_us=TEN_US + HOUR_US - 10, end_us=TEN_US + HOUR_US),
        replace(counted(1, 2)[1], start_us=TEN_US + HOUR_US, end_us=TEN_US + HOUR_US + 10),
        replace(counted(1, 2, 4)[2], start_us=TEN_US, end_us=TEN_US + HOUR_US + 20),
    ],
    "restarted": [
        *counted(10, 20),
        *(replace(one, incarnation=2) for one in counted(1, 2, final=True)),
        *(replace(one, incarnation=3) for one in counted(4)),
    ],
}


@dataclass(frozen=True)
class Computed:
    """Rows of all scenarios."""

    hours: list[Row]
    lives: list[Row]
    series: list[Row]

    def sums(self, name: str) -> dict[tuple[str, int], tuple[int, bool]]:
        """(meter, hour from 10:00): (quantity, estimated)."""
        return {
            (row.meter, (row.window_start_us - TEN_US) // HOUR_US): (row.quantity, row.estimated)
            for row in self.hours
            if row.topic_id == f"tp_{name}"
        }

    def states(self, name: str) -> list[tuple[str, int]]:
        """(state, missing) of each life, in order."""
        rows = [row for row in self.lives if row.node_id == f"nd_{name}"]
        return [(row.state, row.missing) for row in sorted(rows, key=lambda row: row.incarnation)]

    def moves(self, name: str) -> list[tuple[int, int, int]]:
        """(differing, delta, moved) of the egress series."""
        return [
            (row.differing, int(row.delta), int(row.moved))
            for row in self.series
            if row.organization_id == f"org_{name}" and row.meter == "egress_bytes"
        ]


@pytest.fixture(scope="module")
def computed(spark: SparkSession) -> Computed:
    """Every scenario, in one pass."""
    read = [
        replace(one, node_id=f"nd_{name}", topic_id=f"tp_{name}", organization_id=f"org_{name}")
        for name, found in SCENARIOS.items()
        for one in found
    ]
    unique = counters.unique_counters(counters_frame(spark, read)).cache()
    return Computed(
        counters.hourly(unique).collect(),
        counters.lives(unique, from_beginning=True).collect(),
        counters.series(unique, from_beginning=True).collect(),
    )


def test_every_meter_is_summed_by_the_hour_in_which_its_window_ended(computed: Computed) -> None:
    assert computed.sums("two_meters") == {
        ("egress_bytes", 0): (15, False),
        ("requests", 0): (3, False),
        ("stored_byte_seconds", 0): (9, False),
    }
    assert computed.sums("hours") == {
        ("egress_bytes", 0): (1, False),
        ("egress_bytes", 1): (6, True),
    }


def test_the_order_of_counters_and_their_copies_change_nothing(computed: Computed) -> None:
    assert computed.sums("shuffled") == computed.sums("in_order")
    assert computed.sums("in_order") == {("egress_bytes", 0): (sum(range(1, 30)), False)}
    assert computed.states("shuffled") == [("RUNNING", 0)]


def test_a_life_with_its_last_record_has_ended_and_the_newest_goes_on(computed: Computed) -> None:
    assert computed.states("ended") == [("ENDED", 0)]
    assert computed.states("running") == [("RUNNING", 0)]


def test_an_earlier_life_without_its_last_record_possibly_lost_something(
    computed: Computed,
) -> None:
    assert computed.states("restarted") == [("POSSIBLY_LOST", 0), ("ENDED", 0), ("RUNNING", 0)]
    # Nothing is billed for what it may have lost.
    assert computed.sums("restarted") == {("egress_bytes", 0): (37, False)}


def test_a_missing_record_is_a_gap_and_shows_in_the_cumulative_figure(computed: Computed) -> None:
    assert computed.states("gap") == [("GAP", 1)]
    assert computed.moves("gap") == [(1, 5, 7)]
    assert computed.states("headless") == [("GAP", 1)]


def test_two_records_of_one_id_that_differ_are_a_conflict_and_the_first_counts(
    computed: Computed,
) -> None:
    assert computed.states("conflict") == [("CONFLICT", 0)]
    assert computed.sums("conflict") == {("egress_bytes", 0): (3, False)}


def test_a_cumulative_figure_that_moves_otherwise_differs(computed: Computed) -> None:
    assert computed.moves("wrong") == [(1, 3, 9)]
    assert computed.moves("in_order") == [(0, 435, 435)]


def test_a_cumulative_figure_that_begins_anew_differs_from_nothing(computed: Computed) -> None:
    assert computed.moves("anew") == [(0, 197, 197)]


def test_a_cumulative_figure_goes_round_at_two_to_the_63(spark: SparkSession) -> None:
    unique = counters.unique_counters(counters_frame(spark, WRAPPED))
    (row,) = counters.series(unique, from_beginning=False).collect()
    assert (row.differing, int(row.delta)) == (0, 12)


def test_a_counter_of_an_unknown_meter_stops_the_run() -> None:
    record = usage_pb2.UsageRecord(counter=usage_pb2.Counter(meter="ingress_bytes", delta=1))
    value = b"\x01" + record.SerializeToString()
    batch = pa.RecordBatch.from_pydict({"offset": [3], "value": [value]})
    with pytest.raises(InputError, match="USAGE_METER_UNKNOWN"):
        list(decode(iter([batch])))
