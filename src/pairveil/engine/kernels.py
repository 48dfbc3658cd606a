"""Clipped sums of contrastive gradients by compiled loops, as exact integers.

Records are taken in tiles. A tile's sum is two matrix products; it is rounded to whole multiples of the grid
and added to 64-bit integers, so the total depends neither on the number of threads nor on the order of the
tiles. Zeroing a pair changes one tile, by at most C + `tile_error_bound`: docs/theory/sums.md has the proof.

A Poisson batch must not show whether a null pair was drawn, not even in the rounding of its neighbours. So
each pair's contribution is cut to whole multiples of the grid on its own, and all that is added up are whole
numbers below 2^53 ('Poisson samples' there). A batch of fifty pairs is summed in less time than an
interpreter takes to ask for it: `descend` runs many steps at once, for batches and noise that were drawn
before, on one thread: two would wait for each other longer than they work.

Of sparse rows (CSR) nothing is densified: a pair costs k operations for each column in which it differs, and
the only dense arrays are W and the sum, both turned so that a column's k numbers lie together. Each pair is
rounded on its own, in float64 ('Sparse rows').
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NotRequired, TypedDict, Unpack

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.engine import loops
from pairveil.engine.loops import EXACT_TILE, LANES, LONGEST, ROWS
from pairveil.errors import InputError
from pairveil.privacy.grid import Norm

TILE, GROUP_TILE = 128, 32  # pairs and groups that are rounded together
SMALL_BATCH = 512  # up to here a second thread costs more than it brings
_SPARSE_SHARE = 128  # sparse pairs that go to one thread together
_MOST_BITS = 44  # of the clip bound in grid units: with a tile's pairs on top, below 2^53
_OUTSIDE = "a pair or a row index is outside its table"


def tile_error_bound(
    tile: int, d: int, k: int, clip: float, dtype: Any, *, grid: float, norm: Norm = "l2"
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

    Returns what is to be added to ``clip`` (points 1 to 3 of docs/theory/sums.md).

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
    lost = 4 * (tile + LONGEST) * float(kind.smallest_subnormal) * entries
    # The last factor covers the rounding of this very expression.
    return (clip * drift + lost + grid * entries) * (1 + 2.0**-40)


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


class Options(TypedDict):
    """How gradients are weighted, clipped and rounded, as `clipped_sum` says."""

    margin: float
    clip: float
    grid: float
    norm: NotRequired[Norm]
    scale: NotRequired[NDArray[Any] | None]
    weight_similar: NotRequired[float]
    weight_dissimilar: NotRequired[float]


def checked(
    d: int,
    dtype: Any,
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    weights: NDArray[Any],
    n: int,
    *,
    margin: float,
    clip: float,
    grid: float,
    norm: Norm = "l2",
    scale: NDArray[Any] | None = None,
    weight_similar: float = 1.0,
    weight_dissimilar: float = 1.0,
) -> tuple[NDArray[Any], tuple[float, tuple[float, float], float, bool]]:
    """The columns' scale, and (margin, weights, clip, is l1) of the loss, as the compiled loops take them.

    Refuses a sum of n pairs' gradients whose clip, grid or shape the proof does not cover.
    """
    if weights.ndim != 2 or weights.shape[1] != d:
        raise InputError("the weights need one column for each feature")
    if not 1e-20 <= clip <= 1e20:
        raise InputError("the clip bound must be between 1e-20 and 1e20")
    if not grid > 0.0 or math.frexp(grid)[0] != 0.5:
        raise InputError("the grid must be a power of two")
    # |total| <= n C (1 + drift) / grid + one unit for each tile
    if n * (1.1 * clip / grid + 1.0) >= 2.0**62:
        raise InputError("the grid is too fine for so many pairs: sums must stay below 2^62 units")
    if len(labels) != len(pairs):
        raise InputError("there must be one label for each pair")
    columns = np.ascontiguousarray(np.ones(d) if scale is None else scale, dtype=dtype)
    if columns.shape != (d,):
        raise InputError("the scale needs one number for each feature")
    both = float(weight_similar), float(weight_dissimilar)
    return columns, (float(margin), both, float(clip), norm == "l1")


def _checked_table(
    features: NDArray[Any],
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    weights: NDArray[Any],
    n: int,
    **options: Unpack[Options],
) -> tuple[tuple[NDArray[Any], ...], tuple[Any, ...]]:
    """(features, scale, pairs, labels) and (W in whole blocks, loss) for the loops over dense rows."""
    if features.dtype not in (np.float32, np.float64) or not features.flags.c_contiguous:
        raise InputError("features must be a C-contiguous array of float32 or float64")
    columns, loss = checked(features.shape[1], features.dtype, pairs, labels, weights, n, **options)
    k, d = weights.shape
    matrix = np.zeros((-(-k // ROWS) * ROWS, -(-d // LANES) * LANES), dtype=features.dtype)
    matrix[:k, :d] = weights
    return (np.asarray(features), columns, pairs, labels), (matrix, loss)


def clipped_sum(
    features: Any,
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    rows: NDArray[Any] | None,
    weights: NDArray[Any],
    *,
    separately: bool = False,
    tile: int | None = None,
    threads: int | None = None,
    **options: Unpack[Options],
) -> NDArray[np.int64]:
    """Sum the clipped contrastive gradients of some pairs or groups, in whole multiples of ``grid``.

    Parameters
    ----------
    features : array of float32 or float64, shape (n, d), C-contiguous; or scipy CSR
        A memory map will do. Its type is the type of the products. CSR rows are in canonical format (each
        column once a row, ascending).
    pairs : array of int32 or int64, shape (K, 2); of groups (K, m)
        Rows of ``features``; in a group -1 is nobody.
    labels : array of int8, shape (K,); of groups (K, m (m - 1) / 2)
        +1 similar, -1 dissimilar, 0 null.
    rows : array of integers or None
        Which records; None is all of them. The choice must not depend on contents.
    weights : array of shape (k, d)
        The matrix W.
    separately : bool
        Cut every record to whole units on its own.
    tile : int, optional
        Records rounded together. Part of the result: the same tile gives the same integers.
    threads : int, optional
        By default one up to 512 records, then numba's number. Not part of the result.
    margin, weight_similar, weight_dissimilar : float
        Of the loss; the weights (1 by default) multiply the gradients before clipping.
    clip : float
        Bound on the norm of each record's gradient.
    grid : float
        A power of two.
    norm : {"l2", "l1"}
        Norm of the full matrix in which gradients are clipped; l2 by default.
    scale : array of shape (d,), optional
        Differences are multiplied by it, column by column: public, or released already. So scaled
        features need no second table.

    Returns array of int64, shape (k, d): zeroing one pair moves ``grid`` times this by at most ``clip +
    tile_error_bound(...)``.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> ends, same = np.array([[1, 0]]), np.array([1], dtype=np.int8)
    >>> options = {"margin": 1.0, "clip": 5.0, "grid": 2.0**-30}
    >>> total = clipped_sum(X, ends, same, None, np.eye(2), **options)
    >>> total * 2.0**-30      # the gradient dx dx^T has norm 25, clipped to 5
    array([[1.8, 2.4],
           [2.4, 3.2]])
    >>> turned = clipped_sum(sparse.csr_array(X), ends, same, None, np.eye(2), **options)
    >>> bool((turned == total).all())
    True
    """
    n = len(pairs) if rows is None else len(rows)
    if tile is not None and tile < 1:
        raise InputError("a tile holds at least one pair")
    if labels.ndim == 2:
        chosen = 1 if separately else tile or GROUP_TILE
        scale, loss = checked(weights.shape[-1], np.float64, pairs, labels, weights, n, **options)
        (k, d), m = weights.shape, pairs.shape[1]
        columns = np.ascontiguousarray(weights.T, dtype=np.float64)
        behind = (chosen, columns, *loss, gram_error(m, d, k), 1.0 / options["grid"])
        groups = (features, scale, pairs, labels)
        return _add_up(loops.sum_groups, groups, behind, rows, n, chosen, threads, (k, d))
    if sparse.issparse(features):
        return _sparse_sum(features, pairs, labels, rows, weights, n, threads, **options)
    table, (matrix, loss) = _checked_table(features, pairs, labels, weights, n, **options)
    if separately:
        behind = (matrix, *loss, _units(options["clip"], options["grid"]))
        total = _add_up(
            loops.sum_exactly, table, behind, rows, n, EXACT_TILE, threads, matrix.shape
        )
    else:
        chosen = tile or TILE
        behind = (chosen, matrix, *loss, 1.0 / options["grid"])
        total = _add_up(loops.sum_tiles, table, behind, rows, n, chosen, threads, matrix.shape)
    return total[: weights.shape[0], : weights.shape[1]]


def _sparse_sum(
    features: Any,
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    rows: NDArray[Any] | None,
    weights: NDArray[Any],
    n: int,
    threads: int | None,
    **options: Unpack[Options],
) -> NDArray[np.int64]:
    if not features.has_canonical_format:
        raise InputError("sparse features need each column once a row: call sum_duplicates() first")
    columns, loss = checked(features.shape[1], np.float64, pairs, labels, weights, n, **options)
    turned = np.ascontiguousarray(weights.T, dtype=np.float64)
    longest = max(1, 2 * int(np.diff(features.indptr).max()))
    # A pair adds at most this to an entry (`checked`). One alone is a whole number however large.
    room = max(1, int(2.0**53 / (1.1 * options["clip"] / options["grid"] + 1.0)))
    table = (features.data, features.indices, features.indptr, longest, columns, pairs, labels)
    behind = (turned, *loss, 1.0 / options["grid"], room)
    total = _add_up(loops.sum_sparse, table, behind, rows, n, _SPARSE_SHARE, threads, turned.shape)
    return np.ascontiguousarray(total.T)


def _units(clip: float, grid: float) -> tuple[float, float]:
    """How many units make 1: the two factors share the bits that the grid resolves of the clip."""
    resolved = math.frexp(clip / grid)[1]  # C < 2^resolved grid
    if resolved > _MOST_BITS:
        raise InputError("the grid is too fine for sums that are exact without rounding")
    per_direction = 2.0 ** (resolved // 2)
    return per_direction, 1.0 / (grid * per_direction)


def descend(
    features: NDArray[Any],
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    batches: tuple[NDArray[np.int64], NDArray[np.int64]],
    weights: NDArray[np.float64],
    noise: NDArray[np.float64],
    rate: float,
    **options: Unpack[Options],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Take several steps ``W -= rate * (clipped sum + noise)``, one batch each.

    Parameters
    ----------
    features, pairs, labels, options
        As in `clipped_sum`.
    batches : (rows, edges)
        Step t takes the pairs ``rows[edges[t]:edges[t + 1]]``.
    weights : ndarray of shape (k, d)
        W before the first step.
    noise : ndarray of shape (steps, k, d)
        Multiples of the grid, below 2^53 of it.

    Returns (ndarray of shape (k, d), ndarray of shape (steps, k, d)): W after the last step, and the
    noisy sums.

    Examples
    --------
    >>> X, pairs, same = np.eye(2), np.array([[0, 1]]), np.array([1], dtype=np.int8)
    >>> batches = np.zeros(2, dtype=np.int64), np.array([0, 1, 2])
    >>> W, sums = descend(X, pairs, same, batches, np.eye(2), np.zeros((2, 2, 2)), 0.25,
    ...                   margin=1.0, clip=9.0, grid=2.0**-30)
    >>> W.round(3)
    array([[0.625, 0.375],
           [0.375, 0.625]])
    """
    rows, edges = batches
    longest = int(np.diff(edges).max(initial=0))
    table, (matrix, loss) = _checked_table(features, pairs, labels, weights, longest, **options)
    noisy = np.array(noise, dtype=np.float64)  # a copy: it is written over
    clip, grid = options["clip"], options["grid"]
    moved, sound = loops.descend_exactly(
        *table, rows, edges, weights, matrix, float(rate), noisy, grid, *loss, _units(clip, grid)
    )
    if not sound:
        raise InputError(_OUTSIDE)
    return moved, noisy


