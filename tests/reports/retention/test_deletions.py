"""Neither the order of trims nor how they are split changes what was deleted: many cases at once.

The forms of a case are those of tests/reports/billing/test_windows.py: whole, in any order with
copies, each trim in two, and up to and from one in the middle.
"""

from collections import Counter as Sums
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from reports.retention import figures
from tests.reports.building import HOUR_US, TEN_US
from tests.reports.cases import cut, gathered, in_any_order, partitioned
from tests.reports.retention.building import Trim, trims_frame

CASES = 60
CAUSES = ("time", "size", "purge")
WEEK_US = 7 * 24 * HOUR_US
START_US = TEN_US + WEEK_US
# Nobody knows an age where no whole segment went.
AGES = st.none() | st.tuples(st.integers(0, WEEK_US), st.integers(0, 1000))


@dataclass(frozen=True)
class Gone:
    """One trim: how long after the one before, and the ages of its youngest and oldest record."""

    pause_us: int
    records: int
    size: int
    cause: str
    ages: tuple[int, int] | None


@dataclass(frozen=True)
class Case:
    """Trims one after the other, and where and how they are cut and mixed."""

    trims: tuple[Gone, ...]
    permille: int
    middle: int
    seed: int


CASE = st.builds(
    Case,
    st.lists(
        st.builds(
            Gone,
            st.integers(0, HOUR_US),
            st.integers(1, 1000),
            st.integers(0, 1 << 55),
            st.sampled_from(CAUSES),
            AGES,
        ),
        min_size=1,
        max_size=7,
    ).map(tuple),
    st.integers(0, 1000),
    st.integers(0, 7),
    st.integers(0, 1 << 30),
)


def trims_of(case: Case) -> list[Trim]:
    """The trims of a case, whole."""
    found, offset, at_us = list[Trim](), 0, START_US
    for number, gone in enumerate(case.trims, start=1):
        at_us += gone.pause_us
        newest_us = at_us - gone.ages[0] if gone.ages else 0
        found.append(
            Trim(
                number,
                offset,
                offset + gone.records - 1,
                gone.size,
                gone.cause,
                newest_us,
                at_us,
                newest_us - gone.ages[1] if gone.ages else 0,
            )
        )
        offset += gone.records
    return found


def halves(trims: Sequence[Trim], permille: int) -> list[Trim]:
    """Each trim of more than one record in two, of the same moment and ages."""
    found = list[Trim]()
    for trim in trims:
        records, _ = cut(trim.last - trim.first + 1, permille)
        sizes = cut(trim.bytes, permille)
        parts = [trim]
        if records:
            end = trim.first + records
            parts = [replace(trim, last=end - 1, bytes=sizes[0])]
            if end <= trim.last:
                parts.append(replace(trim, first=end, bytes=sizes[1]))
            else:
                parts = [trim]
        found += [replace(one, sequence=len(found) + n) for n, one in enumerate(parts, start=1)]
    return found


def forms(case: Case) -> dict[str, Sequence[Trim]]:
    """The trims of a case in every form."""
    whole = trims_of(case)
    middle = min(case.middle, len(whole))
    return {
        "whole": whole,
        "mixed": in_any_order(whole, case.seed),
        "split": halves(whole, case.permille),
        "before": whole[:middle],
        "after": whole[middle:],
    }


def expected(trims: Sequence[Trim]) -> dict[str, object]:
    """What trims of one cause say together, computed here."""
    aged = sorted(
        (one.trimmed_us - one.newest_us, one.last - one.first + 1) for one in trims if one.newest_us
    )
    half, upto, median = sum(records for _, records in aged), 0, None
    for age, records in aged:
        upto += records
        if median is None and 2 * upto >= half:
            median = age
    oldest = [one.oldest_us for one in trims if one.oldest_us]
    return {
        "bytes": sum(one.bytes for one in trims),
        "records": sum(one.last - one.first + 1 for one in trims),
        "first_offset": min(one.first for one in trims),
        "last_offset": max(one.last for one in trims),
        "oldest_us": min(oldest, default=None),
        "newest_us": max((one.newest_us for one in trims if one.newest_us), default=None),
        "age_min_ms": aged[0][0] // 1000 if aged else None,
        "age_p50_ms": None if median is None else median // 1000,
        "age_max_ms": max(
            ((one.trimmed_us - one.oldest_us) // 1000 for one in trims if one.oldest_us),
            default=None,
        ),
    }


def figures_of(row: Row) -> dict[str, object]:
    """A row of `deleted`, without its names and the number of trims, which a split changes."""
    return {name: row[name] for name in expected([Trim(1, 0, 0)])}


def test_neither_order_nor_split_trims_change_what_was_deleted(spark: SparkSession) -> None:
    every = gathered(CASE, CASES)
    named = [
        (f"{number}_{name}", trims)
        for number, case in enumerate(every)
        for name, trims in forms(case).items()
    ]
    rows = [
        replace(trim, topic=1000 + number, topic_id=f"tp_{name}")
        for number, (name, trims) in enumerate(named)
        for trim in trims
    ]
    with partitioned(spark, 5):
        mixed = trims_frame(spark, rows).orderBy("bytes", "offset").repartition(5, "offset")
        unique = figures.unique_trims(mixed).cache()
        deleted = {
            (row.topic_id.removeprefix("tp_"), row.cause): row
            for row in figures.deleted(unique, ["topic_id", "cause"]).collect()
        }
        hours = figures.hourly_deletions(unique).collect()
        gaps = {row.topic for row in figures.trim_gaps(unique, from_beginning=True).collect()}
    hourly = {
        (row.topic_id.removeprefix("tp_"), row.cause, row.hour_us): row.bytes for row in hours
    }
    for number, case in enumerate(every):
        _assert_all_say_the_same(number, case, deleted)
        _assert_hours_add_up(number, case, hourly)
    # Only what begins in the middle misses a trim before it.
    assert gaps == {
        1000 + number
        for number, (name, trims) in enumerate(named)
        if name.endswith("after") and trims and trims[0].sequence > 1
    }


def _assert_all_say_the_same(number: int, case: Case, found: dict[tuple[str, str], Row]) -> None:
    whole = trims_of(case)
    for cause in {trim.cause for trim in whole}:
        told = expected([trim for trim in whole if trim.cause == cause])
        for name in ("whole", "mixed", "split"):
            assert figures_of(found[f"{number}_{name}", cause]) == told, f"{name}: {case}"
        count = sum(trim.cause == cause for trim in whole)
        assert found[f"{number}_mixed", cause].trims == count, f"{case}"
        parts = [
            found[f"{number}_{name}", cause]
            for name in ("before", "after")
            if (f"{number}_{name}", cause) in found
        ]
        for figure in ("bytes", "records"):
            assert sum(row[figure] for row in parts) == told[figure], f"{figure}: {case}"
        assert sum(row.trims for row in parts) == count, f"{case}"


def _assert_hours_add_up(number: int, case: Case, hourly: dict[tuple[str, str, int], int]) -> None:
    sums = Sums[tuple[str, int]]()
    for trim in trims_of(case):
        sums[trim.cause, trim.trimmed_us // HOUR_US * HOUR_US] += trim.bytes
    for (cause, hour_us), size in sums.items():
        for name in ("whole", "mixed", "split"):
            assert hourly[f"{number}_{name}", cause, hour_us] == size, f"{name}: {case}"
        parts = (
            hourly.get((f"{number}_{name}", cause, hour_us), 0) for name in ("before", "after")
        )
        assert sum(parts) == size, f"{case}"
