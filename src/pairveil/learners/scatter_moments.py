"""What statistics of people and of pairs share: norms of moments, eigenvalues shrunk against noise."""

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


def leading(stacked: FloatArray) -> FloatArray:
    """One square matrix for the same metric, directions of most weight first."""
    _, s, Vt = np.linalg.svd(stacked, full_matrices=False)
    rows: FloatArray = s[:, None] * Vt
    # A direction and its opposite are one metric: the largest entry of a row is made positive.
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return rows * np.where(largest < 0, -1.0, 1.0)
