"""Clusterings of public points, from which private links choose: no private number enters here but a metric.

k-means runs in several spaces: the features, with equal spread within clusters, their leading directions
with and without equal spread, the released metric, and the neighbourhood graph's own coordinates (spectral
clustering).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray, IntArray

MOST_DIRECTIONS = 32
BLENDS = (0.5, 1.0)
"""Parts of the released metric beside Euclid."""
NEIGHBOURS = 10
MOST_SPECTRAL = 5000
"""Points above which the neighbourhood graph's coordinates take too long."""
STARTS = 4
TURNS = 10
RIDGE = 0.2
"""Part of a round matrix in the spread within clusters."""


def most_candidates(n_features: int) -> int:
    """How many clusterings there are at most, from public numbers.

    Examples
    --------
    >>> most_candidates(4)
    11
    """
    return 1 + 1 + 2 * len(_widths(n_features)) + len(BLENDS) + 1


def candidates(
    points: FloatArray, metric: FloatArray | None, n_clusters: int, *, spectral: bool
) -> tuple[list[str], IntArray]:
    """Different clusterings of the same points and what they are called; the first is plain k-means.

    Parameters
    ----------
    points : array of shape (n, d)
        Public.
    metric : array of shape (k, d) or None
        Released.

    Returns
    -------
    names : list of str
    labels : integer array of shape (n_candidates, n)
        Each clustering once.
    """
    named: dict[bytes, tuple[str, IntArray]] = {}
    for name, space in _spaces(points, metric, n_clusters, spectral=spectral):
        labels = in_order_of_first(k_means(space, n_clusters))
        named.setdefault(labels.tobytes(), (name, labels))
    names = [name for name, _ in named.values()]
    return names, np.stack([labels for _, labels in named.values()])


def k_means(space: FloatArray, n_clusters: int) -> IntArray:
    """Plain k-means, the same whenever it is called."""
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct points than clusters
        found = KMeans(n_clusters, n_init=STARTS, random_state=0).fit_predict(space)
    return np.asarray(found, dtype=np.int64)


def in_order_of_first(labels: IntArray) -> IntArray:
    """The same clustering, clusters numbered by their first point.

    Examples
    --------
    >>> in_order_of_first(np.array([2, 0, 2, 1])).tolist()
    [0, 1, 0, 2]
    """
    _, first, where = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.asarray(rank[where.ravel()], dtype=np.int64)


def _spaces(
    points: FloatArray, metric: FloatArray | None, n_clusters: int, *, spectral: bool
) -> Iterator[tuple[str, FloatArray]]:
    plain = _unit(points - points.mean(axis=0))
    yield "features", plain
    yield "equal spread within clusters", _evened(plain, n_clusters)
    u, s, _ = np.linalg.svd(plain, full_matrices=False)
    for width in _widths(points.shape[1]):
        yield f"{width} directions", u[:, :width] * s[:width]
        yield f"{width} directions, equal spread", u[:, :width]
    if metric is not None:
        learned = _unit(plain @ metric.T)
        for part in BLENDS:
            blended = np.hstack([np.sqrt(1 - part) * plain, np.sqrt(part) * learned])
            yield f"{part:g} private metric", blended
    if spectral and n_clusters + 1 < len(points) <= MOST_SPECTRAL:
        yield "neighbourhoods", _neighbourhoods(plain, n_clusters)


def _evened(points: FloatArray, n_clusters: int) -> FloatArray:
    """The points in coordinates in which clusters are about round: k-means, turn by turn in the last ones."""
    space, labels = points, in_order_of_first(k_means(points, n_clusters))
    for _ in range(TURNS):
        means = np.stack([points[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
        rest = points - means[labels]
        spread = rest.T @ rest / len(points)
        d = len(spread)
        level = max(float(np.trace(spread)) / d, 1e-300)
        values, basis = np.linalg.eigh((1 - RIDGE) * spread + RIDGE * level * np.eye(d))
        space = points @ basis / np.sqrt(values)
        last, labels = labels, in_order_of_first(k_means(space, n_clusters))
        if (labels == last).all():
            break
    return space


def _widths(n_features: int) -> list[int]:
    return [2**p for p in range(20) if 2**p <= min(n_features, MOST_DIRECTIONS)]


def _unit(rows: FloatArray) -> FloatArray:
    return rows / max(float(np.sqrt((rows**2).sum(axis=1).mean())), 1e-300)


def _neighbourhoods(points: FloatArray, n_clusters: int) -> FloatArray:
    """Coordinates of the graph of nearest neighbours."""
    from sklearn.manifold import SpectralEmbedding

    made: Any = SpectralEmbedding(
        n_clusters,
        affinity="nearest_neighbors",
        n_neighbors=min(NEIGHBOURS, len(points) - 1),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph in several parts is fine here
        return np.asarray(made.fit_transform(points), dtype=np.float64)
