"""Clipped sums over pairs: all that ever leaves the data, before noise.

Sums are taken tile by tile, and each tile's partial sum is rounded to whole multiples of a public
``grid`` and added as int64. Integer addition is exact, so the total does not depend on the order of the
tiles, on threads or on machines, and zeroing one pair out changes exactly one tile: by the pair's
clipped part, by at most one grid step an entry for the rounding, and by the tile's own floating-point
error (`pairveil.privacy.grid.grid_sensitivity`). That is the whole sensitivity argument
(docs/theory/noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.learning import exact_kernels, kernels, sparse_kernels
from pairveil.learning.losses import ContrastiveLoss, PairLoss
from pairveil.pairs.pairset import PairSet
from pairveil.privacy.grid import Norm, grid_sensitivity, to_grid

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = NDArray[np.int8]

TILE = 1024
"""Pairs summed in floating point before rounding (their error is charged by `grid_sensitivity`)."""


TINY_LENGTH = 1e-140
"""A pair whose difference or distance is shorter contributes nothing, here as in the compiled loop."""


class Statistic(Protocol):
    """What is summed: each pair's part, clipped as a whole."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum."""
        ...

    def tile_sum(self, gaps: Any, labels: Labels, clip: float, norm: Norm) -> FloatArray:
        """Sum of the clipped parts of a tile's pairs (``gaps`` holds their differences)."""
        ...


def clipped_sum(
    data: PairSet,
    rows: IntArray | None,
    statistic: Statistic,
    clip: float,
    norm: Norm,
    grid: float,
    *,
    scale: FloatArray | None = None,
    compiled: bool = True,
    separately: bool = False,
) -> IntArray:
    """Sum a statistic over pairs, in whole multiples of ``grid``.

    Parameters
    ----------
    data : PairSet
    rows : int array or None
        The pairs in this batch; None is all of them.
    statistic : Statistic
    clip, norm
        No pair's part is longer than this.
    grid : float
        Unit of the result, a power of two.
    scale : array of shape (d,), optional
        Differences are multiplied by it, column by column, before anything else.
    compiled : bool
        Use the compiled loop where there is one. Results differ within `reach` only.
    separately : bool
        Round every pair on its own. A Poisson sample needs it: whether a null pair was drawn must not
        even move its neighbours into other tiles.

    Returns
    -------
    int64 array of the statistic's shape
    """
    assert data.labels is not None
    if compiled and is_compilable(data, statistic):
        assert isinstance(statistic, LossGradient)
        return statistic.compiled_sum(data, rows, clip, norm, grid, scale, separately)
    total = np.zeros(statistic.shape, dtype=np.int64)
    for tile in _tiles(data, rows, 1 if separately else TILE):
        gaps = data.differences(tile).astype(np.float64, copy=False)
        if scale is not None:
            gaps = scaled(gaps, scale)
        total += to_grid(statistic.tile_sum(gaps, data.labels[tile], clip, norm), grid)
    return total


def reach(
    statistic: Statistic, clip: float, norm: Norm, grid: float, dtype: Any = np.float64
) -> float:
    """How far zeroing one pair out can move ``grid * clipped_sum``, by either way of summing.

    Parameters
    ----------
    statistic, clip, norm, grid
        As in `clipped_sum`.
    dtype : float32 or float64
        Of the features. Gradients of float32 features are multiplied in float32, which errs more.

    Examples
    --------
    >>> gradient = LossGradient(np.eye(2), ContrastiveLoss(1.0), (1.0, 1.0), np.ones(2))
    >>> [round(reach(gradient, 1.0, "l2", 2.0**-31, kind), 4) for kind in (np.float64, np.float32)]
    [1.0, 1.002]
    """
    n_entries = math.prod(statistic.shape)
    # Floating-point error goes with the terms that are added up, which may exceed what they add up to.
    terms = max(clip, getattr(statistic, "largest_term", 0.0))
    bound = grid_sensitivity(terms, grid, n_entries, norm, tile=TILE) - terms + clip
    if isinstance(statistic, LossGradient):
        k, d = statistic.W.shape
        more = kernels.tile_error_bound(kernels.TILE, d, k, clip, dtype, grid=grid, norm=norm)
        bound = max(bound, clip + more)
    return bound


def is_compilable(data: PairSet, statistic: Statistic) -> bool:
    """Whether a compiled loop covers this: contrastive gradients of dense rows or of clean CSR."""
    if not (isinstance(statistic, LossGradient) and isinstance(statistic.loss, ContrastiveLoss)):
        return False
    if sparse.issparse(data.features):
        # Each column once a row: or else a row's norm would not be the norm of its numbers.
        return data.features.format == "csr" and bool(data.features.has_canonical_format)
    return bool(data.features.flags.c_contiguous)


