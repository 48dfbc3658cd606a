"""The report on a linkage model: match weights by comparison and level, with their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pairveil.release.linkage import ReleasedLinkage
from pairveil.report.charts import Bar, horizontal_bars
from pairveil.report.evidence import short
from pairveil.report.parts import Figure, table


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
    noise : float
        How far the noise moves it, in bits: a standard deviation to first order.
    """

    comparison: str
    level: int
    n_levels: int
    bits: float
    noise: float


def weight_rows(model: ReleasedLinkage) -> tuple[WeightRow, ...]:
    """Weights of a released model, and how far its noise moves each.

    Examples
    --------
    >>> import numpy as np
    >>> rows = weight_rows(ReleasedLinkage((np.array([0.2, 0.8]),), (np.array([0.9, 0.1]),), 0.5))
    >>> [(row.level, round(row.bits, 2), row.noise) for row in rows]
    [(0, -2.17, 0.0), (1, 3.0, 0.0)]
    """
    used = 0 if model.certificate is None else model.certificate.n_pairs_used
    rows = []
    for name, m, u in zip(model.shown_names, model.m, model.u, strict=True):
        for level in range(len(m)):
            counts = (m[level] * model.prior * used, u[level] * (1 - model.prior) * used)
            parts = [model.count_noise / count for count in counts if count > 0]
            noise = math.hypot(*parts) / math.log(2) if parts and model.count_noise else 0.0
            bits = math.log2(m[level] / u[level])
            rows.append(WeightRow(name, level, len(m), bits, noise))
    return tuple(rows)


def weights_figure(rows: tuple[WeightRow, ...]) -> Figure:
    """Bars of each comparison's best level, and a table of all levels."""
    best = [row for row in rows if row.level == row.n_levels - 1]
    bars = [
        Bar(
            short(row.comparison),
            max(row.bits, 0.0),
            f"{row.bits:.1f} ± {row.noise:.1g}" if row.noise else f"{row.bits:.1f}",
            f"{short(row.comparison, 200)}: {row.bits:.2f} bits for the best agreement",
        )
        for row in best
    ]
    chart = horizontal_bars(
        bars,
        title="Bars: evidence for a match when a comparison agrees best.",
        start=0.0,
        end=max([abs(row.bits) for row in best] + [1.0]),
        label_width=168.0,
    )
    listed = [
        (
            row.comparison,
            f"{row.level} of {row.n_levels - 1}",
            f"{row.bits:.3f}",
            f"{row.noise:.2g}",
        )
        for row in rows
    ]
    columns = ("Comparison", "level", "bits", "noise, ± bits")
    caption = "Bits of evidence for a match when a comparison agrees best."
    return Figure(chart, caption, table("Match weights", columns, listed))
