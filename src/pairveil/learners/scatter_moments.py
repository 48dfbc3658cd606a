"""What the learners share: norms of moments, values shrunk against noise, Euclid beside few directions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from pairveil.array_types import FloatArray
from pairveil.privacy.grid import Norm

MOST_FEATURES = 1024
"""Second moments of more columns than this are too many numbers to release."""
RIDGE = 0.3
"""How much of the largest eigenvalue of pure noise is added to every eigenvalue within classes."""
_TINY = 1e-12


def dense_rows(rows: Any) -> FloatArray:
    """A tile of rows as an array: centred rows have no zeros left to spare."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def moment_norms(z: FloatArray, norm: Norm) -> FloatArray:
    """Norm of S(z) for each row: ||z||_2^2, or in l1 the diagonal and sqrt(2) times the upper half."""
    squares = np.einsum("ij,ij->i", z, z)
    if norm == "l2":
        return np.asarray(squares)
    half = (np.abs(z).sum(axis=1) ** 2 - squares) / 2
    return np.asarray(squares + math.sqrt(2.0) * np.maximum(half, 0.0))


def shrunk(values: FloatArray, noise: float, n: int) -> tuple[FloatArray, float]:
    """Eigenvalues within classes, drawn to their mean by as much of their spread as noise and chance make.

    Returns them with what was added to each: the noise alone has eigenvalues up to its edge, and d columns of
    n people leave their part to chance.
    """
    d = len(values)
    mean = max(float(values.mean()), _TINY)
    by_chance = noise**2 * d * (d + 1) / 2 + (d * mean) ** 2 / n
    drawn = min(1.0, by_chance / max(float(((values - mean) ** 2).sum()), _TINY**2))
    floor = RIDGE * noise * math.sqrt(2 * d) + mean * math.sqrt(d / n) + _TINY
    return np.maximum((1 - drawn) * values + drawn * mean, 0.0) + floor, floor


def scale_of(spread: FloatArray, noise: float, length: float) -> FloatArray:
    """Factors that give every column the same spread and differences a mean square length near 1.

    A spread below the noise counts as the noise, so that columns of little spread are not blown up.
    """
    kept = np.maximum(spread, max(noise, 0.01 * float(spread.max()), 1e-9))
    positive = np.clip(spread, 0.0, None)
    stretch = math.sqrt(
        float((positive / kept).sum()) / max(float(positive.sum() / kept.max()), 1e-9)
    )
    scale: FloatArray = 1.0 / (np.sqrt(kept / kept.max()) * length * max(stretch, 1e-9))
    return scale


def leading(stacked: FloatArray) -> FloatArray:
    """One square matrix for the same metric, directions of most weight first."""
    _, s, Vt = np.linalg.svd(stacked, full_matrices=False)
    return signed(s[:, None] * Vt)


def signed(rows: FloatArray) -> FloatArray:
    """The same metric with the largest entry of each row positive: a direction and its opposite are one."""
    for row in rows:
        if row[np.abs(row).argmax()] < 0:
            np.negative(row, out=row)
    return rows


def shrink_singular_values(W: FloatArray, threshold: float) -> FloatArray:
    """Proximal step of the nuclear norm.

    Examples
    --------
    >>> shrink_singular_values(np.diag([3.0, 0.5]), 1.0)
    array([[2., 0.],
           [0., 0.]])
    """
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    shrunk: FloatArray = (U * np.maximum(s - threshold, 0.0)) @ Vt
    return shrunk


def shrink_columns(W: FloatArray, threshold: float) -> FloatArray:
    """Proximal step of the group lasso over columns.

    Examples
    --------
    >>> shrink_columns(np.array([[3.0, 0.5], [4.0, 0.0]]), 1.0)
    array([[2.4, 0. ],
           [3.2, 0. ]])
    """
    lengths = np.linalg.norm(W, axis=0)
    shrunk: FloatArray = W * np.maximum(0.0, 1 - threshold / np.maximum(lengths, 1e-300))
    return shrunk


def across(Vt: FloatArray) -> FloatArray:
    """An orthonormal basis of all that is orthogonal to the k orthonormal rows of ``Vt``, (d - k, d).

    The rows behind the k-th of the reflection that maps the first k axes onto the rows: one product of a
    d x k matrix with its transpose, where a decomposition of a d x d matrix would take minutes.

    Examples
    --------
    >>> across(np.array([[0.6, 0.8, 0.0]])).round(12)
    array([[-0.8,  0.6,  0. ],
           [ 0. ,  0. ,  1. ]])
    """
    k, d = Vt.shape
    left, sigma, right = np.linalg.svd(Vt[:, :k].T)
    steps = Vt.T.copy()
    # Onto minus the nearest rotation of the axes: 1 + sigma is never small.
    steps[:k] += left @ right
    steps = steps @ right.T
    rows: FloatArray = -(steps[k:] / (1.0 + sigma)) @ steps.T
    rows[np.arange(d - k), np.arange(k, d)] += 1.0
    return rows


def with_euclid(learned: FloatArray, euclid: float) -> FloatArray:
    """One square matrix for ``||learned x||^2 + euclid^2 ||x||^2``.

    Its singular values are those of ``learned`` and ``euclid``, as hypotenuses, and ``euclid`` across: no
    square matrix is decomposed.

    Examples
    --------
    >>> with_euclid(np.array([[0.0, 2.0]]), 1.0).round(3)
    array([[-0.   ,  2.236],
           [ 1.   ,  0.   ]])
    """
    _, s, Vt = np.linalg.svd(learned, full_matrices=False)
    components: FloatArray = np.concatenate(
        [np.hypot(s, euclid)[:, None] * Vt, euclid * across(Vt)]
    )
    return signed(components)
