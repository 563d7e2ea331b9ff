"""Order and windows never change a bill: properties of closes, counters and spans, of many cases
at once.

Every case is told in five forms: whole, in any order with copies, with each window split in two,
and up to and from a moment in its middle. Each form is a topic and a node of its own, and the rows
of all forms of all cases lie in any order in one DataFrame: Spark plans once.
"""

from collections import Counter as Sums
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from reports.billing import counters, partition_hours, usage
from reports.billing.partition_hours import seconds_within
from reports.input.export import Span
from tests.reports.building import (
    HOUR_US,
    MINUTE_US,
    TEN_US,
    Close,
    Counter,
    Sum,
    closes_frame,
    counters_frame,
    export,
)
from tests.reports.cases import cut, gathered, in_any_order, partitioned

CASES = 60
FORMS = ("whole", "mixed", "split", "before", "after")
METERS = ("egress_bytes", "requests", "stored_byte_seconds")
KEYS = ("key_loader", "key_other", "key_third")
FIGURES = st.integers(0, 1 << 55)
PERMILLE = st.integers(0, 1000)

# (hour, key, meter): quantity; and the hours that are estimates.
Hourly = tuple[dict[tuple[int, str, str], int], set[int]]


@dataclass(frozen=True)
class Used:
    """What was counted of one key in one window: of each of some meters."""

    pause_us: int
    length_us: int
    key: str
    figures: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Case:
    """Windows one after the other, and where and how they are cut and mixed."""

    windows: tuple[Used, ...]
    permille: int
    middle: int
    seed: int


def cases(meters: Sequence[str]) -> st.SearchStrategy[Case]:
    """Windows from a microsecond to an hour and a half, so that some of them cross hours."""
    figure = st.tuples(st.sampled_from(meters), FIGURES)
    window = st.builds(
        Used,
        st.integers(0, 2 * HOUR_US),
        st.integers(1, 90 * MINUTE_US),
        st.sampled_from(KEYS),
        st.lists(figure, min_size=1, max_size=3, unique_by=lambda each: each[0]).map(tuple),
    )
    windows = st.lists(window, min_size=1, max_size=7).map(tuple)
    return st.builds(Case, windows, PERMILLE, st.integers(0, 7), st.integers(0, 1 << 30))


def spans(case: Case) -> list[tuple[int, int, Used]]:
    """(start, end, what was used) of each window of a case."""
    found, at = [], TEN_US
    for used in case.windows:
        start = at + used.pause_us
        at = start + used.length_us
        found.append((start, at, used))
    return found


