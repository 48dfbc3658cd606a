"""The page's charts as inline SVG: no library, no network, the same on screen and on paper.

Colours are CSS classes, so that light, dark and print need one drawing. Every mark is a group with the
class ``mark``, a label for screen readers and the same words as a tooltip; the script lets the arrow keys
walk over them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pairveil.report.data import ProjectedPoints, UtilityCurve, UtilityPoint
from pairveil.report.markup import Html, tag
from pairveil.report.words import NBSP, number

WIDTH = 460.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 30.0, 46.0
MAX_BARS = 16
LETTER = 8.5  # width of a figure at the charts' size of type, with its share of a gap


@dataclass(frozen=True)
class Bar:
    """One bar: its label, length, the words at its end and the words of its tooltip."""

    label: str
    value: float
    shown: str
    tip: str
    strong: bool = False


def mark(tip: str, *shapes: Html, class_: str = "") -> Html:
    """A group of shapes that can be pointed at or focused and then says ``tip``."""
    return tag(
        "g",
        *shapes,
        class_=f"mark {class_}".strip(),
        role="img",
        aria_label=tip,
        data_tip=tip,
        tabindex=-1,
    )


def histogram(counts: Sequence[tuple[int, int]], *, title: str, value_name: str) -> Html:
    """People by an integer value, in at most `MAX_BARS` bars."""
    bins = bin_counts(counts)
    height, top = 230.0, max(people for _, _, people in bins)
    floor = height - BOTTOM
    ticks = nice_ticks(0.0, top)
    y = _scale(0.0, ticks[-1], floor, TOP)
    slot = (WIDTH - LEFT - RIGHT) / len(bins)
    width = min(slot * 0.78, 46.0)
    labels = [str(low) if low == high else f"{low}–{high}" for low, high, _ in bins]
    every = math.ceil(max(map(len, labels)) * LETTER / slot)  # so that labels do not touch
    parts = [_y_axis(ticks, y), _axis_names(value_name, "people", height)]
    for i, (_, _, people) in enumerate(bins):
        middle = LEFT + slot * (i + 0.5)
        if i % every == 0:
            parts.append(_text(middle, floor + 17, labels[i], text_anchor="middle"))
        if people:
            # Two pixels at least: the few people who set kappa are the ones to be seen.
            tall = max(floor - y(people), 2.0)
            box = tag(
                "rect", x=middle - width / 2, y=floor - tall, width=width, height=tall, rx=2.0
            )
            who = "1 person has" if people == 1 else f"{people:,} people have"
            parts.append(mark(f"{who} {value_name} {labels[i]}", box, class_="bar"))
    return _svg(title, height, parts)


def horizontal_bars(
    bars: Sequence[Bar],
    *,
    title: str,
    start: float,
    end: float,
    ticks: Sequence[tuple[float, str]] = (),
    label_width: float = 120.0,
) -> Html:
    """Bars that grow from ``start`` to the right, with their words at the end."""
    row, foot = 34.0, 26.0 if ticks else 4.0
    height = row * len(bars) + 8.0 + foot
    x = _scale(start, end, label_width, WIDTH - 62.0)
    parts = []
    for value, words in ticks:
        parts.append(tag("line", class_="grid", x1=x(value), x2=x(value), y1=4.0, y2=height - foot))
        parts.append(_text(x(value), height - 8, words, text_anchor="middle"))
    for i, bar in enumerate(bars):
        y = 8.0 + row * i
        long = max(x(min(max(bar.value, start), end)) - label_width, 2.0)
        shape = tag("rect", x=label_width, y=y + 6, width=long, height=row - 14, rx=2.0)
        parts.append(_text(label_width - 8, y + row / 2 + 3, bar.label, text_anchor="end"))
        parts.append(mark(bar.tip, shape, class_="bar strong" if bar.strong else "bar"))
        parts.append(_text(label_width + long + 6, y + row / 2 + 3, bar.shown, class_="value"))
    return _svg(title, height, parts)


def utility_curve(curve: UtilityCurve, *, title: str) -> Html:
    """Score against epsilon on a logarithmic axis, with this fit marked."""
    points = sorted((p for p in curve.points if math.isfinite(p.epsilon)), key=lambda p: p.epsilon)
    fit = curve.this_fit
    drawn = [*points, *([fit] if fit is not None and math.isfinite(fit.epsilon) else [])]
    height, floor = 300.0, 300.0 - BOTTOM
    x, x_ticks = _epsilon_scale([p.epsilon for p in drawn])
    levels = [v for v in (curve.euclidean, curve.reference) if v is not None]
    scores = [v for p in drawn for v in (p.score, p.low, p.high) if v is not None] + levels
    ticks = nice_ticks(min(scores), max(scores), around=True)
    y = _scale(ticks[0], ticks[-1], floor, TOP)
    parts = [_y_axis(ticks, y), _axis_names("epsilon (smaller is more private)", "", height)]
    parts.append(_text(4.0, 12, curve.score_name, class_="axis-name"))
    for value in x_ticks:
        parts.append(tag("line", class_="tick", x1=x(value), x2=x(value), y1=floor, y2=floor + 4))
        parts.append(_text(x(value), floor + 17, f"{value:g}", text_anchor="middle"))
    for level, words in ((curve.reference, "without privacy"), (curve.euclidean, "no learning")):
        if level is not None:
            parts.append(_level(y(level), f"{words}, {number(level)}"))
    if len(points) > 1:
        line = " ".join(f"{x(p.epsilon):.1f},{y(p.score):.1f}" for p in points)
        parts.append(tag("polyline", class_="curve", points=line))
    for point in points:
        parts.append(_curve_point(point, x(point.epsilon), y, curve.score_name))
    if fit is not None and math.isfinite(fit.epsilon):
        parts.append(_this_fit(fit, x(fit.epsilon), y(fit.score), curve.score_name))
    return _svg(title, height, parts)


def scatter(points: ProjectedPoints, which: str, *, title: str) -> Html:
    """The points before or after the metric; groups differ in colour and in shape."""
    places = points.before if which == "before" else points.after
    groups = sorted(set(points.groups))
    height = 330.0
    xs, ys = [p[0] for p in places], [p[1] for p in places]
    # One scale for both axes: the eye reads distances off this chart.
    span = max(max(xs) - min(xs), max(ys) - min(ys), 1e-12) * 1.06
    side = min(WIDTH, height) - 2 * RIGHT
    middle_x, middle_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    parts = [tag("rect", class_="frame", x=1.0, y=1.0, width=WIDTH - 2, height=height - 2, rx=6.0)]
    for (px, py), group in zip(places, points.groups, strict=True):
        cx = WIDTH / 2 + (px - middle_x) / span * side
        cy = height / 2 - (py - middle_y) / span * side
        rank = groups.index(group)
        shape = _shape(rank, cx, cy)
        parts.append(mark(f"{group}, {which}", shape, class_=f"point group{rank}"))
    return _svg(title, height, parts)


def legend(groups: Sequence[str]) -> Html:
    """Colour, shape and name of each group."""
    items = []
    for rank, group in enumerate(groups):
        sign = tag(
            "svg",
            tag("g", _shape(rank, 7.0, 7.0), class_=f"point group{rank}"),
            viewBox="0 0 14 14",
            width=14,
            height=14,
            aria_hidden="true",
        )
        items.append(tag("span", sign, f" {group}", class_="key"))
    return tag("p", items, class_="legend")


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


def nice_ticks(low: float, high: float, *, around: bool = False) -> list[float]:
    """About five round numbers that reach over [low, high]; ``around`` lets the first be above 0.

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


