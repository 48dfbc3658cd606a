"""The page's charts, computed here and written as SVG by ``templates/drawing.html``.

A drawing is a tree of shapes as plain data. Colours are CSS classes, so that light, dark and print need one
drawing. Every mark is a group with the class ``mark``, a label for screen readers and the same words as a
tooltip; the script lets the arrow keys walk over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from pairveil.release.curve import DET_TICKS, ErrorCurve, OperatingPoint, deviates
from pairveil.report.data import ProjectedPoints, PublicTest, WeightRow
from pairveil.report.words import NBSP, in_bits, number, short

# ---- shapes --------------------------------------------------------------------------------------


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
    said: dict[str, str | float] = {"role": "img", "aria_label": tip, "data_tip": tip}
    return shape("g", *shapes, class_=f"mark {class_}".strip(), **said, tabindex=-1)


def text(x: float, y: float, words: str, **attributes: str) -> Shape:
    """Words at a place."""
    return shape("text", words, x=x, y=y, **attributes)


def hidden(shapes: Sequence[Shape]) -> Shape:
    """Shapes that a screen reader passes over: the marks say it all."""
    return shape("g", *shapes, aria_hidden="true")


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Shape:
    return shape("line", class_=class_, x1=x1, y1=y1, x2=x2, y2=y2)


def _path(kind: str, class_: str, points: Sequence[tuple[float, float]]) -> Shape:
    return shape(kind, class_=class_, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))


def _dot(x: float, y: float) -> Shape:
    return shape("circle", cx=x, cy=y, r=4.5)


# ---- scales and axes -----------------------------------------------------------------------------

WIDTH = 360.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 30.0, 46.0
MAX_BARS = 16
LETTER = 8.5  # width of a figure at the charts' size of type, with its share of a gap

Scale = Callable[[float], float]
Tick = tuple[float, str]


def scale(low: float, high: float, at_low: float, at_high: float) -> Scale:
    """The straight line that takes ``low`` to ``at_low`` and ``high`` to ``at_high``.

    Examples
    --------
    >>> scale(0.0, 2.0, 10.0, 30.0)(1.0)
    20.0
    """
    ratio = (at_high - at_low) / ((high - low) or 1.0)
    return lambda value: at_low + (value - low) * ratio


def epsilon_scale(values: Sequence[float]) -> tuple[Scale, list[Tick]]:
    """A logarithmic axis that has room for all values, and its ticks."""
    low, high = math.log10(min(values)), math.log10(max(values))
    pad = max((high - low) * 0.08, 0.15)
    place = scale(low - pad, high + pad, LEFT, WIDTH - RIGHT)
    candidates = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
    ticks = [v for v in candidates if low - pad <= math.log10(v) <= high + pad]
    if len(ticks) > 6:
        ticks = [v for v in ticks if round(math.log10(v), 9).is_integer()]
    return (lambda value: place(math.log10(value))), [(v, f"{v:g}") for v in ticks]


def nice_ticks(low: float, high: float, *, around: bool = False) -> list[float]:
    """About five round numbers that reach over [low, high]; whole ones from 0 unless ``around``.

    Examples
    --------
    >>> nice_ticks(0, 39), nice_ticks(0.53, 0.67, around=True)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [0.5, 0.55, 0.6, 0.65, 0.7])
    """
    raw = max(high - low, 1e-9 if around else 1.0) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999)
    step = step if around else max(step, 1.0)
    first = math.floor(low / step + 1e-9) if around else 0
    last = math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, max(last, first + 1) + 1)]


def _named(ticks: Sequence[float]) -> list[Tick]:
    """Numbers short enough for a margin."""
    largest = ticks[-1]
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if largest >= 100 * unit or (largest >= unit and unit >= 1e6):
            return [(v, f"{v / unit:g}{NBSP}{letter}" if v else "0") for v in ticks]
    return [(v, f"{v:,.0f}" if largest > 1 and v == int(v) else f"{v:g}") for v in ticks]


def _axes(height: float, x: Scale, y: Scale, x_ticks: Sequence[Tick], y_ticks: Sequence[Tick],
          below: str, left: str, *, upright: bool = False) -> Shape:  # fmt: skip
    """Lines across with their numbers on the left, numbers below, and what the axes show."""
    floor, parts = height - BOTTOM, []
    for value, words in y_ticks:
        parts.append(_line(LEFT, y(value), WIDTH - RIGHT, y(value), "grid"))
        parts.append(text(LEFT - 8, y(value) + 4, words, text_anchor="end"))
    for value, words in x_ticks:
        top = TOP if upright else floor + 4
        parts.append(_line(x(value), top, x(value), floor, "grid" if upright else "tick"))
        parts.append(text(x(value), floor + 17, words, text_anchor="middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(text(middle, height - 8, below, text_anchor="middle", class_="axis-name"))
    parts.append(text(4.0, 12.0, left, class_="axis-name"))
    return hidden(parts)


def _diamond(x: float, y: float, tip: str, words: str) -> Shape:
    """The mark of what the page is about."""
    right = x > WIDTH * 0.7
    how = {"text_anchor": "end" if right else "start", "class_": "value"}
    label = text(x + (-14 if right else 14), y + 18, words, **how)
    drawn = shape("path", d=f"M{x:.1f} {y - 9:.1f} l9 9 l-9 9 l-9 -9 z")
    return mark(tip, drawn, label, class_="this-fit")


def drawn(title: str, height: float, parts: Sequence[Shape]) -> Chart:
    """A chart of the usual width."""
    return Chart(title, WIDTH, height, tuple(parts))


# ---- bars ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """One bar: its label, length, the words at its end and the words of its tooltip."""

    label: str
    value: float
    shown: str
    tip: str
    strong: bool = False


def bars(listed: Sequence[Any], title: str, start: float = 0.0, end: float | None = None,
         ticks: Sequence[Tick] = (), label_width: float = 120.0) -> Chart:  # fmt: skip
    """Bars that grow from ``start`` to the right, with their words at the end.

    ``listed``: `Bar`, or its fields in order, as templates write them.
    """
    found = [bar if isinstance(bar, Bar) else Bar(*bar) for bar in listed]
    end = max(bar.value for bar in found) or 1.0 if end is None else end
    row, foot = 34.0, 26.0 if ticks else 4.0
    height = row * len(found) + 8.0 + foot
    x = scale(start, end, label_width, WIDTH - 62.0)
    parts = []
    for value, words in ticks:
        parts.append(_line(x(value), 4.0, x(value), height - foot, "grid"))
        parts.append(text(x(value), height - 8, words, text_anchor="middle"))
    for i, bar in enumerate(found):
        y = 8.0 + row * i
        long = max(x(min(max(bar.value, start), end)) - label_width, 2.0)
        box = shape("rect", x=label_width, y=y + 6, width=long, height=row - 14, rx=2.0)
        parts.append(text(label_width - 8, y + row / 2 + 3, bar.label, text_anchor="end"))
        parts.append(mark(bar.tip, box, class_="bar strong" if bar.strong else "bar"))
        parts.append(text(label_width + long + 6, y + row / 2 + 3, bar.shown, class_="value"))
    return drawn(title, height, parts)


def bin_counts(counts: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Histogram bars (low, high, people) of equal integer width, every value in one bar.

    Examples
    --------
    >>> bin_counts([(1, 5), (3, 2)])
    [(1, 1, 5), (2, 2, 0), (3, 3, 2)]
    """
    first, last = counts[0][0], counts[-1][0]
    width = math.ceil((last - first + 1) / MAX_BARS)
    bins = [[low, max(low, min(low + width - 1, last)), 0] for low in range(first, last + 1, width)]
    for value, people in counts:
        bins[(value - first) // width][2] += people
    return [(low, high, people) for low, high, people in bins]


def histogram(counts: Sequence[tuple[int, int]], title: str, value_name: str) -> Chart:
    """People by an integer value, in at most `MAX_BARS` bars."""
    bins = bin_counts(counts)
    height, floor = 230.0, 230.0 - BOTTOM
    ticks = nice_ticks(0.0, max(people for _, _, people in bins))
    x, y = scale(0.0, len(bins), LEFT, WIDTH - RIGHT), scale(0.0, ticks[-1], floor, TOP)
    slot = x(1.0) - LEFT
    width = min(slot * 0.78, 46.0)
    labels = [str(low) if low == high else f"{low}–{high}" for low, high, _ in bins]
    every = math.ceil(max(map(len, labels)) * LETTER / slot)  # so that labels do not touch
    parts = [_axes(height, x, y, (), _named(ticks), value_name, "people")]
    for i, (_, _, people) in enumerate(bins):
        middle = x(i + 0.5)
        if i % every == 0:
            parts.append(text(middle, floor + 17, labels[i], text_anchor="middle"))
        if people:
            # Two pixels at least: the few people in most pairs are the ones to be seen.
            tall = max(floor - y(people), 2.0)
            at: dict[str, float] = {"x": middle - width / 2, "y": floor - tall}
            box = shape("rect", **at, width=width, height=tall, rx=2.0)
            who = "1 person is in" if people == 1 else f"{people:,} people are in"
            parts.append(mark(f"{who} {labels[i]} {value_name}", box, class_="bar"))
    return drawn(title, height, parts)


# ---- quality -------------------------------------------------------------------------------------

PRIVATE = "epsilon (smaller is more private)"
SHARES = [(v, f"{v:g}") for v in (0.0, 25.0, 50.0, 75.0, 100.0)]


def gain_band(
    ranges: Sequence[tuple[float, float, float]], here: float, kept: float | None
) -> Chart:
    """The range of the gain at each epsilon, and at ``here`` the share that was kept, if it is known."""
    x, x_ticks = epsilon_scale([at for at, _, _ in ranges])
    y = scale(0.0, 1.0, 300.0 - BOTTOM, TOP)
    y_ticks = [(v / 100, words) for v, words in SHARES]
    parts = [_axes(300.0, x, y, x_ticks, y_ticks, PRIVATE, "gain kept, %")]
    ends = [(x(at), y(high)) for at, _, high in ranges]
    ends += [(x(at), y(low)) for at, low, _ in reversed(ranges)]
    parts.append(_path("polygon", "band", ends))
    for at, low, high in ranges:
        tip = f"epsilon {number(at)}: {100 * low:.0f} to {100 * high:.0f} % of the gain"
        line = _line(x(at), y(low), x(at), y(high), "interval")
        parts.append(mark(tip, line, class_="curve-point"))
    if kept is not None:
        tip = f"This metric: epsilon {number(here)}, {100 * kept:.0f} % of the gain"
        parts.append(_diamond(x(here), y(min(max(kept, 0.0), 1.0)), tip, "this metric"))
    return drawn("Range: gain to expect against epsilon.", 300.0, parts)


def match_curve(found: PublicTest) -> Chart:
    """Pairs of one class found, against pairs of two classes taken for one by mistake."""
    height, names = 320.0, ("wrongly taken for alike, of 100", "rightly found, of 100")
    x, y = scale(0.0, 1.0, LEFT, WIDTH - RIGHT), scale(0.0, 1.0, height - BOTTOM, TOP)
    ticks = [(v / 100, words) for v, words in SHARES]
    parts = [_axes(height, x, y, ticks[1:], ticks, *names)]
    coin = text(x(0.8), y(0.68), "coin", text_anchor="start")
    parts.append(hidden([_line(x(0), y(0), x(1), y(1), "level"), coin]))
    curves = ((found.plain_curve, "plain distance", " plain"), (found.curve, "this metric", ""))
    for curve, _, style in curves:
        parts.append(_path("polyline", f"curve{style}", [(x(a), y(b)) for a, b in curve]))
    for wrong in (0.01, 0.05, 0.1, 0.25, 0.5):
        for curve, who, style in curves:
            right = read_off(curve, wrong)
            tip = f"{who}: {100 * right:.0f} of 100 found when {100 * wrong:g} of 100 are taken wrongly"
            parts.append(mark(tip, _dot(x(wrong), y(right)), class_=f"curve-point{style}"))
    return drawn("Curve: pairs rightly found against pairs wrongly taken.", height, parts)


def read_off(curve: Sequence[tuple[float, float]], at: float) -> float:
    """The curve's height at a place, by the straight line between its neighbours.

    Examples
    --------
    >>> read_off(((0.0, 0.0), (0.5, 1.0), (1.0, 1.0)), 0.25)
    0.5
    """
    return float(np.interp(at, *np.asarray(curve).T))


def scatter(points: ProjectedPoints, which: str) -> Chart:
    """The points before or after the metric; groups differ in colour and in shape."""
    places = points.before if which == "before" else points.after
    groups, height = sorted(set(points.groups)), 330.0
    xs, ys = zip(*places, strict=True)
    # One scale for both axes: the eye reads distances off this chart.
    wide = max(max(xs) - min(xs), max(ys) - min(ys), 1e-12) * 1.06
    side = min(WIDTH, height) - 2 * RIGHT
    middle = ((max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2)
    size = {"width": WIDTH - 2, "height": height - 2}
    parts = [shape("rect", class_="frame", x=1.0, y=1.0, **size, rx=6.0)]
    for (px, py), group in zip(places, points.groups, strict=True):
        cx = WIDTH / 2 + (px - middle[0]) / wide * side
        cy = height / 2 - (py - middle[1]) / wide * side
        rank = groups.index(group)
        sign = group_sign(rank, cx, cy)
        parts.append(mark(f"{group}, {which}", sign, class_=f"point group{rank}"))
    return drawn(f"Map of the people {which} the metric.", height, parts)


def group_sign(rank: int, x: float, y: float) -> Shape:
    """The sign of a group: circle, triangle, square, diamond."""
    if rank == 0:
        return shape("circle", cx=x, cy=y, r=3.6)
    if rank == 2:
        return shape("rect", x=x - 3.3, y=y - 3.3, width=6.6, height=6.6)
    form = ((4.4, "l4.6 8 h-9.2 z"), (5.0, "l5 5 l-5 5 l-5 -5 z"))[rank != 1]
    return shape("path", d=f"M{x:.1f} {y - form[0]:.1f} {form[1]}")


def legend_sign(rank: int) -> Chart:
    """A group's sign beside its name."""
    sign = shape("g", group_sign(rank, 7.0, 7.0), class_=f"point group{rank}")
    return Chart("", 14.0, 14.0, (sign,))


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


def star(degree: int, title: str, *, strong: bool = False) -> Chart:
    """The person in most pairs, with a line for each of them.

    Examples
    --------
    >>> star(3, "Three pairs.").height
    190.0
    """
    width, height, reach = 230.0, 190.0, 74.0
    middle, count = (width / 2, 84.0), min(max(degree, 0), MOST_SPOKES)
    lines, ends = [], []
    for i in range(count):
        angle = math.pi * (2 * i / count) + (0.0 if count > 2 else math.pi / 12)
        x, y = middle[0] + reach * math.cos(angle), middle[1] - reach * math.sin(angle)
        lines.append(shape("line", x1=middle[0], y1=middle[1], x2=x, y2=y))
        ends.append(shape("circle", cx=x, cy=y, r=4.0))
    words = "1 pair" if degree == 1 else f"{degree:,} pairs"
    centre = shape("circle", cx=middle[0], cy=middle[1], r=9.0)
    style = "star strong" if strong else "star"
    whole = mark(f"The person in most pairs is in {words}", *lines, *ends, centre, class_=style)
    label = text(middle[0], height - 6, words, text_anchor="middle", class_="value")
    return Chart(title, width, height, (whole, label))


# ---- a linkage model and its operating point -----------------------------------------------------

MOST_DRAWN = 12  # comparisons; the table has them all


def weight_bars(rows: Sequence[WeightRow]) -> Chart:
    """Bars of all levels, for a match to the right and against it to the left."""
    blocks = [list(block) for _, block in groupby(rows, key=lambda row: row.comparison)]
    blocks = blocks[:MOST_DRAWN]
    longest = max(len(row.shown) for block in blocks for row in block)
    step, head, left, right = 19.0, 22.0, 112.0, 12.0 + LETTER * longest
    height = 26.0 + sum(head + step * len(block) for block in blocks)
    held = [0.0, *(row.bits for block in blocks for row in block)]
    ticks = nice_ticks(min(held), max(held), around=True)
    x = scale(ticks[0], ticks[-1], left, WIDTH - right)
    parts, y = [_upright(ticks, x, height)], 4.0
    for block in blocks:
        parts.append(text(4.0, y + 15, short(block[0].comparison, 40), class_="value"))
        y += head
        for row in reversed(block):
            drawing = _box(0.0, row.bits, row.noise, x, y + 3, step - 7, ticks)
            tip = f"{short(row.comparison, 200)}, {row.words}: {row.shown} bits"
            parts += [
                text(left - 8, y + 14, row.words, text_anchor="end"),
                mark(tip, *drawing, class_="bar strong" if row.bits > 0 else "bar"),
                text(WIDTH - right + 10, y + 14, row.shown),
            ]
            y += step
    return drawn("Bars: evidence for or against a match, by comparison and level.", height, parts)


def waterfall(rows: Sequence[WeightRow], prior: float) -> tuple[Chart, float, float]:
    """How a pair that agrees best in everything becomes a match: the chart, bits before, bits in all."""
    best = [row for row in rows if row.level == row.n_levels - 1][:MOST_DRAWN]
    start = math.log2(prior / (1 - prior))
    sums = [start]
    for row in best:
        sums.append(sums[-1] + row.bits)
    noise = math.hypot(*(row.noise or 0.0 for row in best)) or None
    left, right, step = 150.0, 10.0 + LETTER * len(in_bits(sums[-1], noise)), 24.0
    height = 12.0 + step * (len(best) + 2) + 22.0
    ticks = nice_ticks(min(0.0, *sums), max(0.0, *sums), around=True)
    x = scale(ticks[0], ticks[-1], left, WIDTH - right)
    steps: list[tuple[str, float, float, str, float | None]] = [
        ("before comparing", 0.0, start, in_bits(start), None)
    ]
    steps += [
        (short(row.comparison, 19), sums[i], sums[i + 1], in_bits(row.bits), row.noise)
        for i, row in enumerate(best)
    ]
    steps.append(("all together", 0.0, sums[-1], in_bits(sums[-1], noise), noise))
    parts = [_upright(ticks, x, height)]
    for i, (name, begin, end, words, spread) in enumerate(steps):
        y = 8.0 + step * i
        drawing = _box(begin, end, spread, x, y + 3, step - 9, ticks)
        strong = "bar strong" if i in (0, len(steps) - 1) else "bar"
        parts += [
            text(left - 8, y + 16, name, text_anchor="end"),
            mark(f"{name}: {words} bits, {in_bits(end)} in all", *drawing, class_=strong),
            text(WIDTH - right + 8, y + 16, words, class_="value"),
        ]
    title = (
        "Waterfall: bits of a pair that agrees best in everything, one comparison after another."
    )
    return drawn(title, height, parts), start, sums[-1]


def _upright(ticks: Sequence[float], x: Scale, height: float) -> Shape:
    """Lines from top to bottom, with the bits under them."""
    lines = [_line(x(v), 4.0, x(v), height - 22, "grid") for v in ticks]
    words = [text(x(v), height - 6, f"{v:g}", text_anchor="middle") for v in ticks]
    return hidden([*lines, *words])


def _box(begin: float, end: float, noise: float | None, x: Scale, y: float, tall: float,
         ticks: Sequence[float]) -> list[Shape]:  # fmt: skip
    """A bar, and one standard deviation of the noise on either side of its end, cut off at the edges."""
    ends = sorted((x(begin), x(end)))
    wide = max(ends[1] - ends[0], 1.5)
    shapes = [shape("rect", x=ends[0], y=y, width=wide, height=tall, rx=2.0)]
    if noise:
        low, high = (min(max(end + s * noise, ticks[0]), ticks[-1]) for s in (-1, 1))
        shapes.append(_line(x(low), y + tall / 2, x(high), y + tall / 2, "interval"))
    return shapes


def det_curve(curve: ErrorCurve, points: Sequence[OperatingPoint]) -> Chart:
    """False matches against missed matches on normal deviates, with band and chosen threshold."""
    height, ends = 330.0, (float(deviates(DET_TICKS[0])), float(deviates(0.999)))
    x, y = scale(*ends, LEFT, WIDTH - RIGHT), scale(*ends, height - BOTTOM, TOP)
    ticks = [(float(deviates(tick)), f"{100 * tick:g}") for tick in DET_TICKS]
    names = ("false matches, of 100 that do not match", "matches missed, of 100")
    best, worst = (np.minimum(deviates(one), ends[1]) for one in curve.outline())
    middle = np.minimum(deviates(np.column_stack([curve.fmr, curve.fnmr])), ends[1])
    band = [(x(a), y(b)) for a, b in (*best, *worst[::-1])]
    parts = [
        _axes(height, x, y, ticks, ticks, *names, upright=True),
        _path("polygon", "band", band),
        _path("polyline", "curve", [(x(a), y(b)) for a, b in middle]),
    ]
    for rate, at, _, _, missed, most in points:
        a = float(deviates(rate))
        b = min(float(np.interp(a, middle[::-1, 0], middle[::-1, 1])), ends[1])
        tip = (
            f"threshold {at:.4g}: {100 * rate:g} false matches of 100 aimed at, "
            f"{100 * missed:.3g} to {100 * most:.3g} of 100 missed"
        )
        if rate == curve.asked:
            parts.append(_diamond(x(a), y(b), tip, "chosen"))
        else:
            parts.append(mark(tip, _dot(x(a), y(b)), class_="curve-point"))
    return drawn("Curve: false matches against missed matches, with its band.", height, parts)
