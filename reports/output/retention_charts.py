"""Columns over named places as inline SVG: ages, causes over time, what is due.

Owns geometry; the axis is that of chart.py. A column is a stack of series whose colours the caller
chooses, so that a cause has one colour in every report. Every bar has a title for the pointer, and
the page has the same figures in a table. Refuses scripts and anything to be fetched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from reports.output.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, bytes_text, ceiling, grid

BAR_MAX = 64
LABELS_MAX = 12


@dataclass(frozen=True, slots=True)
class Series:
    """A name and the number of its colour in the style sheet."""

    name: str
    colour: int


def columns(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    values: Sequence[Sequence[int]],
    *,
    legend: bool,
) -> str:
    """One column a label; values[column][series] in bytes. legend: names the series above."""
    top = ceiling(max((sum(stack) for stack in values), default=0))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(labels))
    parts = [grid(top)]
    every = 1 + (len(labels) - 1) // LABELS_MAX
    for index, (label, stack) in enumerate(zip(labels, values, strict=True)):
        x = LEFT + step * index
        parts.append(_column(x, step, label, series, stack, top))
        if index % every == 0:
            parts.append(
                f'<text class="axis" x="{x + step / 2:.1f}" y="{HEIGHT - 12}" '
                f'text-anchor="middle">{escape(label)}</text>'
            )
    drawing = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
    return (_legend(series) if legend else "") + drawing


def _legend(series: Sequence[Series]) -> str:
    items = "".join(
        f'<li><span class="key s{one.colour}"></span>{escape(one.name)}</li>' for one in series
    )
    return f'<ul class="legend">{items}</ul>'


def _column(
    x: float, step: float, label: str, series: Sequence[Series], stack: Sequence[int], top: int
) -> str:
    width = min(BAR_MAX, max(1.0, step * 0.72))
    left, base = x + (step - width) / 2, float(HEIGHT - BOTTOM)
    parts = []
    for one, count in zip(series, stack, strict=True):
        if count == 0:
            continue
        height = (HEIGHT - BOTTOM - TOP) * count / top
        # A hairline of the surface between segments keeps neighbours apart without hue.
        drawn = max(0.5, height - (1.0 if height > 3 else 0.0))
        parts.append(
            f'<rect class="s{one.colour}" x="{left:.1f}" y="{base - height:.2f}" '
            f'width="{width:.1f}" height="{drawn:.2f}" rx="1.5"><title>{escape(label)} &middot; '
            f"{escape(one.name)} &middot; {bytes_text(count)}</title></rect>"
        )
        base -= height
    return "".join(parts)
