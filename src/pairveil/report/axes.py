"""Scales, ticks and axes of the page's charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pairveil.report.shapes import Chart, Shape, hidden, shape, short_number, text

WIDTH = 460.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 30.0, 46.0
MAX_BARS = 16
LETTER = 8.5  # width of a figure at the charts' size of type, with its share of a gap

Scale = Callable[[float], float]


def scale(low: float, high: float, at_low: float, at_high: float) -> Scale:
    """The straight line that takes ``low`` to ``at_low`` and ``high`` to ``at_high``.

    Examples
    --------
    >>> scale(0.0, 2.0, 10.0, 30.0)(1.0)
    20.0
    """
    ratio = (at_high - at_low) / ((high - low) or 1.0)
    return lambda value: at_low + (value - low) * ratio


def epsilon_scale(values: Sequence[float]) -> tuple[Scale, list[float]]:
    """A logarithmic axis that has room for all values, and its ticks."""
    low, high = math.log10(min(values)), math.log10(max(values))
    pad = max((high - low) * 0.08, 0.15)
    place = scale(low - pad, high + pad, LEFT, WIDTH - RIGHT)
    candidates = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
    ticks = [v for v in candidates if low - pad <= math.log10(v) <= high + pad]
    if len(ticks) > 8:
        ticks = [v for v in ticks if round(math.log10(v), 9).is_integer()]
    return (lambda value: place(math.log10(value))), ticks


def nice_ticks(low: float, high: float, *, around: bool = False) -> list[float]:
    """About five round numbers that reach over [low, high]; whole ones from 0 unless ``around``.

    Examples
    --------
    >>> nice_ticks(0, 39)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    >>> nice_ticks(0.53, 0.67, around=True)
    [0.5, 0.55, 0.6, 0.65, 0.7]
    """
    span = max(high - low, 1e-9 if around else 1.0)
    raw = span / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999)
    if not around:
        step = max(step, 1.0)
    first = math.floor(low / step + 1e-9) if around else 0
    last = math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, max(last, first + 1) + 1)]


def bin_counts(counts: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Histogram bars (low, high, people) of equal integer width, every value in one bar.

    Examples
    --------
    >>> bin_counts([(1, 5), (3, 2)])
    [(1, 1, 5), (2, 2, 0), (3, 3, 2)]
    >>> len(bin_counts([(1, 5), (1000, 1)])) <= 16
    True
    """
    first, last = counts[0][0], counts[-1][0]
    width = math.ceil((last - first + 1) / MAX_BARS)
    bins = [
        [low, min(low + width - 1, last) if width > 1 else low, 0]
        for low in range(first, last + 1, width)
    ]
    for value, people in counts:
        bins[(value - first) // width][2] += people
    return [(low, high, people) for low, high, people in bins]


def y_axis(ticks: Sequence[float], y: Scale) -> Shape:
    """Grid lines with their numbers in the left margin."""
    parts = []
    for value in ticks:
        parts.append(
            shape("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y(value), y2=y(value))
        )
        words = short_number(value, ticks[-1])
        parts.append(text(LEFT - 8, y(value) + 4, words, text_anchor="end"))
    return hidden(parts)


def axis_names(below: str, left: str, height: float) -> Shape:
    """What the axes show; either may be empty."""
    middle = (LEFT + WIDTH - RIGHT) / 2
    names = [text(middle, height - 8, below, text_anchor="middle", class_="axis-name")]
    if left:
        names.append(text(4.0, 12.0, left, class_="axis-name"))
    return hidden(names)


def drawn(title: str, height: float, parts: Sequence[Shape]) -> Chart:
    """A chart of the usual width."""
    return Chart(title, WIDTH, height, tuple(parts))
