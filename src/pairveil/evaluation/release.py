"""Scores of a released metric, always beside the Euclidean and an untrained one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import StratifiedKFold

from pairveil.evaluation.scores import knn_accuracy, pair_auc
from pairveil.release.metric import ReleasedMetric


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
    >>> import numpy as np
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
        knn_accuracy(components, X[train], classes[train], X[test], classes[test]).accuracy
        * len(test)
        for train, test in folds.split(X, classes)
    ]
    return float(np.sum(hits) / len(X))
