"""From graphs, matrices, ledgers and release folders to the plain data of the page.

Scores and a map are of a public table of people, the only people this package ever looks at.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.errors import InputError
from pairveil.privacy.events import BestOfEvent
from pairveil.privacy.verdict import releases_of
from pairveil.release.metric import ReleasedMetric, column_shares
from pairveil.report.data import (
    Budget,
    LedgerEntry,
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
    from pairveil.privacy.ledger import PrivacyLedger
    from pairveil.release.linkage import ReleasedLinkage

MAX_LISTED = 1000  # features on the page, by weight: a release may have millions


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


def budget_of(ledger: PrivacyLedger) -> Budget:
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
        rows.append(LedgerEntry(entry.note, ledger.compose(entries[:i]), day))
    return Budget(
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
    from pairveil.release.curve import ErrorCurve
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
    from pairveil.release.curve import ErrorCurve

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
    before, after = scaled(metric, people), metric.project(people)
    pairs = sample_test_pairs(labels, n_pairs, 0)
    alike = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    (score, curve), (plain, plain_curve) = (
        _curve(places, pairs, alike) for places in (after, before)
    )
    test = PublicTest(note, len(people), n_pairs, score, plain, curve, plain_curve)
    return test, map_of(before, after, labels, note)  # fmt: skip


def scaled(metric: ReleasedMetric, X: ArrayLike) -> NDArray[np.float64]:
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
