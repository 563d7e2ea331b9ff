"""The picture: every bar is there, the axis is round, and small figures stay honest."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from reports.output.chart import OTHERS, bars, bytes_text, ceiling, ranked
from reports.output.page_sums import Tally

DAY = datetime(2026, 11, 27, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (1 << 30, "1.00 GiB"),
        (5 << 50, "5,120.00 TiB"),
    ],
)
def test_sizes_are_written_in_binary_units(count: int, text: str) -> None:
    assert bytes_text(count) == text


def test_more_topics_than_colours_share_the_last_one() -> None:
    sums = {(DAY, f"t{index}"): 100 - index for index in range(12)}
    assert ranked(sums) == [*(f"t{index}" for index in range(7)), OTHERS]
    assert f"{OTHERS} &middot; 455 B" in bars("day", [DAY], sums)


@pytest.mark.parametrize("count", [1, 3, 1000, 1 << 30, 13 << 30, (1 << 40) + 1])
def test_the_tallest_bar_stays_below_the_top(count: int) -> None:
    chart = bars("day", [DAY], {(DAY, "t"): count})
    top = chart.split('text-anchor="end">')[5].split("<")[0]
    number, unit = top.replace(",", "").split(" ")
    size = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]
    assert count <= float(number) * size <= max(20 * count, 4)


@pytest.mark.parametrize(
    ("mib", "top"), [(84, 100), (100, 100), (101, 120), (201, 240), (330, 400), (999, 1000)]
)
def test_the_axis_ends_soon_above_the_tallest_bar(mib: int, top: int) -> None:
    assert ceiling(mib << 20) == top << 20


@pytest.mark.parametrize("count", range(3, 1 << 14, 997))
def test_the_tallest_bar_fills_two_thirds_of_the_chart(count: int) -> None:
    assert 3 * max(count, 8) >= 2 * ceiling(count) or ceiling(count) - count < 4


def test_days_without_usage_have_a_place_too() -> None:
    tally = Tally()
    for day in (0, 3):
        start = DAY + timedelta(days=day, hours=5)
        tally.add(
            {
                "organization": "acme",
                "project": "default",
                "stream": "default",
                "topic": "t",
                "topic_id": "tp_t",
                "principal": "key_a",
                "meter": "ingress_bytes",
                "window_start": start,
                "window_end": start + timedelta(hours=1),
                "quantity": 10,
                "amount": Decimal("0.1"),
                "estimated": False,
            }
        )
    unit, buckets, sums = tally.buckets()
    assert unit == "day"
    assert buckets == [DAY + timedelta(days=day) for day in range(4)]
    assert sums == {(DAY, "default/t"): 10, (DAY + timedelta(days=3), "default/t"): 10}
