"""The report on a linkage model: match weights by comparison and level, with their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pairveil.release.linkage import ReleasedLinkage
from pairveil.report.charts import Bar, horizontal_bars
from pairveil.report.markup import Html, figure, section, table, tag


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


def match_weights_section(rows: tuple[WeightRow, ...]) -> Html:
    """Bars of each comparison's best level, and a table of all levels."""
    best = [row for row in rows if row.level == row.n_levels - 1]
    most = max([abs(row.bits) for row in best] + [1.0])
    bars = [
        Bar(
            _short(row.comparison),
            max(row.bits, 0.0),
            f"{row.bits:.1f} ± {row.noise:.1g}" if row.noise else f"{row.bits:.1f}",
            f"{row.comparison}: {row.bits:.2f} bits for the best agreement",
        )
        for row in best
    ]
    chart = horizontal_bars(
        bars,
        title="Bars: evidence for a match when a comparison agrees best.",
        start=0.0,
        end=most,
        label_width=168.0,
    )
    data = table(
        "Match weights",
        ["Comparison", "level", "bits", "noise, ± bits"],
        [
            [
                row.comparison,
                f"{row.level} of {row.n_levels - 1}",
                f"{row.bits:.3f}",
                f"{row.noise:.2g}",
            ]
            for row in rows
        ],
    )
    words = tag(
        "p",
        "A pair of records gets one weight for each comparison, by how well it agrees; a null gets none. "
        "The sum, in bits, is the evidence for a match: ten bits make the odds a thousand times larger. The "
        "weights are read off the released tables; the noise is in them, and its size is public.",
    )
    return section(
        "picture",
        "What the model weighs",
        words,
        figure(chart, "Bits of evidence when a comparison agrees best.", data),
    )


def _short(name: str, longest: int = 23) -> str:
    return name if len(name) <= longest else f"{name[: longest - 11]}…{name[-10:]}"
