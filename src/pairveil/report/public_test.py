"""Scores and a map from a public table of people; the only people this package ever looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score, roc_curve

from pairveil.errors import InputError
from pairveil.evaluation.scores import sample_test_pairs
from pairveil.report.data import ProjectedPoints, PublicTest

if TYPE_CHECKING:
    from pairveil.release.metric import ReleasedMetric

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
