"""Gradients of a pair loss as a statistic: each has rank one, so the sum is taken without forming any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine.kernels import dense as kernels
from pairveil.engine.kernels import exact_sums as exact_kernels
from pairveil.engine.kernels import sparse as sparse_kernels
from pairveil.engine.losses import ContrastiveLoss, PairLoss
from pairveil.engine.statistics import Labels, Statistic, row_norms, shrink
from pairveil.privacy.grid import Norm

TINY_LENGTH = 1e-140
"""A pair whose difference or distance is shorter contributes nothing, here as in the compiled loop."""


@dataclass(frozen=True)
class LossGradient(Statistic):
    """The gradient in W of a loss of D = ||W (scale * dx)||, weighted by kind of pair.

    Parameters
    ----------
    W : array of shape (k, d)
    weights : (float, float)
        Public weights of similar and of dissimilar pairs.
    scale : array of shape (d,), optional

    Examples
    --------
    >>> gradient = LossGradient(np.eye(2), ContrastiveLoss(1.0), clip=1.0)
    >>> [round(gradient.sensitivity("l2", 2.0**-31, kind), 4) for kind in (np.float64, np.float32)]
    [1.0, 1.002]
    """

    W: FloatArray
    loss: PairLoss
    clip: float
    weights: tuple[float, float] = (1.0, 1.0)
    scale: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of W."""
        return self.W.shape

    def tile_sum(self, differences: Any, labels: Labels, norm: Norm) -> FloatArray:
        """``(s o P)^T dX``: two matrix products, no gradient of a single pair is ever formed."""
        projected = np.asarray(differences @ self.W.T)
        distance = row_norms(projected)
        factor = self.loss.coefficient(distance, labels) * np.where(labels > 0, *self.weights)
        # Squares of such small numbers underflow: D would come out too small and c = (D - m)/D too large.
        factor *= (distance > TINY_LENGTH) & (row_norms(differences) > TINY_LENGTH)
        # ||G||_F = |c| D ||dx||_2 and ||G||_1 = |c| ||W dx||_1 ||dx||_1 (docs/theory/sums.md).
        lengths = np.abs(factor) * row_norms(projected, norm) * row_norms(differences, norm)
        weighted = (factor * shrink(lengths, self.clip))[:, None] * projected
        if sparse.issparse(differences):
            return np.asarray((differences.T @ weighted).T)
        return weighted.T @ differences  # type: ignore[no-any-return]

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """By either way of summing: compiled loops multiply float32 features in float32, which errs more."""
        k, d = self.W.shape
        more = kernels.tile_error_bound(kernels.TILE, d, k, self.clip, dtype, grid=grid, norm=norm)
        return max(super().sensitivity(norm, grid), self.clip + more)

    def is_compilable(self, data: Any) -> bool:
        """Contrastive gradients of dense rows or of clean CSR."""
        if not isinstance(self.loss, ContrastiveLoss):
            return False
        if sparse.issparse(data.features):
            # Each column once a row: or else a row's norm would not be the norm of its numbers.
            return data.features.format == "csr" and bool(data.features.has_canonical_format)
        return bool(data.features.flags.c_contiguous)

    def compiled_sum(
        self, data: Any, rows: IntArray | None, norm: Norm, grid: float, separately: bool
    ) -> IntArray:
        """The whole sum by a compiled loop, for dense or for sparse features."""
        add_up: Any
        if sparse.issparse(data.features):
            add_up = sparse_kernels.clipped_sum  # rounds every pair on its own anyway
        else:
            add_up = exact_kernels.clipped_sum if separately else kernels.clipped_sum
        options = self._compiled_options(norm, grid)
        total: IntArray = add_up(data.features, data.pairs, data.labels, rows, self.W, **options)
        return total

    def compiled_descent(
        self,
        data: Any,
        batches: tuple[IntArray, IntArray],
        noise: FloatArray,
        rate: float,
        norm: Norm,
        grid: float,
    ) -> tuple[FloatArray, FloatArray]:
        """Several steps by the compiled loop for dense features: W after the last, and all noisy sums."""
        table = (data.features, data.pairs, data.labels)
        options = self._compiled_options(norm, grid)
        return exact_kernels.descend(*table, batches, self.W, noise, rate, **options)

    def _compiled_options(self, norm: Norm, grid: float) -> dict[str, Any]:
        assert isinstance(self.loss, ContrastiveLoss)
        return {
            "margin": self.loss.margin,
            "clip": self.clip,
            "grid": grid,
            "norm": norm,
            "scale": np.ones(self.W.shape[1]) if self.scale is None else self.scale,
            "weight_similar": self.weights[0],
            "weight_dissimilar": self.weights[1],
        }
