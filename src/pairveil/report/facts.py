"""Releases, graphs, matrices and ledgers as the plain data of the page, and what follows from them.

The words are in ``templates/``; what is here is data. None of it reads a private pair. Scores and a map are
of a public table of people, the only people this package ever looks at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from msgspec import defstruct
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import InputError
from pairveil.foreign import decode, read_json
from pairveil.privacy.events import BestOfEvent, event_from_dict
from pairveil.privacy.joint_certificate import model_and_curve
from pairveil.privacy.verdict import Releases, Verdict, releases_of, verdict
from pairveil.release.curve import ErrorCurve, OperatingPoint, operating_points
from pairveil.release.metric import ReleasedMetric, column_shares
from pairveil.release.release import CURVE_FILE
from pairveil.report.data import (
    ChargedEntry,
    ChargedLedger,
    Evaluation,
    MetricShape,
    ProjectedPoints,
    PublicTest,
    ReportData,
    Score,
    Summary,
    WeightRow,
    read_summary,
)

if TYPE_CHECKING:
    from pairveil.privacy.certificate import Certificate
    from pairveil.privacy.ledger import PrivacyLedger
    from pairveil.release.linkage import ReleasedLinkage

MAX_LISTED = 1000
"""Features, or items, by weight: a release may have millions."""


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


class NoisyAnswer(NamedTuple):
    """Something that was computed from the private data, with noise."""

    name: str  # the query's own, or what its event is called
    entries: int | None  # numbers in the answer, where the plan tells
    noise: float  # in multiples of the most that one record can add
    share: float | None  # of the records, at random; None for batches that go through all
    times: float


def asked_of(certificate: Certificate) -> list[NoisyAnswer]:
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
        found.append(NoisyAnswer(name, entries, told.noise, share, times))
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


def spread_of_groups(points: ProjectedPoints) -> list[Group]:
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


# ---- from graphs, matrices, ledgers and release folders ------------------------------------------


def metric_shape(
    components: Any, feature_names: tuple[str, ...] | None = None, column_scale: Any = None
) -> MetricShape:
    """The matrix's size and which features it weighs; see `column_shares`.

    Examples
    --------
    >>> metric_shape([[3.0, 4.0]], ("age", "bmi")).weights
    (('bmi', 0.64), ('age', 0.36))
    """
    rows, columns = np.shape(components)
    shares = column_shares(components, column_scale)
    order = np.argsort(-shares, kind="stable")[:MAX_LISTED]
    listed = tuple(
        (feature_names[i] if feature_names else f"feature {i + 1}", float(shares[i])) for i in order
    )
    return MetricShape(
        n_components=rows,
        n_features=columns,
        weights=listed,
        rest=max(0.0, 1.0 - float(shares[order].sum())) if len(order) < len(shares) else 0.0,
    )


def weight_rows(model: ReleasedLinkage) -> tuple[WeightRow, ...]:
    """Weights of a released model, and how far its noise moves each.

    Examples
    --------
    >>> from pairveil.release.linkage import ReleasedLinkage
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


def budget_of(ledger: PrivacyLedger) -> ChargedLedger:
    """The ledger with the epsilon that each spending brought it to, and the day of each.

    The second at which a search began would, beside the age of the release's files, tell how many trials it
    made, which must not leave (docs/theory/accounting.md): so no hours are told, and of a search no day.

    Examples
    --------
    >>> from pairveil.privacy.events import GaussianEvent
    >>> from pairveil.privacy.ledger import PrivacyLedger
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    >>> kappas = {"relationship": 1, "person": 2}
    >>> _ = ledger.spend([GaussianEvent(60.0, steps=100)], kappas, note="first fit")
    >>> [(entry.note, round(entry.epsilon_so_far, 2)) for entry in budget_of(ledger).entries]
    [('first fit', 0.59)]
    """
    entries = ledger.entries
    rows = []
    for i, entry in enumerate(entries, start=1):
        searched = any(isinstance(event, BestOfEvent) for event in entry.events)
        day = "" if searched else entry.time[:10]
        rows.append(ChargedEntry(entry.note, ledger.compose(entries[:i]), day))
    return ChargedLedger(
        ledger.epsilon, ledger.delta, ledger.unit, ledger.adjacency, tuple(rows),
        releases_of(ledger).best_guess,
    )  # fmt: skip


