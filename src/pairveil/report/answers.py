"""The report on a ranking or on clusters: what was released, in a figure with its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.release.answers import ReleasedRanking
from pairveil.report.charts import Bar, horizontal_bars
from pairveil.report.evidence import short
from pairveil.report.parts import Figure, table
from pairveil.report.words import number

MAX_DRAWN, MAX_LISTED = 12, 1000


@dataclass(frozen=True)
class AnswerView:
    """A released answer as the page shows it.

    Attributes
    ----------
    title, released, lead : str
        What it is called, what was released, and how to read the figure.
    figure : Figure
    """

    title: str
    released: str
    lead: str
    figure: Figure


def view_of(answer: Any) -> AnswerView:
    """What the page shows of a ranking or of clusters.

    Examples
    --------
    >>> view_of(ReleasedRanking(strengths=[1.0, -1.0], names=["tea", "coffee"])).figure.table.rows[0][:2]
    ('tea', '1')
    """
    return _ranking(answer) if isinstance(answer, ReleasedRanking) else _clusters(answer)


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
    lowest, highest = float(found.strengths.min()), float(found.strengths.max())
    bars = [
        Bar(
            short(name),
            float(strength),
            f"{float(strength):.2f}",
            f"{short(name, 200)}: place {place}, log odds {strength}",
        )
        for name, place, strength, _, _ in rows[:MAX_DRAWN]
    ]
    chart = horizontal_bars(
        bars,
        title="Bars: strengths of the items, the best first.",
        start=lowest,
        end=max(highest, lowest + 1e-9),
        label_width=168.0,
    )
    columns = ("Item", "place", "log odds", "best rank", "worst rank")
    listed = table("Ranks that are not ruled out, and strengths", columns, rows)
    return AnswerView(
        "A ranking of items",
        f"A ranking of {number(len(order))} items, with a strength for each.",
        "The difference of two strengths is the log of the odds that one item is preferred to the other. The "
        "noise is in them; the ranks between which an item lies take it into account.",
        Figure(chart, f"Strengths of the {len(bars)} best items.", listed),
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