def _tiles(data: PairSet, rows: IntArray | None, size: int) -> Iterator[Any]:
    """Cut the wanted pairs into tiles; the cut depends on positions only, never on contents."""
    if rows is None:
        yield from data.blocks(size)
        return
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def row_norms(rows: Any, norm: Norm = "l2") -> FloatArray:
    """Length of each row, dense or sparse."""
    if sparse.issparse(rows):
        power = abs(rows) if norm == "l1" else rows.multiply(rows)
        sums = np.asarray(power.sum(axis=1), dtype=np.float64).ravel()
    elif norm == "l1":
        sums = np.abs(rows).sum(axis=1)
    else:
        sums = np.einsum("ij,ij->i", rows, rows)
    return sums if norm == "l1" else np.sqrt(sums)


def shrink(lengths: FloatArray, clip: float) -> FloatArray:
    """Factor that brings each length to at most ``clip`` (1 where it is shorter already).

    Examples
    --------
    >>> shrink(np.array([0.5, 4.0]), clip=1.0)
    array([1.  , 0.25])
    """
    factor: FloatArray = clip / np.maximum(lengths, clip)
    return factor


@dataclass(frozen=True)
class LossGradient:
    """The gradient in W of a loss of D = ||W (scale * dx)||, weighted by kind of pair.

    Parameters
    ----------
    W : array of shape (k, d)
    loss : PairLoss
    weights : (float, float)
        Public weights of similar and of dissimilar pairs.
    scale : array of shape (d,)
        Columns are multiplied by it first: public, or released already.
    """

    W: FloatArray
    loss: PairLoss
    weights: tuple[float, float]
    scale: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of W."""
        return self.W.shape

    def tile_sum(self, gaps: Any, labels: Labels, clip: float, norm: Norm) -> FloatArray:
        """``(s o P)^T dX``: two matrix products, no gradient of a single pair is ever formed."""
        gaps = scaled(gaps, self.scale)
        projected = np.asarray(gaps @ self.W.T)
        distance = row_norms(projected)
        factor = self.loss.coefficient(distance, labels) * np.where(labels > 0, *self.weights)
        # Squares of such small numbers underflow: D would come out too small and c = (D - m)/D too large.
        factor *= (distance > TINY_LENGTH) & (row_norms(gaps) > TINY_LENGTH)
        # ||G||_F = |c| D ||dx||_2 and ||G||_1 = |c| ||W dx||_1 ||dx||_1 (THEORY.md section 1).
        factor *= shrink(np.abs(factor) * row_norms(projected, norm) * row_norms(gaps, norm), clip)
        weighted = factor[:, None] * projected
        return np.asarray((gaps.T @ weighted).T) if sparse.issparse(gaps) else weighted.T @ gaps

    def compiled_sum(
        self,
        data: PairSet,
        rows: IntArray | None,
        clip: float,
        norm: Norm,
        grid: float,
        scale: FloatArray | None = None,
        separately: bool = False,
    ) -> IntArray:
        """The whole sum by a compiled loop, for dense or for sparse features."""
        add_up: Any
        if sparse.issparse(data.features):
            add_up = sparse_kernels.clipped_sum  # rounds every pair on its own anyway
        else:
            add_up = exact_kernels.clipped_sum if separately else kernels.clipped_sum
        total: IntArray = add_up(
            data.features,
            data.pairs,
            data.labels,
            rows,
            self.W,
            **self._compiled_options(clip, norm, grid, scale),
        )
        return total

    def compiled_descent(
        self,
        data: PairSet,
        batches: tuple[IntArray, IntArray],
        noise: FloatArray,
        rate: float,
        clip: float,
        norm: Norm,
        grid: float,
        scale: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Several steps by the compiled loop for dense features: W behind them, and the noisy sums."""
        assert data.labels is not None
        return exact_kernels.descend(
            data.features,
            data.pairs,
            data.labels,
            batches,
            self.W,
            noise,
            rate,
            **self._compiled_options(clip, norm, grid, scale),
        )

    def _compiled_options(
        self, clip: float, norm: Norm, grid: float, scale: FloatArray | None
    ) -> dict[str, Any]:
        assert isinstance(self.loss, ContrastiveLoss)
        return {
            "margin": self.loss.margin,
            "clip": clip,
            "grid": grid,
            "norm": norm,
            "scale": self.scale if scale is None else self.scale * scale,
            "weight_similar": self.weights[0],
            "weight_dissimilar": self.weights[1],
        }


def scaled(gaps: Any, scale: FloatArray) -> Any:
    """Columns multiplied by ``scale``, dense or CSR."""
    if not sparse.issparse(gaps):
        return gaps * scale
    values = gaps.data * scale[gaps.indices]
    return sparse.csr_array((values, gaps.indices, gaps.indptr), shape=gaps.shape)
