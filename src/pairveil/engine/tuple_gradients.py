"""Gradients of a tuple loss as a statistic: clipped as a whole, and none is ever formed on its own.

With X the m rows of a tuple's members by role (moved so that the anchor is 0: a Laplacian sees differences
only), P = X W^T and U = L P, the gradient is G = U^T X, of rank m - 1 at most, and

    ||G||_F^2 = sum_ij <U_i, U_j> <X_i, X_j>,        ||G||_1 <= sum_i ||U_i||_1 ||X_i||_1 :

two m x m Gram matrices instead of a matrix of W's shape for each tuple (docs/theory/tuples.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import FloatArray
from pairveil.data.tupleset import MOST
from pairveil.engine.statistics import TILE, Statistic, shrink
from pairveil.engine.tuple_losses import TupleLoss
from pairveil.privacy.grid import MAX_TILE, Norm, grid_sensitivity

Orders = NDArray[np.int8]

CANCELLED = 64.0
"""Terms that add up to a contribution are at most this many clips long in all: their rounding is charged."""
AT_ONCE = 1 << 20
"""Numbers of features that are looked at together: sparse rows are made dense in parts."""


def by_role(rows: Any, order: Orders) -> Iterator[tuple[FloatArray, NDArray[np.bool_]]]:
    """Members' rows (T, m, d) with the anchor at 0, by role, and who is there (T, m); some tuples at a time.

    Whoever plays no part has a row of zeros.

    Examples
    --------
    >>> X, present = next(by_role(np.array([[1.0], [2.0], [4.0]]), np.array([[2, 0, 1]], dtype=np.int8)))
    >>> X[0].ravel().tolist(), present.tolist()
    ([0.0, -3.0, -2.0], [[True, True, True]])
    """
    n, m = order.shape
    step = max(1, AT_ONCE // max(1, m * rows.shape[1]))
    for start in range(0, n, step):
        parts = order[start : start + step]
        chosen = np.maximum(parts, 0) + m * np.arange(start, start + len(parts))[:, None]
        found = rows[chosen.ravel()]
        dense = np.asarray(found.toarray() if sparse.issparse(found) else found, dtype=np.float64)
        X = dense.reshape(*parts.shape, -1)
        present = parts >= 0
        X = (X - X[:, :1]) * present[:, :, None]
        yield X, present


def squared_distances(P: FloatArray) -> FloatArray:
    """Squared distances (T, m, m) of projected members (T, m, k)."""
    apart = P[:, :, None] - P[:, None]
    found: FloatArray = np.einsum("tijk,tijk->tij", apart, apart)
    return found


@dataclass(frozen=True)
class TupleGradient(Statistic):
    """The gradient in W of a loss of a tuple's distances.

    Parameters
    ----------
    W : array of shape (k, d)
    size : int
        Members of a tuple.
    scale : array of shape (d,), optional

    Examples
    --------
    >>> from pairveil.engine.tuple_losses import TripletLoss
    >>> gradient = TupleGradient(np.eye(2), TripletLoss(), clip=1.0, size=3)
    >>> rows = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]])
    >>> gradient.tile_sum(rows, np.array([[0, 1, 2]], dtype=np.int8), "l2")
    array([[ 0.5,  0. ],
           [ 0. , -0.5]])
    """

    W: FloatArray
    loss: TupleLoss
    clip: float
    size: int
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of W."""
        return self.W.shape

    def tile_sum(self, rows: Any, order: Orders, norm: Norm) -> FloatArray:  # type: ignore[override]
        """Sum of the clipped gradients: one product of all members' U with all their rows."""
        total = np.zeros(self.shape)
        for X, present in by_role(rows, order):
            P = X @ self.W.T
            s = self.loss.coefficients(squared_distances(P), present)
            U = laplacian_times(s, P)
            factor = clip_factor(U, X, self.clip, norm) * present[:, 0]
            weighted = (factor[:, None, None] * U).reshape(-1, U.shape[2])
            total += weighted.T @ X.reshape(-1, X.shape[2])
        return total

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """As every statistic's, where each tuple adds up to m terms of up to `CANCELLED` clips in all."""
        del dtype  # sums are taken in float64
        return tuple_sensitivity(self.clip, CANCELLED * self.clip, self, norm, grid)


def tuple_sensitivity(clip: float, terms: float, statistic: Any, norm: Norm, grid: float) -> float:
    """What one tuple moves of a rounded sum whose tiles add ``size`` terms a tuple."""
    n_entries = int(np.prod(statistic.shape))
    tile = min(MAX_TILE, TILE * min(statistic.size, MOST))
    return grid_sensitivity(terms, grid, n_entries, norm, tile=tile) - terms + clip


def laplacian_times(s: FloatArray, P: FloatArray) -> FloatArray:
    """U = L P with the Laplacian L of the coefficients s, (T, m, k)."""
    both = s + s.transpose(0, 2, 1)
    found: FloatArray = both.sum(axis=2)[:, :, None] * P - both @ P
    return found


def clip_factor(U: FloatArray, X: FloatArray, clip: float, norm: Norm) -> FloatArray:
    """What brings each U^T X to length ``clip`` at most, and its terms to `CANCELLED` clips.

    The length in l2 is computed from sums of products whose rounding is bounded by the terms; as much is
    added to it, so that no contribution comes out longer than it is counted.
    """
    if norm == "l1":
        lengths = (np.abs(U).sum(axis=2) * np.abs(X).sum(axis=2)).sum(axis=1)
        return shrink(lengths * (1 + 1e-12), clip)
    terms = np.sqrt((U * U).sum(axis=2) * (X * X).sum(axis=2)).sum(axis=1)
    squared = ((U @ U.transpose(0, 2, 1)) * (X @ X.transpose(0, 2, 1))).sum(axis=(1, 2))
    rounding = (U.shape[2] + X.shape[2] + X.shape[1] ** 2 + 8) * 2.0**-52
    lengths = np.sqrt(np.maximum(squared, 0.0) + 2 * rounding * terms**2)
    return np.minimum(shrink(lengths, clip), shrink(terms, CANCELLED * clip))
