"""The page's middle sections: how useful the metric is, what it looks like, what it weighs."""

from __future__ import annotations

import math

import numpy as np

from pairveil.report.charts import Bar, horizontal_bars, legend, scatter, utility_curve
from pairveil.report.data import (
    MetricShape,
    ProjectedPoints,
    ReportData,
    UtilityCurve,
    UtilityPoint,
)
from pairveil.report.markup import Html, figure, join, section, table, tag
from pairveil.report.words import number, percent

MAX_WEIGHTS = 8
SOURCES = {
    "public": "Scored on public people: this evaluation costs no privacy.",
    "charged": "Scored on private people: the cost of this evaluation is in the ledger below.",
    "synthetic": "These people are synthetic; none of them exists.",
}


def utility(data: ReportData) -> Html:
    """Score against epsilon with this fit marked, or the reason why there is none."""
    curve = data.summary.utility
    if curve is None:
        body = tag(
            "p",
            "No curve is shown. A score measured on the people behind the pairs would itself say "
            "something about them, so this page draws only scores from public people or scores whose cost "
            "was charged to the ledger; this release came with neither. Score it on people of your own: ",
            tag("code", f"pairveil evaluate {data.folder} PEOPLE.csv --classes COLUMN"),
            ".",
            class_="absent",
        )
    else:
        body = _curve(curve)
    return section("utility", "What privacy costs in quality", body)


def _curve(curve: UtilityCurve) -> Html:
    rows = [_curve_row(number(p.epsilon), p) for p in sorted(curve.points, key=lambda p: p.epsilon)]
    if curve.this_fit is not None:
        rows.append(_curve_row(f"{number(curve.this_fit.epsilon)} (this metric)", curve.this_fit))
    for level, words in ((curve.euclidean, "no learning"), (curve.reference, "without privacy")):
        if level is not None:
            rows.append([words, number(level), ""])
    chart = table(
        f"{curve.score_name} by epsilon", ["epsilon", curve.score_name, "95 % interval"], rows
    )
    if any(math.isfinite(p.epsilon) for p in (*curve.points, curve.this_fit) if p is not None):
        chart = figure(
            utility_curve(
                curve, title=f"Curve: {curve.score_name} against epsilon, with this metric marked."
            ),
            f"{curve.score_name} against epsilon; bars are 95 % intervals. {SOURCES[curve.source]}",
            chart,
        )
    text = [tag("h3", "What the curve says"), tag("p", _gain_sentence(curve))]
    text.append(
        tag(
            "p",
            "Pair AUC is the chance that two people who differ are farther apart than two who belong "
            "together: 0.5 is useless, 1 is perfect.",
        )
        if curve.score_name == "pair AUC"
        else Html("")
    )
    text.append(tag("p", tag("b", SOURCES[curve.source]), f" {curve.note}"))
    return tag("div", chart, tag("div", *text), class_="columns")


def _curve_row(name: str, point: UtilityPoint) -> list[str]:
    interval = (
        f"{number(point.low)} to {number(point.high)}"
        if point.low is not None and point.high is not None
        else ""
    )
    return [name, number(point.score), interval]


def _gain_sentence(curve: UtilityCurve) -> str:
    fit = curve.this_fit
    if fit is None:
        return "The released metric itself was not scored."
    at = f"at epsilon {number(fit.epsilon)}" if math.isfinite(fit.epsilon) else "without privacy"
    start = f"This metric reaches {number(fit.score)} {at}."
    if curve.euclidean is None or curve.reference is None:
        return start
    possible = curve.reference - curve.euclidean
    if possible <= 0:
        return f"{start} On these data learning gains nothing, private or not."
    kept = (fit.score - curve.euclidean) / possible
    share = percent(kept) if kept > 0 else "none"
    return (
        f"{start} Without any learning the score is {number(curve.euclidean)}, and learning without privacy "
        f"reaches {number(curve.reference)}: {share} of the possible gain was kept."
    )


# ---- points -----------------------------------------------------------------------------------


def picture(data: ReportData) -> Html:
    """The same people before and after, and the features the metric weighs."""
    points = data.summary.points
    if points is None:
        body = tag(
            "p",
            "No points are drawn: this page shows public or synthetic people only, and the release came "
            "with none.",
            class_="absent",
        )
    else:
        body = _points(points)
    return section(
        "picture",
        "What the metric does",
        body,
        _weights(data.metric),
    )


