"""The clipped sum of contrastive gradients over sparse rows (CSR), as exact integers.

Nothing is densified: a pair costs k operations for each column in which it differs, and the only dense
arrays are W and the sum, both turned so that a column's k numbers lie together. Each pair is rounded to the
grid on its own, in float64; `tile_error_bound` covers it: docs/theory/sums.md, 'Sparse rows'.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.kernels.dense import Options, checked
from pairveil.engine.kernels.loops import sum_sparse
from pairveil.engine.kernels.tiles import add_up
from pairveil.errors import InputError

_SHARE = 128  # pairs that go to one thread together


def clipped_sum(
    features: Any,
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    rows: NDArray[Any] | None,
    weights: NDArray[Any],
    *,
    threads: int | None = None,
    **options: Unpack[Options],
) -> NDArray[np.int64]:
    """Sum the clipped contrastive gradients of some pairs, in whole multiples of ``grid``.

    Parameters
    ----------
    features : scipy CSR array or matrix of shape (n, d)
        In canonical format (each column once a row, ascending).
    pairs, labels, rows, weights, threads, options
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
    columns, loss = checked(d, np.float64, pairs, labels, weights, n, **options)
    turned = np.ascontiguousarray(weights.T, dtype=np.float64)
    longest = max(1, 2 * int(np.diff(features.indptr).max()))
    # A pair adds at most this to an entry (`checked`). One alone is a whole number however large.
    room = max(1, int(2.0**53 / (1.1 * options["clip"] / options["grid"] + 1.0)))
    table = (features.data, features.indices, features.indptr, longest, columns, pairs, labels)
    behind = (turned, *loss, 1.0 / options["grid"], room)
    total = add_up(sum_sparse, table, behind, rows, n, _SHARE, threads, turned.shape)
    return np.ascontiguousarray(total.T)
