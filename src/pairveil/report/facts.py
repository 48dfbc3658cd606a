"""What follows from a release and is not written in it: the verdict, and the numbers that templates lay out.

The words are in ``templates/``; what is here is data. None of it reads a private pair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from msgspec import defstruct

from pairveil.errors import InputError
from pairveil.foreign import decode, read_json
from pairveil.privacy.events import event_from_dict
from pairveil.privacy.joint_certificate import model_and_curve
from pairveil.privacy.verdict import Releases, Verdict, verdict
from pairveil.release.curve import ErrorCurve, OperatingPoint, operating_points
from pairveil.release.release import CURVE_FILE
from pairveil.report.data import (
    Evaluation,
    MetricShape,
    ProjectedPoints,
    ReportData,
    Score,
    UtilityCurve,
)

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate


def verdict_of(data: ReportData, releases: Releases | None = None) -> Verdict:
    """The verdict on everything that the page shows, all releases of the sender's ledger together.

    ``releases``: what the ledger says, where the summary does not.
    """
    certificate, budget = data.certificate, data.summary.budget
    if budget is not None:
        releases = Releases(len(budget.entries), budget.best_guess)
    beside, measured = data.together, []
    if data.curve is not None and data.file != CURVE_FILE:
        measured.append(data.curve.certificate)
    if certificate is not None and data.evaluation is not None:
        measured.append(data.evaluation.certificate)
        with suppress(InputError):
            beside = model_and_curve(certificate, data.evaluation.certificate)
    if measured and (beside is None or len(measured) > 1):
        releases = Releases(1 + len(measured), {})  # nothing is known of them together
    why = [why for one in measured if one is not None for why in one.why_not_for_release()]
    failures = [f"what was measured for this page must not leave: {one}" for one in why]
    if data.audit is not None and data.audit.verdict == "violated":
        failures.append("an attack on this very plan found more than is promised")
    return verdict(
        certificate, problems=data.problems, failures=failures, releases=releases, beside=beside
    )


# ---- the noise -----------------------------------------------------------------------------------


class Asked(NamedTuple):
    """Something that was computed from the private data, with noise."""

    name: str  # the query's own, or what its event is called
    entries: int | None  # numbers in the answer, where the plan tells
    noise: float  # in multiples of the most that one record can add
    share: float | None  # of the records, at random; None for batches that go through all
    times: float


def asked_of(certificate: Certificate) -> list[Asked]:
    """Everything that was asked; of a search, what a trial of each candidate asks."""
    events: list[Any] = []
    for event in certificate.events:
        for one in event.get("trials", event.get("parts", [[event]])):  # of a search, of parts
            events += one
    queries = certificate.plan.get("releases")
    if not isinstance(queries, list | tuple) or len(queries) != len(events):
        queries = [{}] * len(events)  # the plan is the sender's: whatever is no number is not shown
    found = []
    for event, query in zip(events, queries, strict=True):
        told, entries = event_from_dict(event), None
        query = query if isinstance(query, Mapping) else {}
        if _is_count(query.get("entries")):
            entries = query["entries"]
        share = None if "epochs" in event else float(event.get("sample_rate", 1.0))
        times = float(event.get("steps", event.get("epochs", 1)))
        name = str(query.get("name", "")) or told.words
        found.append(Asked(name, entries, told.noise, share, times))
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53


def account(certificate: Certificate) -> str:
    """The command that recomputes epsilon from one event; more than one needs `pairveil certificate`."""
    event = certificate.events[0]
    if len(certificate.events) != 1 or event["kind"] != certificate.mechanism:
        return ""
    command = [
        "pairveil account",
        f"--kappa {certificate.kappa}",
        f"--mechanism {certificate.mechanism}",
        f"--noise-multiplier {event_from_dict(event).noise!r}",
        f"--steps {event['steps']}",
        f"--delta {certificate.delta - certificate.delta_slack!r}",
        f"--adjacency {certificate.adjacency}",
    ]
    if "sample_rate" in event:
        command.insert(2, f"--sample-rate {event['sample_rate']!r}")
    return " \\\n  ".join(command)


# ---- quality -------------------------------------------------------------------------------------

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


def gain_kept(curve: UtilityCurve | None) -> float | None:
    """Share of the possible gain that this fit kept; None where there was none or it is not known."""
    if curve is None or curve.this_fit is None:
        return None
    plain, best = curve.euclidean, curve.reference
    if plain is None or best is None or best <= plain:
        return None
    return (curve.this_fit.score - plain) / (best - plain)


def scored(data: ReportData) -> tuple[Score | None, Certificate | None]:
    """The score on private pairs, and its own certificate where it was measured after the release."""
    if data.evaluation is not None:
        return data.evaluation.score, data.evaluation.certificate
    return data.summary.score, None


SCORES = (
    "pair_auc", "pair_auc_low", "pair_auc_high", "euclidean_pair_auc", "euclidean_pair_auc_low",
    "euclidean_pair_auc_high",
)  # fmt: skip

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


# ---- a map of people -----------------------------------------------------------------------------


class Group(NamedTuple):
    """People of one group on the map: how many, and where before and after."""

    name: str
    people: int
    before: tuple[float, float, float]
    after: tuple[float, float, float]


def groups_of(points: ProjectedPoints) -> list[Group]:
    """The centre of each group and its spread, before and after."""
    found = []
    for name in sorted(set(points.groups)):
        mine = np.asarray(points.groups) == name
        before, after = (_place(np.asarray(one)[mine]) for one in (points.before, points.after))
        found.append(Group(name, int(mine.sum()), before, after))
    return found


def _place(where: np.ndarray) -> tuple[float, float, float]:
    x, y = where.mean(axis=0)
    return float(x), float(y), _spread(where)


def separation(places: tuple[tuple[float, float], ...], groups: tuple[str, ...]) -> float:
    """Smallest distance of two groups' centres, in units of the mean spread within groups.

    Examples
    --------
    >>> separation(((0, 0), (0, 2), (8, 0), (8, 2)), ("a", "a", "b", "b"))
    8.0
    """
    where, names = np.asarray(places, dtype=float), np.asarray(groups)
    parts = [where[names == kind] for kind in sorted(set(groups))]
    centres = [part.mean(axis=0) for part in parts]
    distances = [math.dist(a, b) for i, a in enumerate(centres) for b in centres[:i]]
    return min(distances, default=0.0) / max(float(np.mean([_spread(p) for p in parts])), 1e-12)


def _spread(where: np.ndarray) -> float:
    return float(np.sqrt(((where - where.mean(axis=0)) ** 2).sum(axis=1).mean()))


# ---- other releases ------------------------------------------------------------------------------

RATES = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
MAX_LISTED = 1000


class Item(NamedTuple):
    """An item of a ranking."""

    name: str
    place: int
    strength: float
    low: int | None
    high: int | None
    preferred: float
    """How often it is preferred to a middling item."""


def items_of(ranking: Any) -> list[Item]:
    """The items of a released ranking, the best first."""
    order = np.argsort(-ranking.strengths, kind="stable").tolist()[:MAX_LISTED]
    above = ranking.strengths - np.median(ranking.strengths)
    # Bradley-Terry: the odds are exp of the difference.
    preferred = np.exp(-np.logaddexp(0.0, -above))
    low, high = ranking.rank_low, ranking.rank_high
    return [
        Item(
            f"item {item}" if ranking.names is None else ranking.names[item],
            place,
            float(ranking.strengths[item]),
            None if low is None else int(low[item]),
            None if high is None else int(high[item]),
            float(preferred[item]),
        )
        for place, item in enumerate(order, start=1)
    ]


def sizes_of(clusters: Any) -> list[float]:
    """Points in each cluster; without points how far each centre is from the middle of all."""
    if clusters.labels is not None:
        counts = np.bincount(clusters.labels, minlength=len(clusters.centers))
        return [float(count) for count in counts]
    away = clusters.centers - clusters.centers.mean(axis=0)
    return [float(one) for one in np.sqrt((away**2).sum(axis=1))]


def thresholds_of(curve: ErrorCurve | None) -> tuple[list[OperatingPoint], OperatingPoint | None]:
    """Rates to choose from, the one that was asked for among them, and that one."""
    if curve is None:
        return [], None
    return operating_points(curve, RATES), next(iter(operating_points(curve, ())), None)


def advice_of(curve: ErrorCurve) -> str:
    """What to say of the rate that was asked for."""
    if curve.asked is None:
        return ""
    try:
        return curve.advice(curve.asked)
    except InputError as problem:  # fewer pairs than the sender hoped for
        return f"The rate asked for cannot be shown: {problem}."
