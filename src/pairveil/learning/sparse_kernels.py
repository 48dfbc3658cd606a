"""The clipped sum of contrastive gradients over sparse rows (CSR), as exact integers.

Nothing is densified: a pair costs k operations for each column in which it differs, and the only dense
arrays are W and the sum, both turned so that a column's k numbers lie together.

Each pair is its own tile (`pairveil.learning.kernels`): its clipped gradient is rounded to the grid entry by
entry and added as a whole number. All arithmetic is float64, whatever the type of the features. Hence
zeroing a pair takes away exactly what it had added, at most C (1 + eta) and half a grid unit an entry:
less than `kernels.tile_error_bound` with any tile, which therefore bounds this loop too.

Whole numbers are first added up as float64, which vectors can do, and moved to 64-bit integers before
any of them can reach 2^53: below, float64 adds whole numbers without error.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.learning.kernels import check_sum, clip_factor
from pairveil.learning.tiles import over_tiles

_SHARE = 128  # pairs that go to one thread together


@njit(cache=True, nogil=True)
def _difference(values, columns, starts, left, right, scale, where, x):  # type: ignore[no-untyped-def]
    """Merge two rows: the columns in which they differ, and the scaled differences; how many."""
    i, end_i = starts[left], starts[left + 1]
    j, end_j = starts[right], starts[right + 1]
    count = 0
    while i < end_i or j < end_j:
        if j >= end_j or (i < end_i and columns[i] < columns[j]):
            column, value = columns[i], np.float64(values[i])
            i += 1
        elif i >= end_i or columns[j] < columns[i]:
            column, value = columns[j], -np.float64(values[j])
            j += 1
        else:
            column, value = columns[i], np.float64(values[i]) - np.float64(values[j])
            i += 1
            j += 1
        where[count], x[0, count] = column, value * scale[column]
        count += 1
    return count


@njit(cache=True, nogil=True)
def _project(w, where, x, count, p):  # type: ignore[no-untyped-def]
    """p = W dx, from the columns in which the pair differs."""
    p[:] = 0.0
    for c in range(count):
        column, value = w[where[c]], x[0, c]
        for r in range(w.shape[1]):
            p[0, r] += column[r] * value


@njit(cache=True, nogil=True)
def _add(total, where, x, count, p, per_grid):  # type: ignore[no-untyped-def]
    """Add the pair's gradient p dx^T, entry by entry in whole units (per_grid is a power of two)."""
    for c in range(count):
        column, value = total[where[c]], x[0, c] * per_grid
        for r in range(total.shape[1]):
            column[r] += np.rint(p[0, r] * value)


@njit(cache=True, nogil=True)
def _move(recent, total):  # type: ignore[no-untyped-def]
    """Take what was added lately over to the integers."""
    for column in range(total.shape[0]):
        for r in range(total.shape[1]):
            total[column, r] += np.int64(recent[column, r])
            recent[column, r] = 0.0


@njit(cache=True, nogil=True)
def _sum_rows(  # type: ignore[no-untyped-def]
    values, columns, starts, longest, scale, pairs, labels, rows, every, first, last, w, margin,
    weights, clip, l1, per_grid, room,
):  # fmt: skip
    """Integer sum, (d, k), over places first..last of ``rows`` (of all pairs if ``every``).

    ``room`` is how many pairs' whole numbers float64 adds up without error.
    """
    total, recent = np.zeros(w.shape, dtype=np.int64), np.zeros(w.shape)
    where, x = np.empty(longest, dtype=np.uint32), np.empty((1, longest))
    p = np.empty((1, w.shape[1]))
    n_people, added = starts.size - 1, 0
    for place in range(first, last):
        row = place if every else rows[place]
        if not 0 <= row < pairs.shape[0]:
            return total, False
        left, right = pairs[row, 0], pairs[row, 1]
        if min(left, right) < 0 or max(left, right) >= n_people:
            return total, False
        count = _difference(values, columns, starts, left, right, scale, where, x)
        _project(w, where, x, count, p)
        s, _ = clip_factor(labels[row] > 0, x[:, :count], p, 0, margin, weights, clip, l1)
        if s == 0.0:
            continue
        for r in range(w.shape[1]):
            p[0, r] = s * p[0, r]
        _add(recent, where, x, count, p, per_grid)
        added += 1
        if added == room:
            _move(recent, total)
            added = 0
    _move(recent, total)
    return total, True


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
        As in `pairveil.learning.kernels.clipped_sum`.

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
        result: tuple[NDArray[np.int64], bool] = _sum_rows(
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
