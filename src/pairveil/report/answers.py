"""The report on a ranking, clusters or a network: what was released, in figures or words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from pairveil.release.payloads import DescribedNetwork, ReleasedRanking
from pairveil.report.charts import Bar, horizontal_bars
from pairveil.report.evidence import short
from pairveil.report.parts import Figure, table
from pairveil.report.words import number

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
