"""What recipes share: tables of fitted numbers, and matrices of metrics.

Numbers that were fitted on data stand in one frozen table a learner, with what changing them costs: a frozen
dataclass whose fields are made by `fitted`. ``python -m tools.constants`` halves and doubles each number and
prints what that does to the gain kept (benchmarks/results/README.md).
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from pairveil.array_types import FloatArray


class Fitted(NamedTuple):
    """What is known about a number."""

    meaning: str
    origin: str  # where the value comes from
    halved: float | None  # change of the mean gain kept; None where it was not measured
    doubled: float | None


def fitted(
    value: Any,
    meaning: str,
    origin: str,
    halved: float | None = None,
    doubled: float | None = None,
) -> Any:
    """A field of a table of fitted numbers."""
    return field(default=value, metadata={"fitted": Fitted(meaning, origin, halved, doubled)})


# ---- matrices of metrics: columns on one scale, directions shrunk against noise, Euclid beside few ----


def scale_of(spread: FloatArray, noise: float, length: float) -> FloatArray:
    """Factors that give every column the same spread and differences a mean square length near 1.

    A spread below the noise counts as the noise, so that columns of little spread are not blown up.
    """
    kept = np.maximum(spread, max(noise, 0.01 * float(spread.max()), 1e-9))
    positive = np.clip(spread, 0.0, None)
    stretch = math.sqrt(
        float((positive / kept).sum()) / max(float(positive.sum() / kept.max()), 1e-9)
    )
    return np.asarray(1.0 / (np.sqrt(kept / kept.max()) * length * max(stretch, 1e-9)))


def triangle(d: int) -> int:
    """Entries of a symmetric matrix."""
    return d * (d + 1) // 2


def packed(matrix: FloatArray, weight: float = 1.0) -> FloatArray:
    """A symmetric matrix as one vector, in l2 ``weight`` times as long: its upper triangle, widened."""
    rows, columns = np.triu_indices(len(matrix))
    widened = np.where(rows == columns, weight, weight * math.sqrt(2.0))
    return np.asarray(widened * matrix[rows, columns])


def unpacked(vector: FloatArray, d: int, weight: float = 1.0) -> FloatArray:
    """The symmetric matrix of a vector that `packed` made."""
    rows, columns = np.triu_indices(d)
    matrix = np.zeros((d, d))
    matrix[rows, columns] = vector / np.where(rows == columns, weight, weight * math.sqrt(2.0))
    return np.asarray(matrix + np.triu(matrix, 1).T)


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
    """Proximal step of the nuclear norm."""
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return np.asarray((U * np.maximum(s - threshold, 0.0)) @ Vt)


def shrink_columns(W: FloatArray, threshold: float) -> FloatArray:
    """Proximal step of the group lasso over columns."""
    lengths = np.linalg.norm(W, axis=0)
    return np.asarray(W * np.maximum(0.0, 1 - threshold / np.maximum(lengths, 1e-300)))


def across(Vt: FloatArray) -> FloatArray:
    """An orthonormal basis of all that is orthogonal to the k orthonormal rows of ``Vt``, (d - k, d).

    The rows behind the k-th of the reflection that maps the first k axes onto the rows: one product of a
    d x k matrix with its transpose, where a decomposition of a d x d matrix would take minutes.
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
    """
    _, s, Vt = np.linalg.svd(learned, full_matrices=False)
    return signed(np.concatenate([np.hypot(s, euclid)[:, None] * Vt, euclid * across(Vt)]))
