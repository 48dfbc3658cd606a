"""The page's charts, computed here and drawn by a template: the same on screen and on paper.

What a drawing is made of, as plain data; `templates/drawing.html` writes it as SVG.

Colours are CSS classes, so that light, dark and print need one drawing. Every mark is a group with the class
``mark``, a label for screen readers and the same words as a tooltip; the script lets the arrow keys walk over
them.

Scales, ticks and axes of the page's charts.

Pictures for people who read no charts: a hundred guesses, and one person's pairs before and after.

The pieces that templates lay out: tables, figures and facts, as plain data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pairveil.report.data import ProjectedPoints, PublicTest, UtilityCurve, UtilityPoint
from pairveil.report.words import NBSP, number

# ---- the same on screen and on paper -------------------------------------------------------------

# ---- What a drawing is made of, as plain data; `templates/drawing.html` writes it as SVG ---------


@dataclass(frozen=True)
class Shape:
    """An SVG element: its name, attributes, and the shapes or words inside it."""

    kind: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Shape | str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A drawing of a size, with words for those who do not see it."""

    title: str
    width: float
    height: float
    shapes: tuple[Shape, ...]


def shape(kind: str, /, *children: Shape | str, **attributes: str | float) -> Shape:
    """One element; an attribute's underscores become hyphens and a trailing one falls off (``class_``).

    Examples
    --------
    >>> shape("line", x1=0.0, class_="grid").attributes
    (('x1', '0'), ('class', 'grid'))
    """
    found = []
    for key, value in attributes.items():
        name = key if key == "viewBox" else key.rstrip("_").replace("_", "-")
        found.append((name, f"{value:.6g}" if isinstance(value, float) else str(value)))
    return Shape(kind, tuple(found), children)


def mark(tip: str, *shapes: Shape, class_: str = "") -> Shape:
    """A group of shapes that can be pointed at or focused and then says ``tip``."""
    return shape(
        "g",
        *shapes,
        class_=f"mark {class_}".strip(),
        role="img",
        aria_label=tip,
        data_tip=tip,
        tabindex=-1,
    )


def text(x: float, y: float, words: str, **attributes: str) -> Shape:
    """Words at a place."""
    return shape("text", words, x=x, y=y, **attributes)


def hidden(shapes: Sequence[Shape]) -> Shape:
    """Shapes that a screen reader passes over: the marks say it all."""
    return shape("g", *shapes, aria_hidden="true")