@lru_cache(maxsize=4)
def _pool(_process: int, threads: int) -> ThreadPoolExecutor:
    # Threads of our own over compiled code without the interpreter's lock, and not numba's prange:
    # its default pool aborts the process when two threads (two Dask tasks, say) enter it at once.
    # One pool a process: a forked child has none of its parent's threads.
    return ThreadPoolExecutor(threads, thread_name_prefix="pairveil-tiles")


def _add_up(
    loop: Callable[..., tuple[NDArray[np.int64], bool]],
    before: tuple[Any, ...],
    behind: tuple[Any, ...],
    rows: NDArray[Any] | None,
    n: int,
    tile: int,
    threads: int | None,
    shape: tuple[int, ...],
) -> NDArray[np.int64]:
    """Run a compiled loop over n records in whole tiles, in threads where that pays; add the integers up.

    The loop is called as ``loop(*before, rows, all rows?, first, last, *behind)`` and returns its sum, of
    the given shape, and whether every index was inside its table.
    """
    chosen = np.empty(0, dtype=np.int64) if rows is None else np.asarray(rows)

    def part(first: int, last: int) -> tuple[NDArray[np.int64], bool]:
        return loop(*before, chosen, rows is None, first, last, *behind)

    n_tiles = -(-n // tile)
    if threads is None:
        threads = 1 if n <= SMALL_BATCH else numba.config.NUMBA_NUM_THREADS
    threads = min(threads, n_tiles)
    if threads <= 1:
        total, sound = part(0, n)
    else:
        edges = [min(n, n_tiles * t // threads * tile) for t in range(threads + 1)]
        total, sound = np.zeros(shape, dtype=np.int64), True
        for share, within in _pool(os.getpid(), threads).map(part, edges[:-1], edges[1:]):
            total += share
            sound = sound and within
    if not sound:
        raise InputError(_OUTSIDE)
    return total