# ---- parts ------------------------------------------------------------------------------------


def _scale(low: float, high: float, at_low: float, at_high: float):  # type: ignore[no-untyped-def]
    ratio = (at_high - at_low) / ((high - low) or 1.0)
    return lambda value: at_low + (value - low) * ratio


def _epsilon_scale(values: Sequence[float]):  # type: ignore[no-untyped-def]
    low, high = math.log10(min(values)), math.log10(max(values))
    pad = max((high - low) * 0.08, 0.15)
    place = _scale(low - pad, high + pad, LEFT, WIDTH - RIGHT)
    candidates = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
    ticks = [v for v in candidates if low - pad <= math.log10(v) <= high + pad]
    if len(ticks) > 8:
        ticks = [v for v in ticks if round(math.log10(v), 9).is_integer()]
    return (lambda value: place(math.log10(value))), ticks


def _svg(title: str, height: float, parts: Sequence[Html]) -> Html:
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="group",
        aria_label=f"{title} Arrow keys move from mark to mark.",
        class_="chart",
    )


def _text(x: float, y: float, words: str, **attributes: str) -> Html:
    return tag("text", words, x=x, y=y, **attributes)


def _y_axis(ticks: Sequence[float], y) -> Html:  # type: ignore[no-untyped-def]
    parts = []
    for value in ticks:
        parts.append(
            tag("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y(value), y2=y(value))
        )
        parts.append(_text(LEFT - 8, y(value) + 4, _tick(value, ticks[-1]), text_anchor="end"))
    return tag("g", parts, aria_hidden="true")


def _tick(value: float, largest: float) -> str:
    """A number short enough for the margin."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if largest >= 100 * unit or (largest >= unit and unit >= 1e6):
            return f"{value / unit:g}{NBSP}{letter}" if value else "0"
    return f"{value:,.0f}" if largest > 1 and value == int(value) else f"{value:g}"


def _axis_names(below: str, left: str, height: float) -> Html:
    middle = (LEFT + WIDTH - RIGHT) / 2
    names = [_text(middle, height - 8, below, text_anchor="middle", class_="axis-name")]
    if left:
        names.append(_text(4.0, 12.0, left, class_="axis-name"))
    return tag("g", names, aria_hidden="true")


def _level(y: float, words: str) -> Html:
    return mark(
        words,
        tag("line", class_="level", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y),
        _text(WIDTH - RIGHT, y - 5, words, text_anchor="end"),
        class_="reference",
    )


def _curve_point(point: UtilityPoint, x: float, y, score_name: str) -> Html:  # type: ignore[no-untyped-def]
    shapes = []
    interval = ""
    if point.low is not None and point.high is not None:
        shapes.append(tag("line", class_="interval", x1=x, x2=x, y1=y(point.low), y2=y(point.high)))
        interval = f" (95 % interval {number(point.low)} to {number(point.high)})"
    shapes.append(tag("circle", cx=x, cy=y(point.score), r=4.5))
    tip = f"epsilon {number(point.epsilon)}: {score_name} {number(point.score)}{interval}"
    return mark(tip, *shapes, class_="curve-point")


def _this_fit(point: UtilityPoint, x: float, y: float, score_name: str) -> Html:
    diamond = f"M{x:.1f} {y - 9:.1f} l9 9 l-9 9 l-9 -9 z"
    near_right = x > WIDTH * 0.7
    label = _text(
        x + (-14 if near_right else 14),
        y + 18,
        "this metric",
        text_anchor="end" if near_right else "start",
        class_="value",
    )
    tip = f"This metric: epsilon {number(point.epsilon)}, {score_name} {number(point.score)}"
    return mark(tip, tag("path", d=diamond), label, class_="this-fit")


def _shape(rank: int, x: float, y: float) -> Html:
    if rank == 0:
        return tag("circle", cx=x, cy=y, r=3.6)
    if rank == 1:
        return tag("path", d=f"M{x:.1f} {y - 4.4:.1f} l4.6 8 h-9.2 z")
    if rank == 2:
        return tag("rect", x=x - 3.3, y=y - 3.3, width=6.6, height=6.6)
    return tag("path", d=f"M{x:.1f} {y - 5:.1f} l5 5 l-5 5 l-5 -5 z")