def short_number(value: float, largest: float) -> str:
    r"""A number short enough for a margin.

    Examples
    --------
    >>> short_number(2e6, 8e6), short_number(0.25, 1.0)
    ('2\xa0M', '0.25')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if largest >= 100 * unit or (largest >= unit and unit >= 1e6):
            return f"{value / unit:g}{NBSP}{letter}" if value else "0"
    return f"{value:,.0f}" if largest > 1 and value == int(value) else f"{value:g}"


# ---- Scales, ticks and axes of the page's charts -------------------------------------------------

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


# ---- the same on screen and on paper -------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """One bar: its label, length, the words at its end and the words of its tooltip."""

    label: str
    value: float
    shown: str
    tip: str
    strong: bool = False


def histogram(counts: Sequence[tuple[int, int]], *, title: str, value_name: str) -> Chart:
    """People by an integer value, in at most `MAX_BARS` bars."""
    bins = bin_counts(counts)
    height, top = 230.0, max(people for _, _, people in bins)
    floor = height - BOTTOM
    ticks = nice_ticks(0.0, top)
    y = scale(0.0, ticks[-1], floor, TOP)
    slot = (WIDTH - LEFT - RIGHT) / len(bins)
    width = min(slot * 0.78, 46.0)
    labels = [str(low) if low == high else f"{low}–{high}" for low, high, _ in bins]
    every = math.ceil(max(map(len, labels)) * LETTER / slot)  # so that labels do not touch
    parts = [y_axis(ticks, y), axis_names(value_name, "people", height)]
    for i, (_, _, people) in enumerate(bins):
        middle = LEFT + slot * (i + 0.5)
        if i % every == 0:
            parts.append(text(middle, floor + 17, labels[i], text_anchor="middle"))
        if people:
            # Two pixels at least: the few people in most pairs are the ones to be seen.
            tall = max(floor - y(people), 2.0)
            box = shape(
                "rect", x=middle - width / 2, y=floor - tall, width=width, height=tall, rx=2.0
            )
            who = "1 person is in" if people == 1 else f"{people:,} people are in"
            parts.append(mark(f"{who} {labels[i]} {value_name}", box, class_="bar"))
    return drawn(title, height, parts)


def horizontal_bars(
    bars: Sequence[Bar],
    *,
    title: str,
    start: float,
    end: float,
    ticks: Sequence[tuple[float, str]] = (),
    label_width: float = 120.0,
) -> Chart:
    """Bars that grow from ``start`` to the right, with their words at the end."""
    row, foot = 34.0, 26.0 if ticks else 4.0
    height = row * len(bars) + 8.0 + foot
    x = scale(start, end, label_width, WIDTH - 62.0)
    parts = []
    for value, words in ticks:
        line = shape("line", class_="grid", x1=x(value), x2=x(value), y1=4.0, y2=height - foot)
        parts += [line, text(x(value), height - 8, words, text_anchor="middle")]
    for i, bar in enumerate(bars):
        y = 8.0 + row * i
        long = max(x(min(max(bar.value, start), end)) - label_width, 2.0)
        box = shape("rect", x=label_width, y=y + 6, width=long, height=row - 14, rx=2.0)
        parts.append(text(label_width - 8, y + row / 2 + 3, bar.label, text_anchor="end"))
        parts.append(mark(bar.tip, box, class_="bar strong" if bar.strong else "bar"))
        parts.append(text(label_width + long + 6, y + row / 2 + 3, bar.shown, class_="value"))
    return drawn(title, height, parts)


# ---- quality ----------------------------------------------------------------------------------


def utility_curve(curve: UtilityCurve, *, title: str) -> Chart:
    """Score against epsilon on a logarithmic axis, with this fit marked."""
    points = sorted((p for p in curve.points if math.isfinite(p.epsilon)), key=lambda p: p.epsilon)
    fit = curve.this_fit
    shown = [*points, *([fit] if fit is not None and math.isfinite(fit.epsilon) else [])]
    height, floor = 300.0, 300.0 - BOTTOM
    x, x_ticks = epsilon_scale([p.epsilon for p in shown])
    levels = [v for v in (curve.euclidean, curve.reference) if v is not None]
    scores = [v for p in shown for v in (p.score, p.low, p.high) if v is not None] + levels
    ticks = nice_ticks(min(scores), max(scores), around=True)
    y = scale(ticks[0], ticks[-1], floor, TOP)
    parts = [y_axis(ticks, y), axis_names("epsilon (smaller is more private)", "", height)]
    parts.append(text(4.0, 12, curve.score_name, class_="axis-name"))
    for value in x_ticks:
        parts.append(shape("line", class_="tick", x1=x(value), x2=x(value), y1=floor, y2=floor + 4))
        parts.append(text(x(value), floor + 17, f"{value:g}", text_anchor="middle"))
    for level, words in ((curve.reference, "without privacy"), (curve.euclidean, "no learning")):
        if level is not None:
            parts.append(_level(y(level), f"{words}, {number(level)}"))
    if len(points) > 1:
        line = " ".join(f"{x(p.epsilon):.1f},{y(p.score):.1f}" for p in points)
        parts.append(shape("polyline", class_="curve", points=line))
    for point in points:
        parts.append(_curve_point(point, x(point.epsilon), y, curve.score_name))
    if fit is not None and math.isfinite(fit.epsilon):
        parts.append(_this_fit(fit, x(fit.epsilon), y(fit.score), curve.score_name))
    return drawn(title, height, parts)


def _level(y: float, words: str) -> Shape:
    return mark(
        words,
        shape("line", class_="level", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y),
        text(WIDTH - RIGHT, y - 5, words, text_anchor="end"),
        class_="reference",
    )


def _curve_point(point: UtilityPoint, x: float, y: Scale, score_name: str) -> Shape:
    shapes = []
    interval = ""
    if point.low is not None and point.high is not None:
        shapes.append(
            shape("line", class_="interval", x1=x, x2=x, y1=y(point.low), y2=y(point.high))
        )
        interval = f" (95 % interval {number(point.low)} to {number(point.high)})"
    shapes.append(shape("circle", cx=x, cy=y(point.score), r=4.5))
    tip = f"epsilon {number(point.epsilon)}: {score_name} {number(point.score)}{interval}"
    return mark(tip, *shapes, class_="curve-point")


def _this_fit(point: UtilityPoint, x: float, y: float, score_name: str) -> Shape:
    diamond = f"M{x:.1f} {y - 9:.1f} l9 9 l-9 9 l-9 -9 z"
    near_right = x > WIDTH * 0.7
    label = text(
        x + (-14 if near_right else 14),
        y + 18,
        "this metric",
        text_anchor="end" if near_right else "start",
        class_="value",
    )
    tip = f"This metric: epsilon {number(point.epsilon)}, {score_name} {number(point.score)}"
    return mark(tip, shape("path", d=diamond), label, class_="this-fit")


def gain_band(
    ranges: Sequence[tuple[float, float, float]], here: tuple[float, float | None], *, title: str
) -> Chart:
    """The range of the gain at each epsilon, and at ``here`` the share that was reached, if it is known."""
    height, floor = 300.0, 300.0 - BOTTOM
    x, x_ticks = epsilon_scale([at for at, _, _ in ranges])
    y = scale(0.0, 100.0, floor, TOP)
    parts = [y_axis([0.0, 25.0, 50.0, 75.0, 100.0], y)]
    parts.append(axis_names("epsilon (smaller is more private)", "gain kept, %", height))
    for value in x_ticks:
        parts.append(shape("line", class_="tick", x1=x(value), x2=x(value), y1=floor, y2=floor + 4))
        parts.append(text(x(value), floor + 17, f"{value:g}", text_anchor="middle"))
    ends = [(at, high) for at, _, high in ranges] + [(at, low) for at, low, _ in reversed(ranges)]
    line = " ".join(f"{x(at):.1f},{y(100 * share):.1f}" for at, share in ends)
    parts.append(shape("polygon", class_="band", points=line))
    for at, low, high in ranges:
        span = {"y1": y(100 * low), "y2": y(100 * high)}
        stroke = shape("line", class_="interval", x1=x(at), x2=x(at), **span)
        tip = f"epsilon {number(at)}: {100 * low:.0f} to {100 * high:.0f} % of the gain"
        parts.append(mark(tip, stroke, class_="curve-point"))
    at, kept = here
    if kept is not None:
        shown = UtilityPoint(at, round(100 * kept))
        parts.append(_this_fit(shown, x(at), y(100 * min(max(kept, 0.0), 1.0)), "% of the gain:"))
    return drawn(title, height, parts)


def match_curve(found: PublicTest, *, title: str) -> Chart:
    """Pairs of one class found, against pairs of two classes taken for one by mistake."""
    height, floor = 320.0, 320.0 - BOTTOM
    x, y = scale(0.0, 100.0, LEFT, WIDTH - RIGHT), scale(0.0, 100.0, floor, TOP)
    ticks = [0.0, 25.0, 50.0, 75.0, 100.0]
    parts = [y_axis(ticks, y), axis_names("wrongly taken for alike, of 100", "", height)]
    parts.append(text(4.0, 12, "rightly found, of 100", class_="axis-name"))
    parts += [text(x(v), floor + 17, f"{v:g}", text_anchor="middle") for v in ticks[1:]]
    coin = shape("line", class_="level", x1=x(0), y1=y(0), x2=x(100), y2=y(100))
    parts.append(hidden([coin, text(x(80), y(68), "coin", text_anchor="start")]))
    for curve, style in ((found.plain_curve, "curve plain"), (found.curve, "curve")):
        line = " ".join(f"{x(100 * wrong):.1f},{y(100 * right):.1f}" for wrong, right in curve)
        parts.append(shape("polyline", class_=style, points=line))
    for wrong in (0.01, 0.05, 0.1, 0.25, 0.5):
        for curve, who, style in (
            (found.plain_curve, "plain distance", "curve-point plain"),
            (found.curve, "this metric", "curve-point"),
        ):
            right = read_off(curve, wrong)
            dot = shape("circle", cx=x(100 * wrong), cy=y(100 * right), r=4.5)
            tip = f"{who}: {100 * right:.0f} of 100 found when {100 * wrong:g} of 100 are taken wrongly"
            parts.append(mark(tip, dot, class_=style))
    return drawn(title, height, parts)


def read_off(curve: Sequence[tuple[float, float]], at: float) -> float:
    """The curve's height at a place, by the straight line between its neighbours.

    Examples
    --------
    >>> read_off(((0.0, 0.0), (0.5, 1.0), (1.0, 1.0)), 0.25)
    0.5
    """
    for (x0, y0), (x1, y1) in pairwise(curve):
        if x0 <= at <= x1:
            return y1 if x1 == x0 else y0 + (y1 - y0) * (at - x0) / (x1 - x0)
    return curve[-1][1]


def scatter(points: ProjectedPoints, which: str, *, title: str) -> Chart:
    """The points before or after the metric; groups differ in colour and in shape."""
    places = points.before if which == "before" else points.after
    groups = sorted(set(points.groups))
    height = 330.0
    xs, ys = [p[0] for p in places], [p[1] for p in places]
    # One scale for both axes: the eye reads distances off this chart.
    span = max(max(xs) - min(xs), max(ys) - min(ys), 1e-12) * 1.06
    side = min(WIDTH, height) - 2 * RIGHT
    middle_x, middle_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    frame = shape("rect", class_="frame", x=1.0, y=1.0, width=WIDTH - 2, height=height - 2, rx=6.0)
    parts = [frame]
    for (px, py), group in zip(places, points.groups, strict=True):
        cx = WIDTH / 2 + (px - middle_x) / span * side
        cy = height / 2 - (py - middle_y) / span * side
        rank = groups.index(group)
        parts.append(
            mark(f"{group}, {which}", group_sign(rank, cx, cy), class_=f"point group{rank}")
        )
    return drawn(title, height, parts)


def group_sign(rank: int, x: float, y: float) -> Shape:
    """The sign of a group: circle, triangle, square, diamond."""
    if rank == 0:
        return shape("circle", cx=x, cy=y, r=3.6)
    if rank == 1:
        return shape("path", d=f"M{x:.1f} {y - 4.4:.1f} l4.6 8 h-9.2 z")
    if rank == 2:
        return shape("rect", x=x - 3.3, y=y - 3.3, width=6.6, height=6.6)
    return shape("path", d=f"M{x:.1f} {y - 5:.1f} l5 5 l-5 5 l-5 -5 z")


# ---- a hundred guesses, and one person's pairs before and after ----------------------------------

MOST_SPOKES = 48  # more than these run into each other; the words say how many there are


def hundred_guesses(right: int) -> Chart:
    """A hundred heads: what a coin gets right, what the release adds at most, what stays wrong.

    ``right``: guesses in 100 that are right at most, between 50 and 100.

    Examples
    --------
    >>> len(hundred_guesses(61).shapes)
    3
    """
    more, wrong = right - 50, 100 - right
    parts = [
        _heads("50 of 100: right by tossing a coin", range(50), "coin"),
        _heads(f"{more} of 100: right because of this release, at most", range(50, right), "more"),
        _heads(f"{wrong} of 100: wrong all the same, at least", range(right, 100), "wrong"),
    ]
    title = f"A hundred guesses: at most {right} are right, a coin gets 50 right."
    return Chart(title, 420.0, 132.0, tuple(part for part in parts if part.children))


def _heads(tip: str, which: range, style: str) -> Shape:
    shapes = []
    for i in which:
        x, y = 12.0 + 20.8 * (i % 20), 10.0 + 26.0 * (i // 20)
        shapes.append(shape("circle", cx=x, cy=y, r=4.6))
        shapes.append(shape("path", d=f"M{x - 7.4:.1f} {y + 14:.1f} a7.4 8.2 0 0 1 14.8 0 z"))
    return mark(tip, *shapes, class_=f"head {style}") if shapes else shape("g")


def star(degree: int, *, title: str, strong: bool) -> Chart:
    """The person in most pairs, with a line for each of them.

    Examples
    --------
    >>> star(3, title="Three pairs.", strong=True).height
    190.0
    """
    width, height, reach = 230.0, 190.0, 74.0
    middle_x, middle_y, drawn = width / 2, 84.0, min(max(degree, 0), MOST_SPOKES)
    lines, ends = [], []
    for i in range(drawn):
        angle = math.pi * (2 * i / drawn) + (0.0 if drawn > 2 else math.pi / 12)
        x, y = middle_x + reach * math.cos(angle), middle_y - reach * math.sin(angle)
        lines.append(shape("line", x1=middle_x, y1=middle_y, x2=x, y2=y))
        ends.append(shape("circle", cx=x, cy=y, r=4.0))
    words = "1 pair" if degree == 1 else f"{degree:,} pairs"
    tip = f"The person in most pairs is in {words}"
    centre = shape("circle", cx=middle_x, cy=middle_y, r=9.0)
    whole = mark(tip, *lines, *ends, centre, class_="star strong" if strong else "star")
    label = text(middle_x, height - 6, words, text_anchor="middle", class_="value")
    return Chart(title, width, height, (whole, label))


# ---- The pieces that templates lay out: tables, figures and facts, as plain data -----------------


@dataclass(frozen=True)
class Table:
    """A table with a caption, column heads and a row head in the first column.

    Attributes
    ----------
    caption : str
    columns : tuple of str
    rows : tuple of tuples of str
    chosen : int or None
        The row that the page is about.
    chosen_as : str
        What the badge beside that row's head says.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    chosen: int | None = None
    chosen_as: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart, its caption, and the table behind it."""

    chart: Chart
    caption: str
    table: Table | None = None


@dataclass(frozen=True)
class Fact:
    """A name, a value in large type, and a remark."""

    name: str
    value: str
    remark: str


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    chosen: int | None = None,
    chosen_as: str = "",
) -> Table:
    """A table of any sequences.

    Examples
    --------
    >>> table("People", ["who"], [["a"], ["b"]]).rows
    (('a',), ('b',))
    """
    return Table(caption, tuple(columns), tuple(tuple(row) for row in rows), chosen, chosen_as)
