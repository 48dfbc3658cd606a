"""What was measured beside the promise: an attack on the plan, a charged evaluation, gain against epsilon.

None of it reads a private pair: the attack plays on made-up pairs, the evaluation was charged when it was
made, and the range follows from public numbers.

How useful the metric is, what it does to people on a map, and which columns it weighs.

Scores and a map from a public table of people; the only people this package ever looks at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import defstruct

from pairveil.errors import InputError
from pairveil.foreign import decode, read_json
from pairveil.release.curve import ErrorCurve, operating_points
from pairveil.report.charts import (
    Bar,
    Chart,
    Fact,
    Figure,
    gain_band,
    group_sign,
    horizontal_bars,
    match_curve,
    read_off,
    scatter,
    shape,
    table,
    utility_curve,
)
from pairveil.report.data import (
    Evaluation,
    MetricShape,
    ProjectedPoints,
    PublicTest,
    ReportData,
    Score,
    UtilityCurve,
    UtilityPoint,
)
from pairveil.report.words import cost, number, percent

if TYPE_CHECKING:
    from pairveil.audit.auditor import Finding
    from pairveil.privacy.certificate import Certificate

# ---- an attack on the plan, a charged evaluation, gain against epsilon ---------------------------

# ---- an attack on the plan, a charged evaluation, gain against epsilon ---------------------------

SCORES = (
    "pair_auc", "pair_auc_low", "pair_auc_high", "euclidean_pair_auc", "euclidean_pair_auc_low",
    "euclidean_pair_auc_high",
)  # fmt: skip

# ---- an attack on the plan --------------------------------------------------------------------


def attacked(found: Finding, unit: str) -> dict[str, Any]:
    """What an audit of this plan saw, beside what is promised."""
    seen, promised = found.lower_bound, found.claimed_epsilon
    verdict = (
        "The attack found no more than was promised. It cannot prove the promise; the proof does."
    )
    if found.verdict == "violated":
        verdict = (
            "The attack found more than was promised: do not release, and report this as an error."
        )
    elif seen > promised:
        verdict = "That is above the promise, but within chance: repeat it with `pairveil audit`."
    least = f"{math.floor(100 * seen) / 100:g}"  # a lower bound is rounded down
    bars = [
        Bar("seen, at least", seen, least, f"the attack saw an epsilon of {least} at least"),
        Bar("promised", promised, cost(promised), f"epsilon {cost(promised)} is promised", strong=True),
    ]  # fmt: skip
    chart = horizontal_bars(
        bars,
        title="Bars: epsilon that an attack saw at least, and epsilon promised at most.",
        start=0.0,
        end=max(seen, promised) or 1.0,
        label_width=108.0,
    )
    return {
        "sentence": (
            f"This plan was run {number(found.n_runs)} times on made-up data that differ as much as two "
            f"accounts of one {unit} can, and the attacker saw every noisy sum, more than is ever released. "
            f"So much was seen with {percent(found.confidence)} confidence; no real data were used."
        ),
        "verdict": verdict,
        "alarm": found.verdict == "violated",
        "figure": Figure(
            chart, f"Epsilon for one {unit}: what the attack saw, and what is promised at most."
        ),
    }


# ---- a charged evaluation ---------------------------------------------------------------------


_EvaluationFields = defstruct(
    "_EvaluationFields",
    [
        *((name, float | Literal["inf"]) for name in (*SCORES, "confidence")),
        ("n_pairs", int),
        ("certificate", dict[str, Any]),
        ("metric_sha256", str),
    ],
)


def read_evaluation(path: str | Path, certificate: Certificate | None) -> Evaluation:
    """What ``pairveil evaluate --epsilon --out`` wrote about this release.

    Raises InputError: the file is damaged, is about another metric, or its certificate does not hold.
    """
    from pairveil.privacy.certificate import Certificate

    file = Path(path)
    content = read_json(file)
    decode(content, _EvaluationFields, file.name)
    if certificate is None or content["metric_sha256"] != certificate.metric_sha256:
        raise InputError(f"--evaluation: {file.name} is about another metric than this release")
    cost_of_it = Certificate.from_dict(content["certificate"])
    if not cost_of_it.verify():
        raise InputError(f"--evaluation: the certificate in {file.name} does not hold")
    shares = [float(content[name]) for name in (*SCORES, "confidence")]
    if not all(0 <= share <= 1 for share in shares) or not 0 < content["n_pairs"] < 2**53:
        raise InputError(f"--evaluation: {file.name} holds scores that are none")
    ours, plain = (shares[0], shares[1], shares[2]), (shares[3], shares[4], shares[5])
    return Evaluation(Score(ours, plain, content["n_pairs"], shares[6]), cost_of_it)


def evaluated(found: Score, spent: Certificate | None) -> dict[str, Any]:
    """The scores on private pairs, and what they cost: ``spent``, or a part of the release's epsilon."""
    rows = [
        (name, f"{100 * value:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
        for name, (value, low, high) in (
            ("this metric", found.score),
            ("plain distance", found.plain),
        )
    ]
    paid = (
        f"It cost epsilon {cost(found.epsilon or 0.0)}, which is part of what this release spent."
    )
    if spent is not None:
        paid = (
            f"This measurement cost epsilon {cost(spent.epsilon)} for one {spent.unit} "
            f"({spent.adjacency}) of its own, beside that of the metric; a ledger that was charged for both "
            "says what they cost together."
        )
        paid += "" if spent.for_release else " It was made with a seed and is not for release."
    return {
        "table": table(
            "Right order of two pairs, of 100",
            ("", "measured", f"interval, {percent(found.confidence)} for both"),
            rows,
        ),
        "sentence": (
            f"{number(found.n_pairs)} labelled pairs that are private were compared, with noise: one of "
            "people who belong together and one of people who differ, which is closer? A coin gets 50."
        ),
        "cost": paid,
    }


# ---- gain against epsilon ---------------------------------------------------------------------


def expected(
    here: float, ranges: Sequence[tuple[float, float, float]], test: PublicTest
) -> dict[str, Any]:
    """The range of the gain by epsilon, and what this metric reached with the epsilon that it has."""
    kept = test.gain_kept
    rows = [
        (f"{cost(at)}{' (this metric)' if at == here else ''}", f"{100 * low:.0f} to {100 * high:.0f} %")
        for at, low, high in ranges
    ]  # fmt: skip
    reached = (
        "How much of the gain this metric kept is not known: learning from the public people themselves "
        "gains too little over plain distance, or they are too few."
    )
    if kept is not None and test.reference is not None:
        share = percent(kept) if kept > 0 else "none"
        reached = (
            f"A metric learned without privacy from the public people themselves (one half learns, the other "
            f"is scored, both ways) is right {100 * test.reference:.1f} times in 100. Of its gain over "
            f"plain distance, this metric reached {share}."
        )
    return {
        "figure": Figure(
            gain_band(ranges, (here, kept), title="Range: gain to expect against epsilon."),
            "Share of what learning without privacy gains over plain distance. Band: eight in ten fits with "
            "as many pairs and columns on other tables; diamond: this metric.",
            table("Gain to expect by epsilon", ("epsilon", "of the gain"), rows),
        ),
        "reached": reached,
    }


# ---- How useful the metric is, what it does to people on a map, and which columns it weighs ------

MAX_WEIGHTS = 8

SOURCES = {
    "public": "Scored on public people: this evaluation costs no privacy.",
    "charged": "Scored on private people: the cost of this evaluation is in the ledger below.",
    "synthetic": "These people are synthetic; none of them exists.",
}

WRONG_SHOWN = 0.05  # of pairs that differ, taken for alike: where the curve is read out


def quality(data: ReportData) -> dict[str, Any]:
    """Everything that public numbers say about quality; parts are None where there are none."""
    curve, test, points = data.summary.utility, data.public_test, data.summary.points
    score, later = scored(data)
    return {
        "test": None if test is None else _public_test(test),
        "expected": _expected(data),
        "evaluation": None if score is None else evaluated(score, later),
        "curve": None if curve is None else _curve(curve),
        "points": None if points is None else _points(points),
        "weights": _weights(data.metric),
        "plain": PLAIN if is_plain(data.metric) else None,
        "folder": data.folder,
    }


def scored(data: ReportData) -> tuple[Score | None, Certificate | None]:
    """The score on private pairs, and its own certificate where it was measured after the release."""
    if data.evaluation is not None:
        return data.evaluation.score, data.evaluation.certificate
    return data.summary.score, None


def _expected(data: ReportData) -> dict[str, Any] | None:
    if data.certificate is None or data.public_test is None or not data.expected:
        return None
    return expected(data.certificate.epsilon, data.expected, data.public_test)


def gain_in_brief(data: ReportData) -> Fact:
    """The one number on quality for the first screen, or why there is none."""
    curve, test = data.summary.utility, data.public_test
    if data.curve is not None or data.linkage:
        return _threshold_in_brief(data.curve)
    if test is not None:
        return Fact(
            "Right order of two pairs",
            f"{100 * test.score:.0f} in 100",
            f"plain distance {100 * test.plain:.0f}, a coin 50; {test.note}",
        )
    measured, later = scored(data)
    if measured is not None:
        (score, low, high), plain = measured.score, measured.plain[0]
        return Fact(
            "Right order of two pairs",
            f"{100 * score:.0f} in 100",
            f"{100 * low:.0f} to {100 * high:.0f}, plain distance {100 * plain:.0f}, a coin 50; on private "
            f"pairs{', at a cost of its own' if later else ' that were held out'}",
        )
    kept = None if curve is None else gain_kept(curve)
    if data.answer is not None:
        return Fact("Released", data.answer.title, "its numbers stand below")
    if curve is None or curve.this_fit is None:
        return Fact("Quality", "not measured", "no public test file was given")
    if kept is None:
        score = curve.this_fit.score
        return Fact(f"Quality ({curve.score_name})", number(score), SOURCES[curve.source])
    if is_plain(data.metric):
        return Fact("Gain kept", "none", "plain distance was released: noise hid what was learned")
    share = percent(kept) if kept > 0 else "none"
    return Fact("Gain kept", share, "of what learning without privacy gains over plain distance")


def _threshold_in_brief(curve: ErrorCurve | None) -> Fact:
    chosen = next(iter(operating_points(curve, ())), None) if curve else None
    if chosen is None:
        return Fact("Threshold", "none", "no operating point was released with it")
    rates = f"{100 * chosen.fmr_low:.2g} to {100 * chosen.fmr_high:.2g}"
    return Fact("Threshold", f"{chosen.threshold:.4g}", f"{rates} false matches in 100")


PLAIN = (
    "The released metric is plain distance, because under this noise the data did not show clearly that what "
    "was learned is better; more pairs, fewer columns or a larger epsilon would help."
)


def is_plain(metric: MetricShape) -> bool:
    """Whether the learner fell back to plain distance: then all columns weigh the same, to the last digits.

    Examples
    --------
    >>> is_plain(MetricShape(2, 2, (("age", 0.5), ("weight", 0.5))))
    True
    >>> is_plain(MetricShape(2, 2, (("age", 0.6), ("weight", 0.4))))
    False
    """
    shares = [share for _, share in metric.weights]
    square = metric.n_components == metric.n_features > 1
    return square and max(shares) - min(shares) < 1e-9 / metric.n_features


def gain_kept(curve: UtilityCurve) -> float | None:
    """Share of the possible gain that this fit kept; None where there was none or it is not known."""
    fit, plain, best = curve.this_fit, curve.euclidean, curve.reference
    if fit is None or plain is None or best is None or best <= plain:
        return None
    return (fit.score - plain) / (best - plain)


# ---- a public test file -----------------------------------------------------------------------


def _public_test(test: PublicTest) -> dict[str, Any]:
    ours, plain = (read_off(c, WRONG_SHOWN) for c in (test.curve, test.plain_curve))
    rows = [
        ("right order of two pairs, of 100", f"{100 * test.score:.1f}", f"{100 * test.plain:.1f}"),
        *(
            (
                f"found, when {100 * wrong:g} of 100 are taken wrongly",
                f"{100 * read_off(test.curve, wrong):.0f}",
                f"{100 * read_off(test.plain_curve, wrong):.0f}",
            )
            for wrong in (0.01, 0.05, 0.1, 0.25)
        ),
    ]
    return {
        "figure": Figure(
            match_curve(test, title="Curve: pairs rightly found against pairs wrongly taken."),
            "Pairs of one class that are found, against pairs of two classes that are taken for alike. "
            "Solid: this metric; dashed: plain distance.",
            table("The curve in numbers", ("", "this metric", "plain distance"), rows),
        ),
        "sentences": [
            f"Take one pair of people of one class and one of different classes. The metric puts the right "
            f"pair closer {100 * test.score:.1f} times in 100; plain distance {100 * test.plain:.1f} times, "
            "a coin 50 times.",
            f"Where 5 of 100 pairs that differ may be taken for alike, the metric finds {100 * ours:.0f} of "
            f"100 pairs that are alike, plain distance {100 * plain:.0f}.",
        ],
        "note": f"{SOURCES['public']} {number(test.n_people)} people ({test.note}), "
        f"{number(test.n_pairs)} random pairs, each class equally often.",
    }


# ---- score against epsilon --------------------------------------------------------------------


def _curve(curve: UtilityCurve) -> dict[str, Any]:
    rows = [_curve_row(number(p.epsilon), p) for p in sorted(curve.points, key=lambda p: p.epsilon)]
    if curve.this_fit is not None:
        rows.append(_curve_row(f"{number(curve.this_fit.epsilon)} (this metric)", curve.this_fit))
    for level, words in ((curve.euclidean, "no learning"), (curve.reference, "without privacy")):
        if level is not None:
            rows.append((words, number(level), ""))
    columns = ("epsilon", curve.score_name, "95 % interval")
    behind = table(f"{curve.score_name} by epsilon", columns, rows)
    figure = None
    if any(math.isfinite(p.epsilon) for p in (*curve.points, curve.this_fit) if p is not None):
        title = f"Curve: {curve.score_name} against epsilon, with this metric marked."
        caption = f"{curve.score_name} against epsilon; bars are 95 % intervals."
        figure = Figure(utility_curve(curve, title=title), caption, behind)
    return {
        "figure": figure,
        "table": behind,
        "gain": _gain_sentence(curve),
        "is_auc": curve.score_name == "pair AUC",
        "source": SOURCES[curve.source],
        "note": curve.note,
    }


def _curve_row(name: str, point: UtilityPoint) -> tuple[str, str, str]:
    interval = (
        f"{number(point.low)} to {number(point.high)}"
        if point.low is not None and point.high is not None
        else ""
    )
    return name, number(point.score), interval


def _gain_sentence(curve: UtilityCurve) -> str:
    fit = curve.this_fit
    if fit is None:
        return "The released metric itself was not scored."
    at = f"at epsilon {number(fit.epsilon)}" if math.isfinite(fit.epsilon) else "without privacy"
    start = f"This metric reaches {number(fit.score)} {at}."
    if curve.euclidean is None or curve.reference is None:
        return start
    kept = gain_kept(curve)
    if kept is None:
        return f"{start} On these data learning gains nothing, private or not."
    share = percent(kept) if kept > 0 else "none"
    return (
        f"{start} Without any learning the score is {number(curve.euclidean)}, and learning without privacy "
        f"reaches {number(curve.reference)}: {share} of the possible gain was kept."
    )


# ---- a map of people --------------------------------------------------------------------------


def _points(points: ProjectedPoints) -> dict[str, Any]:
    groups = sorted(set(points.groups))
    columns = ("Group", "people", "centre before", "spread before", "centre after", "spread after")
    panels = [
        (
            which.capitalize(),
            scatter(points, which, title=f"Map of the people {which} the metric."),
            f"Groups stand {number(separation(getattr(points, which), points.groups))} spreads apart.",
        )
        for which in ("before", "after")
    ]
    return {
        "source": SOURCES["synthetic"] if points.source == "synthetic" else "These people are public.",
        "note": points.note,
        "legend": [(group, _sign(rank)) for rank, group in enumerate(groups)],
        "panels": panels,
        "table": table(
            "Each group's centre and spread",
            columns,
            [_group_row(points, group) for group in groups],
        ),
    }  # fmt: skip


def _sign(rank: int) -> Chart:
    sign = shape("g", group_sign(rank, 7.0, 7.0), class_=f"point group{rank}")
    return Chart("", 14.0, 14.0, (sign,))


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


# ---- what the metric looks at -----------------------------------------------------------------


def _weights(metric: MetricShape) -> dict[str, Any]:
    shown = metric.weights[:MAX_WEIGHTS]
    bars = [
        Bar(
            short(name),
            share,
            percent(share),
            f"{short(name, 200)}: {percent(share)} of the metric",
        )
        for name, share in shown
    ]
    chart = horizontal_bars(
        bars,
        title="Bars: share of each column in the metric.",
        start=0.0,
        end=max(bar.value for bar in bars),
        label_width=168.0,
    )
    caption = "Share of each column in the metric."
    if metric.n_features > MAX_WEIGHTS:
        rest = sum(share for _, share in metric.weights[MAX_WEIGHTS:]) + metric.rest
        caption += f" The other {metric.n_features - MAX_WEIGHTS} columns make up {percent(rest)}."
    if metric.n_features > len(metric.weights):
        caption += f" The table lists the {len(metric.weights)} with most."
    rows = [(short(name, 200), percent(share)) for name, share in metric.weights]
    return {
        "figure": Figure(chart, caption, table("Share of each column", ("Column", "share"), rows)),
        "n_features": number(metric.n_features),
        "dimensions": f"{number(metric.n_components)} "
        f"{'dimension' if metric.n_components == 1 else 'dimensions'}",
    }


def short(name: str, longest: int = 23) -> str:
    """A name that fits beside a bar.

    Examples
    --------
    >>> short("age"), len(short("a" * 99))
    ('age', 23)
    """
    return name if len(name) <= longest else f"{name[: longest - 11]}…{name[-10:]}"