def summary_of(learner: Any, **parts: Any) -> Summary:
    """What the page may show of a fitted learner: the graph's counts and the ledger; nothing private."""
    budget = None if learner.accountant is None else budget_of(learner.accountant)
    used, given = getattr(learner, "graphs_", (None, None))  # a metric's
    score = score_of(getattr(learner, "score_", None))
    return Summary(used=used, given=given, budget=budget, score=score, **parts)


def score_of(found: Any) -> Score | None:
    """A score on pairs that were held out, as the page has it; ``found``: a learner's ``score_``."""
    if found is None:
        return None
    metric, plain = (tuple(map(float, one)) for one in found.aucs)
    spent = found.certificate
    return Score(metric, plain, spent.n_pairs_used, found.confidence, spent.epsilon)  # type: ignore[arg-type]


def summary_text(learner: Any) -> str | None:
    """The text of ``summary.json`` for a fitted learner; None where there is nothing to say."""
    summary = summary_of(learner)
    return None if summary == Summary() else summary.to_json()


def read_release(folder: str | Path) -> ReportData:
    """Everything a release folder says about itself, with its certificate recomputed.

    Raises InputError: when the folder is no release, or a file in it is damaged, changed or too new.
    """
    from pairveil.release.linkage import ReleasedLinkage
    from pairveil.release.release import load_release

    released = load_release(folder)
    certificate = released.certificate
    parts: dict[str, Any] = {"metric": metric_shape([[1.0]])}
    if isinstance(released, ReleasedMetric):
        matrix = (released.components, released.feature_names, released.column_scale)
        parts["metric"] = replace(metric_shape(*matrix), columns=released.raw_names or ())
    elif isinstance(released, ReleasedLinkage):
        parts |= {"linkage": weight_rows(released), "prior": released.prior}
    elif isinstance(released, ErrorCurve):
        parts |= {"curve": released}
    else:
        parts |= {"answer": released}
    return ReportData(
        certificate=certificate,
        **parts,
        file=released.file,
        summary=read_summary(Path(folder)),
        folder=Path(folder).resolve().name,  # where it lay at the sender's is nobody's business
        problems=None if certificate is None else certificate.verify().problems,
        made=date.today().isoformat(),
    )


def with_curve(data: ReportData, folder: str | Path) -> ReportData:
    """The page of a model with an operating point that was made for it.

    Raises InputError: the folder holds no error curve, or its certificate does not hold.
    """

    curve = ErrorCurve.load(folder)
    if data.curve is not None:
        raise InputError("this release is an operating point itself: leave --threshold out")
    if curve.certificate is None or not curve.certificate.verify():
        raise InputError(f"{folder} has no certificate that holds: it is not shown")
    together = None
    if data.certificate is not None:
        with suppress(
            InputError
        ):  # records of other kinds: a ledger adds them up, the page does not
            together = curve.with_model(data.certificate)
    return replace(data, curve=curve, together=together)


# ---- a public table of people -------------------------------------------------------------------

N_PAIRS = 100_000
MAX_DRAWN = 300  # people on the map; more hide each other
MAX_GROUPS = 4
OTHER = "other"
_AT = np.concatenate([np.linspace(0, 0.1, 21), np.linspace(0.12, 1, 45)])  # where curves are kept


