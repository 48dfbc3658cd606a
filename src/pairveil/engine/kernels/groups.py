"""The clipped sum of contrastive gradients over groups, as exact integers.

Groups are taken in tiles. Their people are gathered and centred, projected by one matrix product, weighed
group by group (`_weigh`, the only loop) and summed by a second matrix product, which is rounded to the grid.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.privacy.grid import Norm, to_grid

TILE = 128
SPREAD = 256.0
"""Terms of a group may add up to so many clip bounds before they cancel; others are shrunk further."""
TINY = 1e-140
"""Pairs at a smaller distance, and groups whose terms are smaller, contribute nothing."""
HUGE = 1e50
"""Groups with a longer row contribute nothing: squares of such numbers overflow."""


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
    scale: NDArray[np.float64],
    margin: float,
    weights: tuple[float, float],
    clip: float,
    norm: Norm,
    grid: float,
    tile: int = TILE,
) -> NDArray[np.int64]:
    """Sum the clipped mean gradients of some groups, in whole multiples of ``grid``.

    Parameters
    ----------
    features : array of shape (n, d)
    members : int64 array of shape (G, m)
        -1 is nobody.
    labels : int8 array of shape (G, m (m - 1) / 2)
    rows : int array or None
        Which groups; None is all of them.
    W : array of shape (k, d)
    scale, margin, weights, clip, norm, grid
        As in `pairveil.engine.group_gradients.GroupGradient`.
    tile : int
        Groups rounded together.

    Returns
    -------
    int64 array of shape (k, d)

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> total = clipped_sum(X, np.array([[0, 1]]), np.array([[1]], dtype=np.int8), None, np.eye(2),
    ...     scale=np.ones(2), margin=1.0, weights=(1.0, 1.0), clip=5.0, norm="l2", grid=2.0**-30)
    >>> (total * 2.0**-30).round(6)
    array([[1.8, 2.4],
           [2.4, 3.2]])
    """
    k, d = W.shape
    m, n = members.shape[1], len(members) if rows is None else len(rows)
    total = np.zeros((k, d), dtype=np.int64)
    columns = np.ascontiguousarray(W.T)
    people = np.empty((min(tile, n), m, d))
    for start in range(0, n, tile):
        chosen = (
            np.arange(start, min(start + tile, n)) if rows is None else rows[start : start + tile]
        )
        x = people[: len(chosen)]
        _gather(features, scale, members, chosen, x)
        flat = x.reshape(-1, d)
        y = (flat @ columns).reshape(len(chosen), m, k)
        _weigh(
            x,
            y,
            labels[chosen],
            margin,
            weights[0],
            weights[1],
            clip,
            norm == "l1",
            gram_error(m, d, k),
        )
        total += to_grid(y.reshape(-1, k).T @ flat, grid)
    return total


@njit(cache=True, nogil=True)
def _gather(features, scale, members, chosen, x):  # type: ignore[no-untyped-def]
    """Put each group's people into ``x``, scaled, and take the mean row off; nobody is the zero row."""
    m, d = x.shape[1], x.shape[2]
    mean = np.empty(d)
    for g in range(chosen.size):
        mean[:] = 0.0
        for i in range(m):
            person = members[chosen[g], i]
            for j in range(d):
                x[g, i, j] = features[person, j] * scale[j] if person >= 0 else 0.0
                mean[j] += x[g, i, j]
        for i in range(m):
            for j in range(d):
                x[g, i, j] -= mean[j] / m


@njit(cache=True, nogil=True)
def _weigh(x, y, labels, margin, similar, dissimilar, clip, l1, error):  # type: ignore[no-untyped-def]
    """Turn each group's projections Y into L Y, shrunk so that (L Y)^T X is no longer than the clip."""
    g_count, m, k = y.shape
    d = x.shape[2]
    mixing, pulled = np.empty((m, m)), np.empty((m, k))
    for g in range(g_count):
        live, slot = 0, 0
        mixing[:] = 0.0
        for i in range(m):
            for j in range(i + 1, m):
                label = labels[g, slot]
                slot += 1
                if label == 0:
                    continue
                live += 1
                square = 0.0
                for r in range(k):
                    square += (y[g, i, r] - y[g, j, r]) ** 2
                distance = np.sqrt(square)
                if not distance > TINY:
                    continue
                factor = similar
                if label < 0:
                    factor = (
                        dissimilar * (distance - margin) / distance if distance < margin else 0.0
                    )
                mixing[i, j] = mixing[j, i] = -factor
                mixing[i, i] += factor
                mixing[j, j] += factor
        for i in range(m):
            for r in range(k):
                one = 0.0
                for j in range(m):
                    one += mixing[i, j] * y[g, j, r]
                pulled[i, r] = one / max(live, 1)
        s = _shrinking(pulled, x[g], m, d, k, clip, l1, error)
        for i in range(m):
            for r in range(k):
                y[g, i, r] = s * pulled[i, r] if s > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _shrinking(a, x, m, d, k, clip, l1, error):  # type: ignore[no-untyped-def]
    """Factor that makes A^T X no longer than the clip, from two Gram matrices; 0 where that is unsure."""
    terms, square = 0.0, 0.0
    if l1:
        for i in range(m):
            size_a, size_x = 0.0, 0.0
            for r in range(k):
                size_a += abs(a[i, r])
            for j in range(d):
                size_x += abs(x[i, j])
            if not (size_a < HUGE and size_x < HUGE):
                return 0.0
            terms += size_a * size_x
        longest = terms * (1.0 + 2.0**-30)
    else:
        gram = np.dot(x, x.T)
        for i in range(m):
            for h in range(i + 1):
                product = 0.0
                for r in range(k):
                    product += a[i, r] * a[h, r]
                if h < i:
                    square += 2.0 * product * gram[i, h]
                else:
                    if not (product < HUGE**2 and gram[i, i] < HUGE**2):
                        return 0.0
                    square += product * gram[i, i]
                    terms += np.sqrt(product) * np.sqrt(gram[i, i])
        longest = np.sqrt(max(square, 0.0) + error * terms**2)
    if not terms > TINY:
        return 0.0
    return clip / max(longest, terms / SPREAD, clip)
