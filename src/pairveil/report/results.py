"""The report on a ranking, clusters or a network: what was released, in figures or words.

The report on a linkage model: match weights by comparison and level, with their noise.

The report on an operating point: a DET curve with its band, the threshold, and other rates to choose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from scipy.special import expit

from pairveil.errors import InputError
from pairveil.release.curve import (
    DET_TICKS,
    ErrorCurve,
    OperatingPoint,
    deviates,
    operating_points,
)
from pairveil.release.linkage import ReleasedLinkage
from pairveil.release.payloads import DescribedNetwork, ReleasedRanking
from pairveil.release.release import CURVE_FILE
from pairveil.report.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Bar,
    Chart,
    Figure,
    Scale,
    Shape,
    axis_names,
    drawn,
    hidden,
    horizontal_bars,
    mark,
    nice_ticks,
    scale,
    shape,
    table,
    text,
)
from pairveil.report.data import ReportData
from pairveil.report.quality import short
from pairveil.report.words import cost, number, one_in

# ---- The report on a ranking, clusters or a network: what was released, in figures or words ------

MAX_DRAWN, MAX_LISTED, MAX_TEXT = 12, 1000, 2000


@dataclass(frozen=True)
class AnswerView:
    """A released answer as the page shows it.

    Attributes
    ----------
    title, released, lead : str
        What it is called, what was released, and how to read the figure.
    figure : Figure or None
    text : str
        Shown as it is, below.
    """

    title: str
    released: str
    lead: str
    figure: Figure | None = None
    text: str = ""


def view_of(answer: Any) -> AnswerView:
    """What the page shows of a ranking, of clusters or of a network.

    Examples
    --------
    >>> view_of(ReleasedRanking(strengths=[1.0, -1.0], names=["tea", "coffee"])).figure.table.rows[0][:2]
    ('tea', '1')
    """
    if isinstance(answer, DescribedNetwork):
        return _network(answer)
    return _ranking(answer) if isinstance(answer, ReleasedRanking) else _clusters(answer)


def _network(found: DescribedNetwork) -> AnswerView:
    shape = " × ".join(map(number, found.shape))
    return AnswerView(
        "A network that compares people",
        f"A network of {number(found.n_parameters)} numbers that makes a point of what is known of a person; "
        "how alike two people are is how close their points lie.",
        f"It takes {shape} numbers of each person. Its layers, as the sender describes them:",
        text=found.architecture[:MAX_TEXT],
    )


def _ranking(found: ReleasedRanking) -> AnswerView:
    order = np.argsort(-found.strengths, kind="stable").tolist()
    names = found.names or tuple(f"item {i}" for i in range(len(order)))
    rows = []
    for place, item in enumerate(order[:MAX_LISTED], start=1):
        low, high = (
            ("", "")
            if found.rank_low is None
            else (str(found.rank_low[item]), str(found.rank_high[item]))
        )
        rows.append((names[item], str(place), f"{found.strengths[item]:.3f}", low, high))
    above = found.strengths[order] - np.median(found.strengths)
    preferred = 100.0 * expit(above)  # Bradley-Terry: the odds are exp of the difference
    bars = [
        Bar(
            short(row[0]),
            share,
            f"{share:.0f} %",
            f"{short(row[0], 200)}: place {row[1]}, preferred to a middling item {share:.0f} times in 100",
        )
        for row, share in zip(rows[:MAX_DRAWN], preferred.tolist(), strict=False)
    ]
    chart = horizontal_bars(
        bars,
        title="Bars: how often each item is preferred to a middling one, the best first.",
        start=0.0,
        end=100.0,
        ticks=((0.0, "0 %"), (50.0, "50 %"), (100.0, "100 %")),
        label_width=168.0,
    )
    columns = ("Item", "place", "strength (log odds)", "best place", "worst place")
    listed = table("Places that are not ruled out, and strengths", columns, rows)
    return AnswerView(
        "A ranking of items",
        f"A ranking of {number(len(order))} items, with a strength for each.",
        "How often one item is preferred to another follows from their two strengths. The noise is in them; "
        "the places between which an item lies, in the table, take it into account.",
        Figure(
            chart,
            f"The {len(bars)} best items: how often, in 100 choices, each is preferred to a middling one.",
            listed,
        ),
    )


def _clusters(found: Any) -> AnswerView:
    k, d = found.centers.shape
    sizes = None if found.labels is None else np.bincount(found.labels, minlength=k)
    spread = np.sqrt(((found.centers - found.centers.mean(axis=0)) ** 2).sum(axis=1))
    values = spread if sizes is None else sizes.astype(float)
    shown = [f"{value:.3g}" if sizes is None else number(int(value)) for value in values]
    what = "distance from the middle of all centres" if sizes is None else "points"
    bars = [
        Bar(f"cluster {i + 1}", float(values[i]), shown[i], f"cluster {i + 1}: {shown[i]} {what}")
        for i in range(min(k, MAX_DRAWN))
    ]
    chart = horizontal_bars(
        bars, title=f"Bars: {what} of each cluster.", start=0.0, end=max(float(values.max()), 1e-9)
    )
    rows = [(f"cluster {i + 1}", shown[i]) for i in range(min(k, MAX_LISTED))]
    whose = (
        "The points are private: which cluster a point is in is not handed out."
        if sizes is None
        else f"The {number(len(found.labels))} points are public, and so are their features; private is what "
        "the links say."
    )
    space = f" They were found in this space: {found.chosen}." if found.chosen else ""
    return AnswerView(
        "Clusters of points",
        f"Centres of {number(k)} clusters in {number(d)} columns.",
        f"{whose}{space}",
        Figure(chart, f"Clusters: {what}.", table("Clusters", ("Cluster", what), rows)),
    )


# ---- The report on a linkage model: match weights by comparison and level, with their noise ------

MOST_DRAWN = 12  # comparisons; the table has them all


@dataclass(frozen=True)
class WeightRow:
    """One level of one comparison.

    Attributes
    ----------
    comparison : str
    level : int
        0 is the least agreement.
    n_levels : int
    bits : float
        log2(m / u).
    noise : float or None
        How far the noise moves it, in bits: a standard deviation to first order. None: not known.
    """

    comparison: str
    level: int
    n_levels: int
    bits: float
    noise: float | None

    @property
    def words(self) -> str:
        """How well it agrees."""
        if self.level == self.n_levels - 1:
            return "agrees best"
        return f"level {self.level}" if self.level else "does not agree"

    @property
    def shown(self) -> str:
        """Bits, with their noise where it is known."""
        return in_bits(self.bits, self.noise)


def in_bits(bits: float, noise: float | None = None) -> str:
    """Evidence with its sign, and with its noise where it is known.

    Examples
    --------
    >>> in_bits(-0.02), in_bits(2.25, 0.044), in_bits(0.6, 12.2)
    ('0.0', '+2.2 ± 0.04', '+0.6 ± 12')
    """
    shown = f"{bits:+.1f}"
    shown = "0.0" if shown in ("+0.0", "-0.0") else shown
    return (
        shown
        if not noise
        else f"{shown} ± {noise:.0f}"
        if noise >= 10
        else f"{shown} ± {noise:.1g}"
    )


def weight_rows(model: ReleasedLinkage) -> tuple[WeightRow, ...]:
    """Weights of a released model, and how far its noise moves each.

    Examples
    --------
    >>> import numpy as np
    >>> m, u = (np.array([0.2, 0.8]),), (np.array([0.9, 0.1]),)
    >>> rows = weight_rows(ReleasedLinkage(m, u, 0.5, count_noise=5.0, n_behind=((500, 400),)))
    >>> [(row.level, round(row.bits, 2), round(row.noise, 2)) for row in rows]
    [(0, -2.17, 0.07), (1, 3.0, 0.18)]
    """
    rows = []
    for c, (name, m, u) in enumerate(zip(model.shown_names, model.m, model.u, strict=True)):
        for level in range(len(m)):
            noise = None
            if model.n_behind is not None:
                # log2(count) moves by noise / (count ln 2); a count of a given u does not move.
                counts = zip((m[level], u[level]), model.n_behind[c], strict=True)
                parts = [model.count_noise / (share * n) for share, n in counts if n > 0]
                noise = math.hypot(*parts) / math.log(2)
            rows.append(WeightRow(name, level, len(m), math.log2(m[level] / u[level]), noise))
    return tuple(rows)


def weights_figure(rows: Sequence[WeightRow]) -> Figure:
    """Bars of all levels, for a match to the right and against it to the left."""
    blocks = [list(block) for _, block in groupby(rows, key=lambda row: row.comparison)]
    caption = (
        "Bits of evidence by comparison and level: to the right for a match, to the left against it. "
        "A line across a bar's end is one standard deviation of the noise, either way."
    )
    if len(blocks) > MOST_DRAWN:
        caption += f" The first {MOST_DRAWN} of {len(blocks)} comparisons are drawn."
    listed = [
        (
            row.comparison,
            f"{row.level} of {row.n_levels - 1}",
            f"{row.bits:.3f}",
            "not known" if row.noise is None else f"{row.noise:.2g}",
        )
        for row in rows
    ]
    columns = ("Comparison", "level", "bits", "noise, ± bits")
    chart = _bars(blocks[:MOST_DRAWN])
    return Figure(chart, caption, table("Match weights", columns, listed))


def _bars(blocks: list[list[WeightRow]]) -> Chart:
    step, head, left, right = 19.0, 22.0, 112.0, 74.0
    rows = [row for block in blocks for row in block]
    height = 26.0 + sum(head + step * len(block) for block in blocks)
    most, least = (pick([0.0, *(row.bits for row in rows)]) for pick in (max, min))
    ticks = nice_ticks(least, most, around=True)
    x = scale(ticks[0], ticks[-1], left, WIDTH - right)
    parts, y = [_grid(ticks, x, height)], 4.0
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


def _grid(ticks: Sequence[float], x: Scale, height: float) -> Shape:
    """Lines from top to bottom, with the bits under them."""
    lines = [shape("line", class_="grid", x1=x(v), x2=x(v), y1=4.0, y2=height - 22) for v in ticks]
    return hidden(
        [*lines, *(text(x(v), height - 6, f"{v:g}", text_anchor="middle") for v in ticks)]
    )


def _box(begin: float, end: float, noise: float | None, x: Scale, y: float, tall: float,
         ticks: Sequence[float]) -> list[Shape]:  # fmt: skip
    """A bar, and one standard deviation of the noise on either side of its end, cut off at the edges."""
    ends = sorted((x(begin), x(end)))
    wide = max(ends[1] - ends[0], 1.5)
    shapes = [shape("rect", x=ends[0], y=y, width=wide, height=tall, rx=2.0)]
    if noise:
        low, high = (min(max(end + s * noise, ticks[0]), ticks[-1]) for s in (-1, 1))
        middle = y + tall / 2
        line = shape("line", class_="interval", x1=x(low), x2=x(high), y1=middle, y2=middle)
        shapes.append(line)
    return shapes


def waterfall_figure(rows: Sequence[WeightRow], prior: float) -> Figure:
    """How a pair that agrees best in everything becomes a match, step by step from the prior."""
    best = [row for row in rows if row.level == row.n_levels - 1][:MOST_DRAWN]
    start = math.log2(prior / (1 - prior))
    sums = [start]
    for row in best:
        sums.append(sums[-1] + row.bits)
    noise = math.hypot(*(row.noise or 0.0 for row in best))
    left, right, step = 150.0, 60.0, 24.0
    height = 12.0 + step * (len(best) + 2) + 22.0
    ticks = nice_ticks(min(0.0, *sums), max(0.0, *sums), around=True)
    x = scale(ticks[0], ticks[-1], left, WIDTH - right)
    steps: list[tuple[str, float, float, str, float | None]]
    steps = [("before comparing", 0.0, start, in_bits(start), None)]
    steps += [
        (short(row.comparison, 19), sums[i], sums[i + 1], in_bits(row.bits), row.noise)
        for i, row in enumerate(best)
    ]
    total = in_bits(sums[-1], noise)
    steps.append(("all together", 0.0, sums[-1], total, noise or None))
    parts = [_grid(ticks, x, height)]
    for i, (name, begin, end, words, spread) in enumerate(steps):
        y = 8.0 + step * i
        drawing = _box(begin, end, spread, x, y + 3, step - 9, ticks)
        strong = "bar strong" if i in (0, len(steps) - 1) else "bar"
        parts += [
            text(left - 8, y + 16, name, text_anchor="end"),
            mark(f"{name}: {words} bits, {in_bits(end)} in all", *drawing, class_=strong),
            text(WIDTH - right + 8, y + 16, words, class_="value"),
        ]
    caption = (
        f"A pair that agrees best in every comparison: {in_bits(start)} bits before comparing (a share of "
        f"{prior:.2g} matches among the labelled pairs; use that of your own), then what each adds. "
        f"{sums[-1]:.1f} bits in all are a match probability of {1 / (1 + 2.0 ** -sums[-1]):.4g}."
    )
    title = (
        "Waterfall: bits of a pair that agrees best in everything, one comparison after another."
    )
    return Figure(drawn(title, height, parts), caption)


# ---- a DET curve with its band, the threshold, and other rates to choose -------------------------

RATES = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


def operating(data: ReportData) -> dict[str, Any]:
    """What the page shows of an error curve, and what it costs together with the model it was made for."""
    curve = data.curve
    assert curve is not None
    points = operating_points(curve, RATES)
    rows = [
        (f"{100 * rate:g} %", f"{at:.4g}", _band(low, high), _band(missed, most))
        for rate, at, low, high, missed, most in points
    ]
    side = "distance at most" if curve.of_distance else "score at least"
    asked = next((i for i, point in enumerate(points) if point[0] == curve.asked), None)
    columns = ("False matches aimed at", f"match: {side}", "false matches", "matches missed")
    listed = table("Thresholds to choose from", columns, rows, chosen=asked, chosen_as="chosen")
    return {
        "sentence": _sentence(curve, points, asked),
        "advice": _advice(curve),
        "sample": _sample(curve),
        "together": _together(data),
        "figure": Figure(
            _det(curve, points, asked),
            "False matches against missed matches, one point for each threshold (DET curve, on "
            f"normal-deviate axes). The band holds the true curve with {curve.confidence:.0%} confidence, "
            "sampling and noise included.",
        ),
        "table": listed if rows else None,
    }


def _together(data: ReportData) -> str:
    """Costs of a page that is about two releases: the numbers above are the model's alone."""
    if data.curve is None or data.curve.certificate is None or data.file == CURVE_FILE:
        return ""
    own = data.curve.certificate
    said = (
        f"The curve is a release of its own, with its own certificate: epsilon {cost(own.epsilon)} for one "
        f"{own.unit} ({own.adjacency})."
    )
    if data.together is None:
        return f"{said} A ledger that was charged for both says what they cost together."
    both = data.together
    return (
        f"{said} Model and curve together cost epsilon {cost(both.epsilon)} at delta {one_in(both.delta)} "
        f"for one {both.unit} ({both.adjacency}), by their certificates alone; a ledger that knows that the "
        "pairs are the same may say less."
    )


