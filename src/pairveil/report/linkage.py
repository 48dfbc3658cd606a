"""The report on a linkage model: match weights by comparison and level, with their noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from pairveil.release.linkage import ReleasedLinkage
from pairveil.report.charts import (
    WIDTH,
    Chart,
    Scale,
    Shape,
    drawn,
    hidden,
    mark,
    nice_ticks,
    scale,
    shape,
    text,
)
from pairveil.report.evidence import short
from pairveil.report.parts import Figure, table

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
