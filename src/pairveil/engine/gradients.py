"""Gradients of a loss of the distances inside a record: a pair, a group of people, a tuple.

A loss depends on W through the members' projections P = X W^T alone, so its gradient in W is ``U^T X`` with
U = df/dP: no gradient of a single record is ever formed. X holds rows from an origin inside the record (a
loss of distances does not see where it is): one row, the difference, where the record is a pair; all m rows
about their mean for a group and from the anchor for a tuple. Lengths come from m x m Gram matrices,

    ||G||_F^2 = sum_ij <U_i, U_j> <X_i, X_j>,        ||G||_1 <= sum_i ||U_i||_1 ||X_i||_1,

and from one product of two lengths where X has one row (docs/theory/noise.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine import kernels
from pairveil.engine.losses import ContrastiveLoss, PairLoss, TupleLoss
from pairveil.engine.statistics import TILE, Statistic, dense_rows, row_norms, shrink
from pairveil.privacy.grid import CLIP_ERROR, UNIT_ROUNDOFF, Norm

MOST_ROWS = 64  # members of a record: rounding errors of larger ones are outside the proof
SPREAD = 256.0  # clip bounds that a record's terms may add up to before they cancel; or it is shrunk further
TINIEST = 1e-140  # records whose terms are smaller contribute nothing
LARGEST = 1e50  # nor do those with a longer row: squares of such numbers overflow
AT_ONCE = (
    1 << 20
)  # numbers of features that are looked at together: sparse rows are made dense in parts


@dataclass(frozen=True)
class SetGradient(Statistic):
    """The gradient in W of a loss of the distances inside each record, clipped record by record.

    A `PairLoss` is of D = ||W (scale * dx)||; ``weights`` are the public ones of similar and dissimilar
    pairs, and a group contributes the mean over its labelled pairs. Groups and tuples need their ``size``,
    the most members of a record.
    """

    W: FloatArray
    loss: PairLoss | TupleLoss
    clip: float
    weights: tuple[float, float] = (1.0, 1.0)
    scale: FloatArray | None = None
    size: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of W."""
        return self.W.shape

    def tile_sum(self, contents: Any, labels: Any, norm: Norm) -> FloatArray:
        """Sum of the clipped gradients of some records: two matrix products for all of them.

        Contents are (t, d) differences of pairs, (t, m, d) people of groups, or (t * m, d) members of tuples;
        labels those of the pairs, (t,) or (t, m (m - 1) / 2), or orders of roles (t, m).
        """
        k, total = len(self.W), np.zeros(self.shape)
        for rows, told in self._rows(contents, labels):
            with np.errstate(over="ignore", invalid="ignore"):
                P = np.asarray(rows @ self.W.T).reshape(len(told), -1, k)
                U = self.loss.pull(P, told, self.weights)
                factor = shrinking(U, rows, self.clip, norm)
                found = _product(factor[:, None, None] * U, rows)
            if not np.isfinite(found).all():  # 0 times infinity is not 0
                U = np.where(factor[:, None, None] > 0, factor[:, None, None] * U, 0.0)
                found = _product(U, _without(rows, np.repeat(factor == 0, U.shape[1])))
            total += found
        return total

    def _rows(self, contents: Any, labels: Any) -> Iterator[tuple[Any, Any]]:
        """Rows from each record's origin, (t * r, d), and what is said of it."""
        if isinstance(self.loss, PairLoss) and contents.ndim == 2:
            yield contents, labels
            return
        self._refuse_unsized()
        if isinstance(self.loss, TupleLoss):
            for X, present in by_role(contents, labels):
                yield X.reshape(-1, X.shape[2]), present
        else:  # about the mean, where rows are shortest: the bound in l1 depends on the origin
            with np.errstate(over="ignore", invalid="ignore"):
                centred = contents - contents.mean(axis=1, keepdims=True)
            yield centred.reshape(-1, contents.shape[2]), labels

    def _refuse_unsized(self) -> None:
        """Records of many rows have another `sensitivity`, which follows from ``size``."""
        if self.size is None:
            raise ValueError(
                "groups and tuples need the size of a record: SetGradient(..., size=m)"
            )

    def sensitivity(self, norm: Norm, grid: float, dtype: Any = np.float64) -> float:
        """How far emptying one record moves the sum, rounding included, by whichever way it is summed.

        Compiled loops over pairs multiply float32 features in float32, which errs more.
        """
        if self.size is not None:
            return sensitivity_of_sets(self.clip, SPREAD, self.shape, norm, grid)
        k, d = self.W.shape
        more = kernels.tile_error_bound(kernels.TILE, d, k, self.clip, dtype, grid=grid, norm=norm)
        return max(super().sensitivity(norm, grid), self.clip + more)

    def is_compilable(self, data: Any) -> bool:
        """Contrastive gradients of pairs, with dense rows or clean CSR."""
        if not isinstance(self.loss, ContrastiveLoss) or data.labels.ndim == 2:
            return False
        if sparse.issparse(data.features):
            # Each column once a row: or else a row's norm would not be the norm of its numbers.
            return data.features.format == "csr" and bool(data.features.has_canonical_format)
        return bool(data.features.flags.c_contiguous)

    def compiled_sum(
        self, data: Any, rows: IntArray | None, norm: Norm, grid: float, separately: bool
    ) -> IntArray:
        """The whole sum by a compiled loop."""
        table = (data.features, data.members, data.labels)
        options = self._options(norm, grid)
        return kernels.gradient_sum(*table, rows, self.W, separately=separately, **options)

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
        table, options = (data.features, data.pairs, data.labels), self._options(norm, grid)
        return kernels.descend(*table, batches, self.W, noise, rate, **options)

    def _options(self, norm: Norm, grid: float) -> kernels.Options:
        assert isinstance(self.loss, ContrastiveLoss)
        return {
            "margin": self.loss.margin,
            "clip": self.clip,
            "grid": grid,
            "norm": norm,
            "scale": self.scale,
            "weights": self.weights,
        }