def _band(low: float, high: float) -> str:
    return f"{100 * low:.3g} to {100 * high:.3g} %"


def _sentence(curve: ErrorCurve, points: list[OperatingPoint], asked: int | None) -> str:
    if asked is None:
        return "No threshold was chosen: the table has some that these pairs can show."
    rate, at, low, high, missed, most = points[asked]
    what = "distance is at most" if curve.of_distance else "score is at least"
    return (
        f"Call pairs a match whose {what} {at:.6g}. Aimed at {100 * rate:g} false matches in 100 pairs that "
        f"do not match; the true number is between {100 * low:.3g} and {100 * high:.3g}. Of 100 pairs that "
        f"match, between {100 * missed:.3g} and {100 * most:.3g} are missed."
    )


def _advice(curve: ErrorCurve) -> str:
    if curve.asked is None:
        return ""
    try:
        return curve.advice(curve.asked)
    except InputError as problem:  # fewer pairs than the sender hoped for
        return f"The rate asked for cannot be shown: {problem}."


def _sample(curve: ErrorCurve) -> str:
    share = ""
    if curve.effective_share < 1:
        share = f" Pairs share people, so bands count {curve.effective_share:.0%} of them as independent."
    return (
        f"Measured on about {number(max(0, round(curve.n_genuine)))} pairs that match and "
        f"{number(max(0, round(curve.n_impostors)))} that do not; each number has noise of about "
        f"{number(curve.count_noise)} pairs.{share} Any other threshold may be read off the released curve: "
        "that costs nothing more."
    )


