"""What a fit asks of tuples beside gradients: how differences spread, and which directions tell apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.array_types import FloatArray
from pairveil.engine.gradients import (
    Orders,
    by_role,
    sensitivity_of_sets,
    shrinking,
)
from pairveil.engine.kernels.groups import SPREAD
from pairveil.engine.statistics import Statistic, shrink
from pairveil.privacy.grid import Norm

TINY = 1e-12


@dataclass(frozen=True)
class TupleSurvey(Statistic):
    """How differences from the anchor spread over the columns, how long they are, and how many tuples speak.

    A tuple's contribution is (q, side * sqrt(length), side * 1) with q = v / ||v||, v the sum of z^2 over its
    members' differences z from the anchor, and length their mean length over ``longest``.

    Parameters
    ----------
    longest : float
        Public bound on a difference's length.
    side : float
        Weight of the last two entries.
    clip : float
        `bound` of the query's norm.
    """

    n_features: int
    size: int
    longest: float
    side: float
    clip: float

    @property
    def shape(self) -> tuple[int, ...]:
        """One entry a column, then length and count."""
        return (self.n_features + 2,)

    @staticmethod
    def bound(side: float, norm: Norm) -> float:
        """Largest norm of a contribution."""
        return 1 + 2 * side if norm == "l1" else math.sqrt(1 + 2 * side**2)

    def tile_sum(self, rows: Any, order: Orders, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the contributions; `shrink` only guards against rounding."""
        total = np.zeros(self.shape)
        for X, present in by_role(rows, order):
            squares = X * X
            spread = squares.sum(axis=1)
            sizes = spread.sum(axis=1) if norm == "l1" else np.sqrt((spread * spread).sum(axis=1))
            live = (sizes > TINY**2) & present[:, 0]
            others = np.maximum(present[:, 1:].sum(axis=1), 1)
            mean = np.sqrt(squares.sum(axis=2)).sum(axis=1) / others / self.longest
            length = self.side * np.sqrt(np.minimum(1.0, mean))
            norms = 1 + length + self.side
            if norm == "l2":
                norms = np.sqrt(1 + length**2 + self.side**2)
            factor = shrink(norms, self.clip) * live
            columns = (factor / np.maximum(sizes, TINY**2)) @ spread
            total += np.concatenate([columns, [factor @ length, self.side * factor.sum()]])
        return total

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """As every statistic's; a tuple adds one vector."""
        del dtype
        return sensitivity_of_sets(self.clip, 1.0, self.shape, norm, grid)


@dataclass(frozen=True)
class TupleContrast(Statistic):
    """In which directions negatives are further from the anchor than the positive is.

    A tuple's contribution is the upper triangle of the symmetric matrix

        mean over negatives of z_n z_n^T  -  z_p z_p^T ,      z = (x - anchor) * scale,

    entries off the diagonal times sqrt(2) so that lengths are those of the matrix, clipped as a whole.
    """

    n_features: int
    size: int
    clip: float
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The upper triangle."""
        return (triangle(self.n_features),)

    def tile_sum(self, rows: Any, order: Orders, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the clipped matrices X^T D X, D diagonal: their lengths follow from X X^T.

        One entry sqrt(2) times (i, j) in place of (i, j) and (j, i): as long in l2, shorter in l1.
        """
        total = np.zeros((self.n_features, self.n_features))
        for X, present in by_role(rows, order):
            negatives = present[:, 2:]
            weights = np.zeros(present.shape)
            weights[:, 2:] = negatives / np.maximum(negatives.sum(axis=1), 1)[:, None]
            weights[:, 1] = -1.0
            weights *= (present[:, 0] & present[:, 2])[:, None]
            U = weights[:, :, None] * X
            flat = X.reshape(-1, X.shape[2])
            factor = shrinking(U, flat, self.clip, norm)
            total += (factor[:, None, None] * U).reshape(-1, X.shape[2]).T @ flat
        return packed((total + total.T) / 2)

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """As every statistic's, where terms may cancel."""
        del dtype
        return sensitivity_of_sets(self.clip, SPREAD, self.shape, norm, grid)


def triangle(d: int) -> int:
    """Entries of a symmetric matrix.

    Examples
    --------
    >>> triangle(3)
    6
    """
    return d * (d + 1) // 2


def packed(matrix: FloatArray) -> FloatArray:
    """A symmetric matrix as one vector of the same length in l2.

    Examples
    --------
    >>> packed(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3)
    array([1.   , 2.828, 3.   ])
    """
    upper = np.triu_indices(len(matrix))
    found: FloatArray = matrix[upper] * np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))
    return found


def unpacked(vector: FloatArray, d: int) -> FloatArray:
    """The symmetric matrix of a vector that `packed` made.

    Examples
    --------
    >>> unpacked(packed(np.array([[1.0, 2.0], [2.0, 3.0]])), 2).round(12)
    array([[1., 2.],
           [2., 3.]])
    """
    upper = np.triu_indices(d)
    matrix = np.zeros((d, d))
    matrix[upper] = vector / np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))
    whole: FloatArray = matrix + np.triu(matrix, 1).T
    return whole