def by_role(rows: Any, order: NDArray[np.int8]) -> Iterator[tuple[FloatArray, NDArray[np.bool_]]]:
    """Members' rows (T, m, d) with the anchor at 0, by role, and who is there (T, m); some tuples at a time.

    Whoever plays no part has a row of zeros.
    """
    n, m = order.shape
    step = max(1, AT_ONCE // max(1, m * rows.shape[1]))
    for start in range(0, n, step):
        parts = order[start : start + step]
        chosen = np.maximum(parts, 0) + m * np.arange(start, start + len(parts))[:, None]
        X = dense_rows(rows[chosen.ravel()]).reshape(*parts.shape, -1)
        present = parts >= 0
        yield (X - X[:, :1]) * present[:, :, None], present


def shrinking(U: FloatArray, rows: Any, clip: float, norm: Norm) -> FloatArray:
    """What brings each record's ``U^T X`` to length ``clip`` at most, and its terms to `SPREAD` clips.

    U is (t, r, k), X of all records (t * r, d). With r = 1 the length is a product of two, and exact. Else in
    l2 it is computed from sums of products whose rounding is bounded by the terms' lengths; as much is
    added to it, so that no contribution comes out longer than it is counted. 0 where lengths are too
    small or too large for their squares: such a record contributes nothing.
    """
    (t, r, k), d = U.shape, rows.shape[1]
    long_u, long_x = row_norms(U.reshape(-1, k), norm), row_norms(rows, norm)
    terms: FloatArray = (long_u * long_x).reshape(t, r).sum(axis=1)
    if r == 1:
        longest = terms
    elif norm == "l1":
        longest = terms * (1 + CLIP_ERROR)
    else:
        X = rows.reshape(t, r, d)
        gram = ((U @ U.transpose(0, 2, 1)) * (X @ X.transpose(0, 2, 1))).sum(axis=(1, 2))
        longest = np.sqrt(np.maximum(gram, 0.0) + gram_error(r, d, k) * terms**2)
        longest = np.maximum(longest, terms / SPREAD)
    sure = ((long_u < LARGEST) & (long_x < LARGEST)).reshape(t, r).all(axis=1) & (terms > TINIEST)
    return np.where(sure, shrink(longest, clip), 0.0)


def gram_error(m: int, d: int, k: int) -> float:
    """Bound on the rounding error of ``sum (A A^T) o (X X^T)``, relative to (sum |a_i| |x_i|)^2.

    Each Gram entry errs by (d + 1) u and (k + 1) u relative to its rows' lengths, their products and the sum
    of m^2 of them by (m^2 + 2) u; the factor of 4 covers second order and the lengths' own errors.
    """
    return 4 * (d + k + m * m + 16) * UNIT_ROUNDOFF


def sensitivity_of_sets(
    clip: float, spread: float, shape: tuple[int, ...], norm: Norm, grid: float
) -> float:
    """What one record with many rows moves of a sum ('Records of several rows' of docs/theory/noise.md).

    The terms of a record add up to ``spread`` clip bounds at most before they cancel; a tile adds up
    `MOST_ROWS` terms of each of its TILE records, in both worlds, and is rounded to the grid once.
    """
    terms = TILE * MOST_ROWS * UNIT_ROUNDOFF
    tile = 2 * terms / (1 - terms) * TILE * spread
    entries = math.prod(shape)
    width = entries if norm == "l1" else math.sqrt(entries)
    return clip * (1 + CLIP_ERROR + tile) + grid * width


def _product(U: FloatArray, rows: Any) -> FloatArray:
    """``U^T X`` over the rows of all records."""
    flat = U.reshape(-1, U.shape[2])
    return np.asarray((rows.T @ flat).T) if sparse.issparse(rows) else flat.T @ rows


def _without(rows: Any, null: NDArray[np.bool_]) -> Any:
    """The same rows, of which some are zero."""
    if sparse.issparse(rows):
        return sparse.diags_array((~null).astype(np.float64)) @ rows
    return np.where(null[:, None], 0.0, rows)