def _det(curve: ErrorCurve, points: list[OperatingPoint], asked: int | None) -> Chart:
    height = 330.0
    low, high = float(deviates(DET_TICKS[0])), float(deviates(0.999))
    x = scale(low, high, LEFT, WIDTH - RIGHT)
    y = scale(low, high, height - BOTTOM, TOP)
    grid = []
    for tick in DET_TICKS:
        at, words = float(deviates(tick)), f"{100 * tick:g}"
        grid += [
            shape("line", class_="grid", x1=x(at), x2=x(at), y1=TOP, y2=height - BOTTOM),
            shape("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y(at), y2=y(at)),
            text(x(at), height - BOTTOM + 17, words, text_anchor="middle"),
            text(LEFT - 8, y(at) + 4, words, text_anchor="end"),
        ]
    best, worst = (np.minimum(deviates(one), high) for one in curve.outline())
    middle = np.minimum(deviates(np.column_stack([curve.fmr, curve.fnmr])), high)

    def path(line: Any) -> str:
        return " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line)

    parts = [
        hidden(grid),
        axis_names("false matches, of 100 that do not match", "matches missed, of 100", height),
        shape("polygon", class_="band", points=path([*best, *worst[::-1]])),
        shape("polyline", class_="curve", points=path(middle)),
    ]
    for i, (rate, at, _, _, missed, most) in enumerate(points):
        a = float(deviates(rate))
        b = min(float(np.interp(a, middle[::-1, 0], middle[::-1, 1])), high)
        tip = (
            f"threshold {at:.4g}: {100 * rate:g} false matches of 100 aimed at, "
            f"{100 * missed:.3g} to {100 * most:.3g} of 100 missed"
        )
        if i == asked:
            diamond = shape("path", d=f"M{x(a):.1f} {y(b) - 9:.1f} l9 9 l-9 9 l-9 -9 z")
            label = text(x(a) + 14, y(b) - 8, "chosen", class_="value")
            parts.append(mark(tip, diamond, label, class_="this-fit"))
        else:
            parts.append(mark(tip, shape("circle", cx=x(a), cy=y(b), r=4.5), class_="curve-point"))
    return drawn("Curve: false matches against missed matches, with its band.", height, parts)