def _points(points: ProjectedPoints) -> Html:
    groups = sorted(set(points.groups))
    before, after = (
        separation(getattr(points, which), points.groups) for which in ("before", "after")
    )
    data = table(
        "Each group's centre and spread",
        ["Group", "people", "centre before", "spread before", "centre after", "spread after"],
        [_group_row(points, group) for group in groups],
    )  # fmt: skip
    source = SOURCES["synthetic"] if points.source == "synthetic" else "These people are public."
    return join(
        tag("p", source, f" {points.note} ", legend(groups)),
        tag(
            "div",
            tag(
                "figure",
                tag("h3", "Before"),
                scatter(points, "before", title="Scatter plot of the points before the metric."),
                tag("figcaption", f"Groups stand {number(before)} spreads apart."),
            ),
            tag(
                "figure",
                tag("h3", "After"),
                scatter(points, "after", title="Scatter plot of the points after the metric."),
                tag("figcaption", f"Groups stand {number(after)} spreads apart."),
            ),
            class_="columns",
        ),
        tag("details", tag("summary", "Show the numbers"), data, class_="data"),
    )


def separation(places: tuple[tuple[float, float], ...], groups: tuple[str, ...]) -> float:
    """Smallest distance of two groups' centres, in units of the mean spread within groups.

    Examples
    --------
    >>> separation(((0, 0), (0, 2), (8, 0), (8, 2)), ("a", "a", "b", "b"))
    8.0
    """
    where, names = np.asarray(places, dtype=float), np.asarray(groups)
    kinds = sorted(set(groups))
    if len(kinds) < 2:
        return 0.0
    centres = np.array([where[names == kind].mean(axis=0) for kind in kinds])
    spreads = [_spread(where[names == kind]) for kind in kinds]
    distances = [
        float(np.linalg.norm(centres[i] - centres[j])) for i in range(len(kinds)) for j in range(i)
    ]
    return min(distances) / max(float(np.mean(spreads)), 1e-12)


def _spread(where: np.ndarray) -> float:
    return float(np.sqrt(((where - where.mean(axis=0)) ** 2).sum(axis=1).mean()))


def _group_row(points: ProjectedPoints, group: str) -> list[str]:
    mine = np.asarray(points.groups) == group
    row = [group, number(int(mine.sum()))]
    for places in (points.before, points.after):
        where = np.asarray(places)[mine]
        x, y = where.mean(axis=0)
        row += [f"({x:.3g}, {y:.3g})", number(_spread(where))]
    return row


def _weights(metric: MetricShape) -> Html:
    shown = metric.weights[:MAX_WEIGHTS]
    bars = [
        Bar(
            _short(name),
            share,
            percent(share),
            f"{_short(name, 200)}: {percent(share)} of the metric",
        )
        for name, share in shown
    ]
    chart = horizontal_bars(
        bars,
        title="Bars: share of each feature in the metric.",
        start=0.0,
        end=max(bar.value for bar in bars),
        label_width=168.0,
    )
    data = table(
        "Share of each feature",
        ["Feature", "share"],
        [[_short(name, 200), percent(share)] for name, share in metric.weights],
    )
    words = tag(
        "div",
        tag("h3", "What it looks at"),
        tag(
            "p",
            f"The metric maps {metric.n_features} features to {metric.n_components} "
            f"{'dimension' if metric.n_components == 1 else 'dimensions'}, in which the ordinary distance is "
            "the learned one. The bars show how much of it each feature makes up, on the scale used for "
            "learning. They are read off the released matrix and reveal nothing more than it does; the "
            "noise is in them too.",
        ),
    )
    caption = "Share of each feature in the squared length of the metric."
    if metric.n_features > MAX_WEIGHTS:
        rest = sum(share for _, share in metric.weights[MAX_WEIGHTS:]) + metric.rest
        caption += f" The other {metric.n_features - MAX_WEIGHTS} features make up {percent(rest)}."
    if metric.n_features > len(metric.weights):
        caption += f" The table lists the {len(metric.weights)} with most."
    return tag("div", words, figure(chart, caption, data), class_="columns")


def _short(name: str, longest: int = 23) -> str:
    return name if len(name) <= longest else f"{name[: longest - 11]}…{name[-10:]}"