def halves(case: Case) -> list[tuple[int, int, Used]]:
    """Each window in two, both of which end in the hour in which the whole one ends."""
    found = []
    for start, end, used in spans(case):
        first = max(start, (end - 1) // HOUR_US * HOUR_US)
        middle = first + max(1, (end - first) * case.permille // 1000)
        if middle >= end:
            found.append((start, end, used))
            continue
        parts = [(meter, cut(figure, case.permille)) for meter, figure in used.figures]
        for side, (begin, until) in enumerate(((start, middle), (middle, end))):
            figures = tuple((meter, both[side]) for meter, both in parts)
            found.append((begin, until, replace(used, figures=figures)))
    return found


def expected(case: Case) -> Hourly:
    """What the whole windows bill, added up here."""
    sums, estimated = Sums[tuple[int, str, str]](), set()
    for start, end, used in spans(case):
        hour = (end - 1) // HOUR_US * HOUR_US
        for meter, figure in used.figures:
            sums[hour, used.key, meter] += figure
        if start < hour:
            estimated.add(hour)
    return dict(sums), estimated


Told = Callable[[list[tuple[int, int, Used]]], list[Close] | list[Counter]]


def forms(case: Case, told: Told) -> dict[str, Sequence[Close | Counter]]:
    """The records of a case in every form."""
    whole = told(spans(case))
    middle = min(case.middle, len(whole))
    return {
        "whole": whole,
        "mixed": in_any_order(whole, case.seed),
        "split": told(halves(case)),
        "before": whole[:middle],
        "after": whole[middle:],
    }


def closes_of(windows: list[tuple[int, int, Used]]) -> list[Close]:
    """One close for each window: the figures are its bytes and records."""
    found = []
    for number, (start, end, used) in enumerate(windows, start=1):
        figures = dict(used.figures)
        sums = Sum(figures.get("ingress_bytes", 0), figures.get("records", 0), used.key)
        found.append(Close(number, (sums,), start, end))
    return found


def counters_of(windows: list[tuple[int, int, Used]]) -> list[Counter]:
    """One counter for each figure, each in the series of its key and meter."""
    found, moved = list[Counter](), Sums[tuple[str, str]]()
    for start, end, used in windows:
        for meter, delta in used.figures:
            moved[used.key, meter] += delta
            found.append(
                Counter(
                    len(found) + 1,
                    delta,
                    moved[used.key, meter],
                    meter,
                    start_us=start,
                    end_us=end,
                    principal_id=used.key,
                    principal=16 + KEYS.index(used.key),
                )
            )
    return found


def numbered(every: Sequence[Case], told: Told) -> list[tuple[str, Sequence[Close | Counter]]]:
    """The records of all forms of all cases, by name."""
    return [
        (f"{number}_{name}", records)
        for number, case in enumerate(every)
        for name, records in forms(case, told).items()
    ]


def billed(rows: Iterable[Row]) -> dict[str, Hourly]:
    """Rows of hours by the form that they are of."""
    found: dict[str, Hourly] = {}
    for row in rows:
        sums, estimated = found.setdefault(row.topic_id.removeprefix("tp_"), ({}, set()))
        place = (row.window_start_us, row.principal_id, row.meter)
        assert place not in sums
        assert row.window_end_us == row.window_start_us + HOUR_US
        sums[place] = row.quantity
        if row.estimated:
            estimated.add(row.window_start_us)
    return found


def assert_all_bill_the_same(every: Sequence[Case], found: dict[str, Hourly]) -> None:
    """Each form of each case says what was added up here."""
    for number, case in enumerate(every):
        sums, estimated = expected(case)
        for name in ("whole", "mixed", "split"):
            quantities, about = found[f"{number}_{name}"]
            assert {place: one for place, one in quantities.items() if one} == {
                place: one for place, one in sums.items() if one
            }, f"{name}: {case}"
            assert about == estimated, f"{name}: {case}"
        parts = Sums[tuple[int, str, str]]()
        for name in ("before", "after"):
            for place, one in found.get(f"{number}_{name}", ({}, set()))[0].items():
                parts[place] += one
        assert dict(parts) == found[f"{number}_whole"][0], f"{case}"


@pytest.fixture(scope="module")
def closed() -> list[Case]:
    """Cases of what closes tell."""
    return gathered(cases(("ingress_bytes", "records")), CASES)


@pytest.fixture(scope="module")
def counted() -> list[Case]:
    """Cases of what counters tell."""
    return gathered(cases(METERS), CASES)


def scattered(frame: DataFrame) -> DataFrame:
    """The same rows over several partitions, in none of their orders."""
    return frame.orderBy("window_end_us", "offset").repartition(5, "offset")


def test_neither_order_nor_split_windows_change_what_closes_bill(
    spark: SparkSession, closed: list[Case]
) -> None:
    named = numbered(closed, closes_of)
    rows = [
        replace(one, topic=1000 + number, topic_id=f"tp_{name}")
        for number, (name, records) in enumerate(named)
        for one in records
        if isinstance(one, Close)
    ]
    with partitioned(spark, 5):
        unique = usage.unique_closes(scattered(closes_frame(spark, rows))).cache()
        found = billed(usage.hourly(unique).collect())
        gaps = {row.topic for row in usage.gaps(unique, from_beginning=True).collect()}
    assert_all_bill_the_same(closed, found)
    # Only what begins in the middle misses a close before it.
    late = {
        1000 + number
        for number, (name, records) in enumerate(named)
        if name.endswith("after") and records and records[0].sequence > 1
    }
    assert gaps == late


def test_neither_order_nor_split_windows_change_what_counters_bill(
    spark: SparkSession, counted: list[Case]
) -> None:
    named = numbered(counted, counters_of)
    rows = [
        replace(one, node_id=f"nd_{name}", topic_id=f"tp_{name}", organization_id=f"org_{name}")
        for name, records in named
        for one in records
        if isinstance(one, Counter)
    ]
    with partitioned(spark, 5):
        unique = counters.unique_counters(scattered(counters_frame(spark, rows))).cache()
        found = billed(counters.hourly(unique).collect())
        lives = counters.lives(unique, from_beginning=True).collect()
        series = counters.series(unique, from_beginning=False).collect()
    assert_all_bill_the_same(counted, found)
    missing = {
        f"nd_{name}": min(one.sequence for one in records) - 1 for name, records in named if records
    }
    assert {row.node_id: row.missing for row in lives} == missing
    assert {row.state for row in lives if not row.missing} == {"RUNNING"}
    assert [row for row in series if row.differing or row.delta != row.moved] == []


DAY = 86_400
HOUR = timedelta(hours=1)
TEN = datetime(2026, 11, 27, 10, tzinfo=UTC)
AS_OF = TEN + timedelta(days=3)
SECONDS = st.integers(0, 4 * DAY)


@dataclass(frozen=True)
class Standing:
    """A topic's partitions over a time (seconds from ten o'clock), and moments to cut at."""

    partitions: int
    start: int
    length: int | None
    moments: tuple[int, int, int]

    def spans(self, topic_id: str) -> list[Span]:
        """The time in one span."""
        end = None if self.length is None else moment(self.start + self.length)
        place = ("org_acme", "prj_default", "cl_local")
        return [Span(topic_id, *place, 1, self.partitions, moment(self.start), end)]

    def halves(self, topic_id: str) -> list[Span]:
        """The time in two spans, the later one first."""
        (whole,) = self.spans(topic_id)
        middle = max(whole.start, min(moment(self.moments[1]), whole.end or AS_OF))
        return [replace(whole, start=middle, generation=2), replace(whole, end=middle)]


STANDING = st.builds(
    Standing,
    st.integers(1, 1000),
    SECONDS,
    st.none() | SECONDS,
    st.tuples(SECONDS, SECONDS, SECONDS).map(lambda each: tuple(sorted(each))),
)


def moment(seconds: int) -> datetime:
    """So long after ten o'clock."""
    return TEN + timedelta(seconds=seconds)


def test_the_hours_of_partitions_add_up_to_any_window_of_their_time(spark: SparkSession) -> None:
    every = gathered(STANDING, CASES)
    spans = [
        span
        for number, one in enumerate(every)
        for span in (*one.halves(f"tp_{number}_split"), *one.spans(f"tp_{number}_whole"))
    ]
    with partitioned(spark, 5):
        hours = partition_hours.hourly(
            spark, replace(export(), lifecycle=tuple(spans), as_of=AS_OF)
        )
        assert hours is not None
        rows = hours.collect()
    found: dict[str, dict[datetime, int]] = {}
    for row in rows:
        start = datetime.fromtimestamp(row.window_start_us // 1_000_000, UTC)
        assert found.setdefault(row.topic_id, {}).setdefault(start, row.quantity) == row.quantity
    for number, one in enumerate(every):
        whole = found.get(f"tp_{number}_whole", {})
        assert found.get(f"tp_{number}_split", {}) == whole, f"{one}"
        within = partial(seconds_within, one.spans(""), AS_OF)
        assert all(within(hour, hour + HOUR) == count for hour, count in whole.items()), f"{one}"
        assert sum(whole.values()) == within(TEN, AS_OF), f"{one}"
        first, middle, last = map(moment, one.moments)
        assert within(first, last) == within(first, middle) + within(middle, last), f"{one}"