def score_public(
    metric: ReleasedMetric, X: ArrayLike, classes: ArrayLike, note: str, n_pairs: int = N_PAIRS
) -> tuple[PublicTest, ProjectedPoints]:
    """How well a metric tells public people apart, and where it puts them.

    ``X`` are numbers in the metric's order, of nobody whose pairs were used; ``note`` says in a few words of
    which people. Pairs are random, each class equally often.

    Examples
    --------
    >>> from pairveil.release.metric import ReleasedMetric
    >>> X = np.random.default_rng(0).normal(size=(60, 2)); y = (X[:, 0] > 0).astype(int)
    >>> test, points = score_public(ReleasedMetric(np.array([[1.0, 0.0]])), X, y, "an example", 2000)
    >>> test.score > test.plain, len(points.after)
    (True, 60)
    """
    from pairveil.evaluation.scores import sample_test_pairs

    people, labels = np.asarray(X, dtype=np.float64), np.asarray(classes).astype(str)
    if not np.all(np.isfinite(people)):
        raise InputError("the public test table has empty or infinite features; complete it first")
    if len(people) < 3:
        raise InputError("the public test table needs at least three people")
    before, after = before_learning(metric, people), metric.project(people)
    pairs = sample_test_pairs(labels, n_pairs, 0)
    alike = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    (score, curve), (plain, plain_curve) = (
        _curve(places, pairs, alike) for places in (after, before)
    )
    test = PublicTest(note, len(people), n_pairs, score, plain, curve, plain_curve)
    return test, map_of(before, after, labels, note)  # fmt: skip


def before_learning(metric: ReleasedMetric, X: ArrayLike) -> NDArray[np.float64]:
    """People as they were compared before learning: plain distance is taken of these."""
    return np.asarray(X, dtype=np.float64) * (
        1.0 if metric.column_scale is None else metric.column_scale
    )


def _curve(
    places: NDArray[np.float64], pairs: NDArray[np.int64], alike: NDArray[np.bool_]
) -> tuple[float, tuple[tuple[float, float], ...]]:
    """Area under the curve of found against wrongly taken pairs, and the curve at a few places."""
    from sklearn.metrics import roc_auc_score, roc_curve

    distance = np.concatenate([
        np.linalg.norm(places[part[:, 0]] - places[part[:, 1]], axis=1)
        for part in np.array_split(pairs, 1 + len(pairs) * places.shape[1] // 4_000_000)
    ])  # fmt: skip
    wrong, right, _ = roc_curve(alike, -distance)
    kept = np.interp(_AT, wrong, right)
    points = ((0.0, 0.0), *zip(_AT.tolist(), kept.tolist(), strict=True))
    return float(roc_auc_score(alike, -distance)), points


def map_of(before: Any, after: Any, labels: Any, note: str) -> ProjectedPoints:
    """People on the two main axes of either space; the three largest groups and the rest, 300 people at most.

    Examples
    --------
    >>> places = np.arange(10.0).reshape(5, 2)
    >>> map_of(places, 2 * places, np.array(["a", "a", "b", "b", "b"]), "five").groups
    ('a', 'a', 'b', 'b', 'b')
    """
    names, sizes = np.unique(labels, return_counts=True)
    groups = np.asarray(labels, dtype=object)
    if len(names) > MAX_GROUPS:
        largest = names[np.argsort(-sizes, kind="stable")[: MAX_GROUPS - 1]]
        groups = np.where(np.isin(labels, largest), labels, OTHER)
    drawn = np.arange(len(labels))
    if len(drawn) > MAX_DRAWN:
        drawn = np.sort(np.random.default_rng(0).choice(drawn, MAX_DRAWN, replace=False))
    return ProjectedPoints(
        "public",
        f"Seen along the two directions in which they spread most ({note}).",
        tuple(map(tuple, _plane(before)[drawn].tolist())),
        tuple(map(tuple, _plane(after)[drawn].tolist())),
        tuple(str(group) for group in groups[drawn]),
    )


def _plane(places: Any) -> NDArray[np.float64]:
    centred = places - places.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
    flat = np.zeros((len(places), 2))
    flat[:, : len(axes)] = centred @ axes.T
    return flat
