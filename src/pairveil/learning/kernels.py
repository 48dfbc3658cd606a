"""The hot loop: the clipped sum of the contrastive gradients of many pairs, as exact integers.

Pairs are taken in tiles. In a tile the differences are gathered into dX, then

    P = dX W^T,  D_b = ||P_b||,  a_b = s_b P_b,  G = sum_b a_b dx_b^T        (THEORY.md section 1)

where s_b is the loss coefficient times the clip factor. The tile's G is rounded to integers, in
multiples of the grid, and added to 64-bit integers. Integer sums are exact, so the total depends
neither on the number of threads nor on the order of the tiles.

What one pair can change (`tile_error_bound`). Which pair sits in which tile is decided without
looking at contents, so zeroing a pair's contents changes one tile and nothing else. With u the unit
roundoff of the array's type, B pairs a tile, gamma_B = B u / (1 - B u):

1. a_b and dx_b are floating-point numbers, the norms are summed in float64, and the factor is
   rounded to the type: ||a_b dx_b^T|| <= C (1 + eta), eta = (d + k + 16) 2^-52 + 2 u.
2. A sum of B products, in any order, fused or not, errs by at most gamma_B sum_b |a_b| |dx_b|^T entry
   by entry (Higham 2002, section 3.1), which has norm at most gamma_B B C (1 + eta), in l2 and in l1.
   It errs so with the pair and without it: twice. Products that underflow add one subnormal each.
3. Rounding moves an entry by at most half a grid unit, with the pair and without: one unit in all.

So zeroing a pair moves the total by at most C + tile_error_bound(...), kappa pairs by kappa times that
(one after the other), and replacing counts twice. In point 2 the order is free, so the compiler may
reassociate sums and fuse products; it may not assume that numbers are finite. A pair whose numbers
leave the range in which point 1 holds (overflow, or squares near underflow) contributes zero.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Literal

import numba
import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairveil.errors import InputError

TILE = 128
SMALL_BATCH = 512  # up to here a second thread costs more than it brings
_GROUP = 4  # pairs whose products share one pass over a row of W or G
_REORDER = {"reassoc", "contract"}
_TINY = 1e-280  # squares below it may have lost digits to underflow


def tile_error_bound(
    tile: int,
    d: int,
    k: int,
    clip: float,
    dtype: Any,
    *,
    grid: float,
    norm: Literal["l2", "l1"] = "l2",
) -> float:
    """Return by how much rounding enlarges the sensitivity of `clipped_sum` to one pair.

    Parameters
    ----------
    tile : int
        Pairs in a tile.
    d, k : int
        Features and components: the sum has k x d entries.
    clip : float
        Bound on the norm of one pair's gradient.
    dtype : float32 or float64
        Type of the features, in which products are summed.
    grid : float
        The unit to which tiles are rounded.
    norm : {"l2", "l1"}
        The norm of the clip and of the sensitivity.

    Returns
    -------
    float
        To be added to ``clip`` (points 1 to 3 of the module's text).

    Examples
    --------
    >>> 0.001 < tile_error_bound(128, 100, 2, 1.0, np.float32, grid=2.0**-40) < 0.002
    True
    >>> tile_error_bound(128, 100, 2, 1.0, np.float64, grid=2.0**-40) < 1e-10
    True
    """
    kind = np.finfo(dtype)
    unit = float(kind.eps) / 2
    gamma = tile * unit / (1 - tile * unit)
    eta = (d + k + 16) * 2.0**-52 + 2 * unit
    drift = (1 + eta) * (1 + 2 * gamma * tile) - 1
    entries = k * d if norm == "l1" else math.sqrt(k * d)
    lost = 4 * (tile + 1) * float(kind.smallest_subnormal) * entries
    # The last factor covers the rounding of this very expression.
    return (clip * drift + lost + grid * entries) * (1 + 2.0**-40)


@njit(cache=True, nogil=True, fastmath=_REORDER)
def _project(x, n, w, p):  # type: ignore[no-untyped-def]
    """P = dX W^T for the first n rows (a multiple of four), four pairs to a pass over W."""
    zero = x[0, 0] * 0
    for b in range(0, n, _GROUP):
        for r in range(w.shape[0]):
            p0, p1, p2, p3 = zero, zero, zero, zero
            for j in range(w.shape[1]):
                p0 += w[r, j] * x[b, j]
                p1 += w[r, j] * x[b + 1, j]
                p2 += w[r, j] * x[b + 2, j]
                p3 += w[r, j] * x[b + 3, j]
            p[b, r], p[b + 1, r], p[b + 2, r], p[b + 3, r] = p0, p1, p2, p3


@njit(cache=True, nogil=True, fastmath=_REORDER)
def _accumulate(x, n, a, g):  # type: ignore[no-untyped-def]
    """G = a^T dX over the first n rows (a multiple of four), four pairs to a pass over G."""
    g[:] = 0
    for b in range(0, n, _GROUP):
        for r in range(g.shape[0]):
            a0, a1, a2, a3 = a[b, r], a[b + 1, r], a[b + 2, r], a[b + 3, r]
            for j in range(g.shape[1]):
                g[r, j] += a0 * x[b, j] + a1 * x[b + 1, j] + a2 * x[b + 2, j] + a3 * x[b + 3, j]


@njit(cache=True, nogil=True, fastmath=_REORDER)
def _lengths(row):  # type: ignore[no-untyped-def]
    """Squared l2 norm and l1 norm, in float64."""
    squares, sizes = 0.0, 0.0
    for value in row:
        wide = np.float64(value)
        squares += wide * wide
        sizes += abs(wide)
    return squares, sizes


@njit(cache=True, nogil=True)
def _factor(  # type: ignore[no-untyped-def]
    similar, x_row, p_row, margin, weight_similar, weight_dissimilar, clip, l1, largest
):
    """s = c min(1, C / ||G||): the loss coefficient, clipped; 0 where the bound would not hold."""
    x_squares, x_sizes = _lengths(x_row)
    p_squares, p_sizes = _lengths(p_row)
    if not (x_squares >= _TINY and p_squares >= _TINY and p_squares * x_squares < np.inf):
        return 0.0
    distance = math.sqrt(p_squares)
    if similar:
        c = weight_similar
    elif distance < margin:
        c = weight_dissimilar * (distance - margin) / distance
    else:
        return 0.0
    norm = abs(c) * (p_sizes * x_sizes if l1 else distance * math.sqrt(x_squares))
    s = c * (clip / norm) if norm > clip else c
    return s if abs(s) * p_sizes < largest else 0.0


@njit(cache=True, nogil=True)
def _sum_tiles(  # type: ignore[no-untyped-def]
    features, pairs, labels, rows, every, first, last, tile, w, loss, clip, l1, inverse_grid, largest
):
    """Integer sum over rows first..last (or over all pairs in that range), tile by tile."""
    margin, weight_similar, weight_dissimilar = loss
    k, d = w.shape
    room = (min(tile, last - first) + _GROUP - 1) // _GROUP * _GROUP
    x = np.empty((room, d), dtype=features.dtype)
    p = np.empty((room, k), dtype=features.dtype)
    g = np.empty((k, d), dtype=features.dtype)
    total = np.zeros((k, d), dtype=np.int64)
    for start in range(first, last, tile):
        n = min(tile, last - start)
        padded = (n + _GROUP - 1) // _GROUP * _GROUP
        x[n:padded] = 0  # pairs that contribute nothing
        for b in range(n):
            row = start + b if every else rows[start + b]
            left, right = pairs[row, 0], pairs[row, 1]
            for j in range(d):
                x[b, j] = features[left, j] - features[right, j]
        _project(x, padded, w, p)
        for b in range(n):
            row = start + b if every else rows[start + b]
            s = _factor(
                labels[row] > 0, x[b], p[b], margin, weight_similar, weight_dissimilar, clip, l1, largest
            )
            if s == 0.0:
                p[b] = 0  # and never 0 times something that is not finite
                x[b] = 0
            else:
                for r in range(k):
                    p[b, r] = s * p[b, r]
        _accumulate(x, padded, p, g)
        for r in range(k):
            for j in range(d):
                total[r, j] += np.int64(np.rint(np.float64(g[r, j]) * inverse_grid))
    return total
