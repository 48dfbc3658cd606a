"""The clipped sum of contrastive gradients over groups, as exact integers.

Groups are taken in tiles. Their people are gathered and centred, projected by one matrix product, weighed
group by group (`_pull`, `_shrinking`) and summed by a second matrix product, which is rounded to the grid.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.engine.kernels.dense import Options, checked
from pairveil.engine.kernels.tiles import add_up

TILE = 32
SPREAD = 256.0
"""Terms of a group may add up to so many clip bounds before they cancel; others are shrunk further."""
TINY = 1e-140
"""Pairs at a smaller distance, and groups whose terms are smaller, contribute nothing."""
HUGE = 1e50
"""Groups with a longer row contribute nothing: squares of such numbers overflow."""

# As in `loops`: nothing is allocated for a group; sums may be taken in any order, the error bounds allow it.
reordered = njit(cache=True, nogil=True, _nrt=False, fastmath={"reassoc", "contract"})


def gram_error(m: int, d: int, k: int) -> float:
    """Bound on the rounding error of ``sum (A A^T) o (X X^T)``, relative to (sum |a_i| |x_i|)^2.

    Each Gram entry errs by (d + 1) u and (k + 1) u relative to its rows' lengths, their products and the sum
    of m^2 of them by (m^2 + 2) u; the factor of 4 covers second order and the lengths' own errors.

    Examples
    --------
    >>> gram_error(8, 64, 10) < 1e-12
    True
    """
    return 4 * (d + k + m * m + 16) * 2.0**-53


def clipped_sum(
    features: NDArray[np.floating],
    members: NDArray[np.int64],
    labels: NDArray[np.int8],
    rows: NDArray[np.int64] | None,
    W: NDArray[np.float64],
    *,
    tile: int = TILE,
    threads: int | None = None,
    **options: Unpack[Options],
) -> NDArray[np.int64]:
    """Sum the clipped mean gradients of some groups, in whole multiples of ``grid``.

    Parameters
    ----------
    features : array of shape (n, d)
    members : int64 array of shape (G, m)
        -1 is nobody.
    labels : int8 array of shape (G, m (m - 1) / 2)
    rows, W, tile, threads, options
        As in `pairveil.engine.kernels.dense.clipped_sum`, of groups in place of pairs.

    Returns
    -------
    int64 array of shape (k, d)

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> total = clipped_sum(X, np.array([[0, 1]]), np.array([[1]], dtype=np.int8), None, np.eye(2),
    ...     margin=1.0, clip=5.0, grid=2.0**-30)
    >>> (total * 2.0**-30).round(6)
    array([[1.8, 2.4],
           [2.4, 3.2]])
    """
    (k, d), m = W.shape, members.shape[1]
    n = len(members) if rows is None else len(rows)
    scale, loss = checked(d, np.float64, members, labels, W, n, **options)
    columns = np.ascontiguousarray(W.T, dtype=np.float64)
    behind = (tile, columns, *loss, gram_error(m, d, k), 1.0 / options["grid"])
    return add_up(
        sum_groups, (features, scale, members, labels), behind, rows, n, tile, threads, (k, d)
    )


@njit(cache=True, nogil=True)
def sum_groups(  # type: ignore[no-untyped-def]
    features, scale, members, labels, rows, every, first, last, tile, w, margin, weights, clip, l1,
    error, per_grid,
):  # fmt: skip
    """Integer sum over places first..last of ``rows`` (of all groups if ``every``), tile by tile.

    ``w`` is (d, k). Returns the sum, and whether every index was within its array.
    """
    (d, k), m = w.shape, members.shape[1]
    room = min(tile, last - first) * m
    x, y, sums = np.empty((room, d)), np.empty((room, k)), np.empty((k, d))
    pulled, line = np.empty((m, k)), np.empty(max(d, k))
    total = np.zeros((k, d), dtype=np.int64)
    for start in range(first, last, tile):
        n = min(tile, last - start)
        for b in range(n):
            row = start + b if every else rows[start + b]
            if not 0 <= row < members.shape[0]:
                return total, False
            if not _gather(features, scale, members, row, x, b * m, line):
                return total, False
        people, found = x[: n * m], y[: n * m]
        np.dot(people, w, found)
        for b in range(n):
            row, at = start + b if every else rows[start + b], b * m
            live = _pull(y, at, labels, row, margin, weights, pulled, line)
            s = _shrinking(pulled, x, at, live, clip, l1, error)
            for i in range(m):
                for r in range(k):
                    y[at + i, r] = s * pulled[i, r] if s > 0.0 else 0.0
                if s == 0.0:  # both: 0 times infinity is not 0
                    x[at + i] = 0.0
        np.dot(found.T, people, sums)
        for r in range(k):
            for j in range(d):
                total[r, j] += np.int64(np.rint(sums[r, j] * per_grid))
    return total, True


@reordered
def _gather(features, scale, members, row, x, at, mean):  # type: ignore[no-untyped-def]
    """Put a group's people into ``x``, scaled, and take the mean row off; nobody is the zero row."""
    m, d = members.shape[1], x.shape[1]
    mean[:] = 0.0
    for i in range(m):
        person = members[row, i]
        if person >= features.shape[0]:
            return False
        if person < 0:
            x[at + i] = 0.0
            continue
        for j in range(d):
            x[at + i, j] = features[person, j] * scale[j]
            mean[j] += x[at + i, j]
    for j in range(d):
        mean[j] /= m
    for i in range(m):
        for j in range(d):
            x[at + i, j] -= mean[j]
    return True


