"""What links are worth to a clustering, with and without privacy: adjusted Rand index with the classes.

Beside `PrivateConstrainedKMeans` stand k-means, which sees no links, and PCKMeans (Basu, Banerjee and Mooney,
2004), which sees all of them: it starts from k-means and from the must-links' neighbourhoods, gives each
point in turn the cluster with the least squared distance and violated links, and keeps the cheaper of the
two.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.measuring import write_result
from pairveil.array_types import FloatArray, IntArray
from pairveil.errors import DataWarning
from pairveil.learners.clustering import PrivateConstrainedKMeans, k_means

EPSILONS = (0.3, 1.0, 3.0, math.inf)
LINKS = (100, 500, 1000)
FIRST_SEED = 410
MOST_TURNS = 30


def data_sets() -> Iterator[tuple[str, FloatArray, IntArray]]:
    """Iris, breast cancer and digits from scikit-learn: name, standardised points, classes."""
    from sklearn import datasets

    for name in ("iris", "breast_cancer", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        spread = X.std(axis=0)
        yield name, (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y.astype(np.int64)


def draw_links(y: IntArray, count: int, seed: int) -> tuple[IntArray, IntArray]:
    """So many different pairs of points, as must-links and cannot-links.

    Examples
    --------
    >>> ml, cl = draw_links(np.array([0, 0, 1, 1]), 5, seed=0)
    >>> len(ml) + len(cl)
    5
    """
    rng = np.random.default_rng([seed, 19])
    found: set[tuple[int, int]] = set()
    while len(found) < min(count, len(y) * (len(y) - 1) // 2):
        a, b = sorted(rng.integers(len(y), size=2).tolist())
        if a != b:
            found.add((a, b))
    links = np.array(sorted(found), dtype=np.int64)
    same = y[links[:, 0]] == y[links[:, 1]]
    return links[same], links[~same]


def pck_means(X: FloatArray, ml: IntArray, cl: IntArray, k: int, seed: int = 0) -> IntArray:
    """PCKMeans without privacy; a violated link costs as much as a typical squared distance.

    Parameters
    ----------
    X : array of shape (n, d)
    ml, cl : arrays of shape (m, 2)
    seed : int
        Of the order in which points are given clusters.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0], [10.0]])
    >>> labels = pck_means(X, np.array([[2, 3]]), np.array([[0, 4]]), 2)
    >>> bool(labels[0] != labels[4])
    True
    """
    linked: list[list[tuple[int, float]]] = [[] for _ in X]
    for links, sign in ((ml, 1.0), (cl, -1.0)):
        for a, b in links.tolist():
            linked[a].append((b, sign))
            linked[b].append((a, sign))
    plain = k_means(X, k)
    price = float(np.median(_squared(X, plain, k).min(axis=1)))
    starts = [plain, _neighbourhoods(X, ml, k)]
    found = [_in_turn(X, start, linked, price, k, seed) for start in starts if start is not None]
    return min(found, key=lambda labels: _cost(X, labels, ml, cl, price, k))


def _neighbourhoods(X: FloatArray, ml: IntArray, k: int) -> IntArray | None:
    """Points by the nearest of k large neighbourhoods of must-links; None where there are fewer."""
    graph = sparse.coo_array((np.ones(len(ml)), (ml[:, 0], ml[:, 1])), shape=(len(X), len(X)))
    part = sparse.csgraph.connected_components(graph, directed=False)[1]
    sizes = np.bincount(part)
    large = np.flatnonzero(sizes >= 2)
    if len(large) < k:
        return None
    means = np.stack([X[part == one].mean(axis=0) for one in large])
    chosen = [int(sizes[large].argmax())]
    while len(chosen) < k:  # farthest first, weighed by size
        away = ((means[:, None, :] - means[chosen]) ** 2).sum(axis=2).min(axis=1)
        chosen.append(int((away * sizes[large]).argmax()))
    return np.asarray(((X[:, None, :] - means[chosen]) ** 2).sum(axis=2).argmin(axis=1))


def _cost(
    X: FloatArray, labels: IntArray, ml: IntArray, cl: IntArray, price: float, k: int
) -> float:
    """What PCKMeans makes small: squared distances and violated links."""
    own = np.take_along_axis(_squared(X, labels, k), labels[:, None], axis=1)
    violated = np.count_nonzero(labels[ml[:, 0]] != labels[ml[:, 1]])
    violated += np.count_nonzero(labels[cl[:, 0]] == labels[cl[:, 1]])
    return float(own.sum()) + price * violated


def _in_turn(
    X: FloatArray, start: IntArray, linked: Any, price: float, k: int, seed: int
) -> IntArray:
    """Clusters given point by point, in random order, until nothing changes."""
    rng, labels = np.random.default_rng([seed, 20]), start.copy()
    for _ in range(MOST_TURNS):
        before, distance = labels.copy(), _squared(X, labels, k)
        for i in rng.permutation(len(X)):
            cost = distance[i].copy()
            for j, sign in linked[i]:
                cost[labels[j]] -= sign * price
            labels[i] = cost.argmin()
        if (labels == before).all():
            break
    return labels


def _squared(X: FloatArray, labels: IntArray, k: int) -> FloatArray:
    """Squared distances to the means of the clusters; an empty one is nowhere."""
    means = np.stack(
        [
            X[labels == c].mean(axis=0) if (labels == c).any() else np.full(X.shape[1], 1e9)
            for c in range(k)
        ]
    )
    return np.asarray(((X[:, None, :] - means) ** 2).sum(axis=2))


def run(
    seeds: int = 10,
    links: tuple[int, ...] = LINKS,
    out: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Mean adjusted Rand index by data set, number of links, method and epsilon.

    Parameters
    ----------
    seeds : int
        Draws of links; on none of these seeds a default was chosen.
    out : path, optional
        Folder for ``clustering.json``.
    """
    rows = []
    for name, X, y in data_sets():
        for count in links:
            drawn = [draw_links(y, count, FIRST_SEED + s) for s in range(seeds)]
            rows += _measure(name, X, y, count, drawn)
            if progress is not None:
                progress(f"{name}, {count} links")
    result = {"seeds": seeds, "rows": rows}
    write_result(result, out, "clustering")
    return result


def _measure(name: str, X: FloatArray, y: IntArray, count: int, drawn: Any) -> list[dict[str, Any]]:
    from sklearn.metrics import adjusted_rand_score

    k = len(np.unique(y))
    scores: dict[tuple[str, float | None], list[float]] = {
        ("k-means", None): [],
        ("PCKMeans", None): [],
    }
    plain = float(adjusted_rand_score(y, k_means(X, k)))
    for seed, (ml, cl) in enumerate(drawn, FIRST_SEED):
        scores["k-means", None].append(plain)
        scores["PCKMeans", None].append(adjusted_rand_score(y, pck_means(X, ml, cl, k, seed)))
        for epsilon in EPSILONS:
            learner = PrivateConstrainedKMeans(k, epsilon, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                found = learner.fit_predict(X, ml=ml, cl=cl)
            scores.setdefault(("private", epsilon), []).append(adjusted_rand_score(y, found))
    gained = float(np.mean(scores["PCKMeans", None])) - plain
    return [
        {
            "dataset": name, "links": count, "method": method,
            "epsilon": epsilon if epsilon is None or math.isfinite(epsilon) else "inf",
            "rand_index": float(np.mean(found)),
            "interval": 1.96 * float(np.std(found)) / math.sqrt(len(found)),
            "gain_kept": (float(np.mean(found)) - plain) / gained if gained > 0 else None,
        }
        for (method, epsilon), found in scores.items()
    ]  # fmt: skip
