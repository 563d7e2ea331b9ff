"""A stacked bar chart as inline SVG: bytes per day (or hour) and topic.

Owns geometry and colour order. Every bar has a title for the pointer and the same figures stand in
the table of the page, so the chart is never the only way to read them. Refuses scripts, fonts and
anything that must be fetched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

SERIES_MAX = 8
WIDTH = 960
HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 76, 12, 14, 34
BAR_MAX = 56
LABELS_MAX = 12
OTHERS = "other topics"
# Tenths of a step of the axis: fine enough that the tallest bar fills two thirds of the chart.
STEPS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)

_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def bytes_text(count: int) -> str:
    """A size for people, binary units, in integer arithmetic: 1536 is `1.50 KiB`."""
    for size, unit in _UNITS:
        if count >= size:
            hundredths = (count * 100 + size // 2) // size
            return f"{hundredths // 100:,}.{hundredths % 100:02d} {unit}"
    return f"{count:,} B"


@dataclass(frozen=True, slots=True)
class Measure:
    """What the bars count: its name, what one is called in text, and the sizes that make round
    axes, largest first."""

    name: str
    text: Callable[[int], str]
    units: tuple[tuple[int, str], ...] = ()


INGRESS = Measure("Ingress bytes", bytes_text, _UNITS)


def ranked(sums: Mapping[tuple[datetime, str], int]) -> list[str]:
    """Topics by falling bytes; those beyond SERIES_MAX share one series at the end."""
    totals: dict[str, int] = {}
    for (_, topic), count in sums.items():
        totals[topic] = totals.get(topic, 0) + count
    order = sorted(totals, key=lambda topic: (-totals[topic], topic))
    return order if len(order) <= SERIES_MAX else [*order[: SERIES_MAX - 1], OTHERS]


def bars(
    unit: str,
    buckets: Sequence[datetime],
    sums: Mapping[tuple[datetime, str], int],
    measure: Measure = INGRESS,
    by: str = "topic",
) -> str:
    """The chart and its legend; `unit` is day or hour, `by` what a colour stands for."""
    series = ranked(sums)
    totals: dict[datetime, int] = {}
    for (bucket, _), count in sums.items():
        totals[bucket] = totals.get(bucket, 0) + count
    stacks = [_stack(bucket, series, sums, totals.get(bucket, 0)) for bucket in buckets]
    top = ceiling(max((sum(stack) for stack in stacks), default=0), measure)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(buckets))
    parts = [grid(top, measure)]
    for index, (bucket, stack) in enumerate(zip(buckets, stacks, strict=True)):
        x = LEFT + step * index
        parts.append(_bar(x, step, _moment(bucket, unit), series, stack, top, measure))
        if index % (1 + len(buckets) // LABELS_MAX) == 0:
            middle = x + step / 2
            parts.append(
                f'<text class="axis" x="{middle:.1f}" y="{HEIGHT - 12}" text-anchor="middle">'
                f"{_label(bucket, unit)}</text>"
            )
    legend = "".join(
        f'<li><span class="key s{number}"></span>{escape(topic)}</li>'
        for number, topic in enumerate(series)
    )
    return (
        f'<ul class="legend">{legend}</ul><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{measure.name} per {unit} and {by}">{"".join(parts)}</svg>'
    )


def _stack(
    bucket: datetime, series: Sequence[str], sums: Mapping[tuple[datetime, str], int], total: int
) -> list[int]:
    found = [sums.get((bucket, topic), 0) for topic in series]
    if series and series[-1] == OTHERS:
        found[-1] = total - sum(found[:-1])
    return found


def _bar(
    x: float,
    step: float,
    moment: str,
    series: Sequence[str],
    stack: Sequence[int],
    top: int,
    measure: Measure,
) -> str:
    width = min(BAR_MAX, max(1.0, step * 0.72))
    left = x + (step - width) / 2
    base = float(HEIGHT - BOTTOM)
    parts = []
    for number, (topic, count) in enumerate(zip(series, stack, strict=True)):
        if count == 0:
            continue
        height = (HEIGHT - BOTTOM - TOP) * count / top
        # A hairline of the surface between segments keeps neighbours apart without relying on hue.
        drawn = max(0.5, height - (1.0 if height > 3 else 0.0))
        parts.append(
            f'<rect class="s{number}" x="{left:.1f}" y="{base - height:.2f}" width="{width:.1f}" '
            f'height="{drawn:.2f}" rx="1.5"><title>{moment} &middot; {escape(topic)} &middot; '
            f"{measure.text(count)}</title></rect>"
        )
        base -= height
    return "".join(parts)


def grid(top: int, measure: Measure = INGRESS) -> str:
    """Five lines of an axis from nothing to `top` of what is measured."""
    lines = []
    for quarter in range(5):
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * quarter / 4
        lines.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="axis" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{measure.text(top * quarter // 4)}</text>"
        )
    return "".join(lines)


def ceiling(count: int, measure: Measure = INGRESS) -> int:
    """The top of the axis: four steps of a round figure in the unit of `count`."""
    unit = next((size for size, _ in measure.units if count >= size), 100)
    hundredths = 1
    while True:
        for tenths in STEPS:
            step = unit * hundredths * tenths // 1000
            if step > 0 and 4 * step >= count:
                return 4 * step
        hundredths *= 10


def _label(bucket: datetime, unit: str) -> str:
    return bucket.strftime("%d %b" if unit == "day" else "%d %b %H:%M")


def _moment(bucket: datetime, unit: str) -> str:
    return bucket.strftime("%Y-%m-%d" if unit == "day" else "%Y-%m-%d %H:%M")
