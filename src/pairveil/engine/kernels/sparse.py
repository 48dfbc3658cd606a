"""The clipped sum of contrastive gradients over sparse rows (CSR), as exact integers.

Nothing is densified: a pair costs k operations for each column in which it differs, and the only dense
arrays are W and the sum, both turned so that a column's k numbers lie together. Each pair is rounded to the
grid on its own, in float64; `tile_error_bound` covers it: docs/theory/sums.md, 'Sparse rows'.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.kernels.dense import check_sum
from pairveil.engine.kernels.loops import sum_sparse
from pairveil.engine.kernels.tiles import over_tiles
from pairveil.errors import InputError

_SHARE = 128  # pairs that go to one thread together


def clipped_sum(
    features: Any,
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    rows: NDArray[Any] | None,
    weights: NDArray[Any],
    *,
    margin: float,
    clip: float,
    grid: float,
    norm: Literal["l2", "l1"] = "l2",
    scale: NDArray[Any] | None = None,
    weight_similar: float = 1.0,
    weight_dissimilar: float = 1.0,
    threads: int | None = None,
) -> NDArray[np.int64]:
    """Sum the clipped contrastive gradients of some pairs, in whole multiples of ``grid``.

    Parameters
    ----------
    features : scipy CSR array or matrix of shape (n, d)
        In canonical format (each column once a row, ascending).
    pairs, labels, rows, weights, margin, clip, grid, norm, scale, weight_similar, weight_dissimilar, threads
        As in `pairveil.engine.kernels.dense.clipped_sum`.

    Returns
    -------
    ndarray of int64, shape (k, d)

    Examples
    --------
    >>> from scipy import sparse
    >>> X = sparse.csr_array([[0.0, 0.0], [3.0, 4.0]])
    >>> total = clipped_sum(X, np.array([[1, 0]]), np.array([1], dtype=np.int8), None,
    ...                     np.eye(2), margin=1.0, clip=5.0, grid=2.0**-30)
    >>> total * 2.0**-30
    array([[1.8, 2.4],
           [2.4, 3.2]])
    """
    n = len(pairs) if rows is None else len(rows)
    d = features.shape[1]
    if not features.has_canonical_format:
        raise InputError("sparse features need each column once a row: call sum_duplicates() first")
    check_sum(d, weights, clip, grid, n)
    if len(labels) != len(pairs):
        raise InputError("there must be one label for each pair")
    columns = np.ones(d) if scale is None else np.ascontiguousarray(scale, dtype=np.float64)
    if columns.shape != (d,):
        raise InputError("the scale needs one number for each feature")
    chosen = np.empty(0, dtype=np.int64) if rows is None else np.asarray(rows)
    turned = np.ascontiguousarray(weights.T, dtype=np.float64)
    longest = max(1, 2 * int(np.diff(features.indptr).max()))
    # A pair adds at most this to an entry (`check_sum`). One alone is a whole number however large.
    room = max(1, int(2.0**53 / (1.1 * clip / grid + 1.0)))

    def part(first: int, last: int) -> tuple[NDArray[np.int64], bool]:
        result: tuple[NDArray[np.int64], bool] = sum_sparse(
            features.data, features.indices, features.indptr, longest, columns, pairs, labels,
            chosen, rows is None, first, last, turned, float(margin),
            (float(weight_similar), float(weight_dissimilar)), float(clip), norm == "l1", 1.0 / grid,
            room,
        )  # fmt: skip
        return result

    total, sound = over_tiles(part, n, _SHARE, threads, turned.shape)
    if not sound:
        raise InputError("a pair or a row index is outside its table")
    return np.ascontiguousarray(total.T)