@reordered
def _pull(y, at, labels, row, margin, weights, pulled, apart):  # type: ignore[no-untyped-def]
    """L Y of a group, from its projections Y, times the number of its labelled pairs, which is returned."""
    m, k = pulled.shape
    live, slot = 0, 0
    pulled[:] = 0.0
    for i in range(m):
        for h in range(i + 1, m):
            label = labels[row, slot]
            slot += 1
            if label == 0:
                continue
            live += 1
            square = 0.0
            for r in range(k):
                apart[r] = y[at + i, r] - y[at + h, r]
                square += apart[r] * apart[r]
            distance = np.sqrt(square)
            if not distance > TINY or (label < 0 and not distance < margin):
                continue
            factor = weights[0] if label > 0 else weights[1] * (distance - margin) / distance
            for r in range(k):
                pulled[i, r] += factor * apart[r]
                pulled[h, r] -= factor * apart[r]
    return live


@reordered
def _dot(a, i, h):  # type: ignore[no-untyped-def]
    """Product of two rows."""
    total = 0.0
    for j in range(a.shape[1]):
        total += a[i, j] * a[h, j]
    return total


@reordered
def _size(a, i):  # type: ignore[no-untyped-def]
    """Sum of a row's absolute values."""
    total = 0.0
    for j in range(a.shape[1]):
        total += abs(a[i, j])
    return total


@reordered
def _shrinking(a, x, at, live, clip, l1, error):  # type: ignore[no-untyped-def]
    """Factor that brings A^T X / live below the clip, from two Gram matrices; 0 where that is unsure."""
    terms, square = 0.0, 0.0
    for i in range(a.shape[0]):
        if l1:
            size_a, size_x = _size(a, i), _size(x, at + i)
        else:
            for h in range(i):
                square += 2.0 * _dot(a, i, h) * _dot(x, at + i, at + h)
            square_a, square_x = _dot(a, i, i), _dot(x, at + i, at + i)
            square += square_a * square_x
            size_a, size_x = np.sqrt(square_a), np.sqrt(square_x)
        if not (size_a < HUGE and size_x < HUGE):
            return 0.0
        terms += size_a * size_x
    if not terms > TINY:
        return 0.0
    longest = terms * (1.0 + 2.0**-30) if l1 else np.sqrt(max(square, 0.0) + error * terms**2)
    return clip / max(longest, terms / SPREAD, clip * live)
