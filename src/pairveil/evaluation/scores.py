"""Scores of a metric on people that were not used to learn it.

Pair AUC is the metric-learning score; nearest-neighbour accuracy hardly depends on the metric on many
tables, so it is only ever reported beside the Euclidean and an untrained metric (docs/theory/learner.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from pairveil.array_types import FloatArray
from pairveil.errors import InputError

if TYPE_CHECKING:
    from pairveil.release.metric import ReleasedMetric

Seed = int | np.random.Generator | None


def project(components: ArrayLike | None, X: ArrayLike) -> FloatArray:
    """Map people into the space where the metric is Euclidean (``None`` leaves them as they are)."""
    points = np.asarray(X, dtype=np.float64)
    if components is None:
        return points
    return points @ np.asarray(components, dtype=np.float64).T


def sample_test_pairs(
    classes: ArrayLike, n_pairs: int, random_state: Seed = None
) -> NDArray[np.int64]:
    """Draw pairs of distinct people, each person's class being drawn uniformly first."""
    rng = np.random.default_rng(random_state)
    names, codes = np.unique(np.asarray(classes), return_inverse=True)
    if len(names) < 2:
        raise InputError("evaluation needs people of at least two classes")
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def people(n: int) -> NDArray[np.int64]:
        group = rng.integers(len(names), size=n)
        chosen: NDArray[np.int64] = order[starts[group] + rng.integers(sizes[group])]
        return chosen

    left, right = people(n_pairs), people(n_pairs)
    while (same := np.flatnonzero(left == right)).size:
        left[same], right[same] = people(same.size), people(same.size)
    return np.column_stack([left, right])


def pair_auc(
    components: ArrayLike | None,
    X: ArrayLike,
    classes: ArrayLike,
    n_pairs: int = 200_000,
    random_state: Seed = 0,
) -> float:
    """ROC AUC of the distance as a score for 'these two people are of different classes'.

    Parameters
    ----------
    components : array of shape (n_components, n_features) or None
        The metric: distance is ``||components @ (a - b)||``. None is the Euclidean metric.
    X, classes : arrays of shape (n, n_features) and (n,)
        Test people and their classes.
    n_pairs : int
        Random pairs, classes balanced. 200,000 leave a standard error near 0.001.
    random_state : int, Generator or None
        Scores of several metrics are compared on the same pairs when this is the same int.

    Returns
    -------
    float
        0.5 for a metric that knows nothing, 1.0 for one that separates the classes.

    Examples
    --------
    >>> X = [[0.0, 5.0], [0.1, -5.0], [1.0, 5.0], [1.1, -5.0]]
    >>> round(pair_auc([[1.0, 0.0]], X, [0, 0, 1, 1], n_pairs=1000), 2)
    1.0
    """
    labels = np.asarray(classes)
    pairs = sample_test_pairs(labels, n_pairs, random_state)
    different = labels[pairs[:, 0]] != labels[pairs[:, 1]]
    points = project(components, X)
    squared = np.empty(n_pairs)
    step = max(1, 2_000_000 // max(1, points.shape[1]))
    for start in range(0, n_pairs, step):
        rows = pairs[start : start + step]
        difference = points[rows[:, 0]] - points[rows[:, 1]]
        squared[start : start + step] = np.einsum("ij,ij->i", difference, difference)
    return float(roc_auc_score(different, squared))


def knn_guess(
    components: ArrayLike | None, X: ArrayLike, classes: ArrayLike, asked: ArrayLike, k: int = 5
) -> NDArray[Any]:
    """Classes of the people asked for, by their nearest neighbours under the metric.

    Examples
    --------
    >>> knn_guess(None, [[0.0], [1.0]], [0, 1], [[0.1], [0.9]], k=1)
    array([0, 1])
    """
    model = KNeighborsClassifier(n_neighbors=min(k, len(np.asarray(classes))))
    fitted = model.fit(project(components, X), classes)
    return np.asarray(fitted.predict(project(components, asked)))


def gain_kept(auc: float, euclidean: float, reference: float) -> float:
    """Share of the reference learner's gain over Euclid that a metric keeps.

    NaN when the reference gains nothing: then there is no gain to keep.

    Examples
    --------
    >>> round(gain_kept(0.65, euclidean=0.55, reference=0.75), 6)
    0.5
    """
    gain = reference - euclidean
    return (auc - euclidean) / gain if gain > 0 else float("nan")


def evaluate_release(
    metric: ReleasedMetric,
    X: ArrayLike,
    classes: ArrayLike,
    n_pairs: int = 200_000,
    random_state: int = 0,
) -> dict[str, Any]:
    """Pair AUC and cross-validated 5-NN accuracy of the metric, Euclid and a random projection.

    Examples
    --------
    >>> from pairveil.release.metric import ReleasedMetric
    >>> X = np.random.default_rng(0).normal(size=(60, 2)); y = (X[:, 0] > 0).astype(int)
    >>> scores = evaluate_release(ReleasedMetric(np.array([[1.0, 0.0]])), X, y, n_pairs=2000)
    >>> scores["pair_auc"] > scores["euclidean_pair_auc"]
    True
    """
    points, labels = np.asarray(X, dtype=np.float64), np.asarray(classes)
    rng = np.random.default_rng(random_state)
    untrained = rng.normal(size=(min(metric.n_components, 16), metric.n_features))
    scores: dict[str, Any] = {"n_people": len(points), "n_pairs": n_pairs}
    # Euclid's matrix is a diagonal: it is multiplied, never written out (features squared may not fit).
    scale = np.ones(metric.n_features) if metric.column_scale is None else metric.column_scale
    for prefix, components, people in (
        ("", metric.components, points),
        ("euclidean_", None, points * scale),
        ("untrained_", untrained * scale, points),
    ):
        scores[f"{prefix}pair_auc"] = pair_auc(components, people, labels, n_pairs, random_state)
        scores[f"{prefix}knn_accuracy"] = _cross_validated_knn(
            components, people, labels, random_state
        )
    return scores


def _cross_validated_knn(components: Any, X: Any, classes: Any, seed: int) -> float:
    """5-NN accuracy where a person's neighbours always come from the other folds."""
    smallest = int(np.unique(classes, return_counts=True)[1].min())
    if smallest < 2:
        return float("nan")
    folds = StratifiedKFold(min(5, smallest), shuffle=True, random_state=seed)
    hits = [
        np.mean(knn_guess(components, X[train], classes[train], X[test]) == classes[test])
        * len(test)
        for train, test in folds.split(X, classes)
    ]
    return float(np.sum(hits) / len(X))
