"""Clipped sums of contrastive gradients by compiled loops, as exact integers.

Pairs are taken in tiles. A tile's sum is two matrix products; it is rounded to whole multiples of the grid
and added to 64-bit integers, so the total depends neither on the number of threads nor on the order of the
tiles. Zeroing a pair changes one tile, by at most C + `tile_error_bound`: docs/theory/noise.md has the proof.

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

from pairveil.array_types import FloatArray, IntArray
from pairveil.engine import loops
from pairveil.engine.loops import EXACT_TILE, LANES, LONGEST, ROWS
from pairveil.errors import InputError
from pairveil.privacy.grid import Norm

TILE = 128  # pairs that are rounded together
SMALL_BATCH = 512  # up to here a second thread costs more than it brings
_SPARSE_SHARE = 128  # sparse pairs that go to one thread together
_MOST_BITS = 44  # of the clip bound in grid units: with a tile's pairs on top, below 2^53

Labels = NDArray[np.int8]


def tile_error_bound(
    tile: int, d: int, k: int, clip: float, dtype: Any, *, grid: float, norm: Norm = "l2"
) -> float:
    """By how much rounding enlarges what one pair moves of `gradient_sum` beyond ``clip``.

    'Dense rows' of docs/theory/noise.md; ``dtype`` is that of the features, in which products are summed.
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


class Options(TypedDict):
    """How gradients are weighted before they are clipped, clipped and rounded.

    ``norm`` is that of the full matrix (l2 by default), ``grid`` a power of two; differences are multiplied
    by ``scale``, column by column.
    """

    margin: float
    clip: float
    grid: float
    norm: NotRequired[Norm]
    scale: NotRequired[FloatArray | None]
    weights: NotRequired[tuple[float, float]]


def gradient_sum(
    features: Any,
    pairs: NDArray[Any],
    labels: Labels,
    rows: NDArray[Any] | None,
    W: NDArray[Any],
    *,
    separately: bool = False,
    threads: int | None = None,
    **options: Unpack[Options],
) -> IntArray:
    """Sum the clipped gradients in W of some pairs (None: all), in whole multiples of the grid.

    ``features`` are C-contiguous float32 or float64, in memory or mapped, or CSR in canonical format.
    ``separately`` cuts every pair to whole units on its own. ``threads`` are no part of the result.
    """
    n, grid, clip = len(pairs) if rows is None else len(rows), options["grid"], options["clip"]
    table: tuple[Any, ...]
    behind: tuple[Any, ...]
    if sparse.issparse(features):
        if not features.has_canonical_format:
            raise InputError(
                "sparse features need each column once a row: call sum_duplicates() first"
            )
        scale, loss = checked(features, np.float64, pairs, labels, W, n, **options)
        turned = np.ascontiguousarray(W.T, dtype=np.float64)
        longest = max(1, 2 * int(np.diff(features.indptr).max()))
        # A pair adds at most this to an entry (`checked`). One alone is a whole number however large.
        room = max(1, int(2.0**53 / (1.1 * clip / grid + 1.0)))
        rows_of = (features.data, features.indices, features.indptr, longest)
        behind = (turned, *loss, 1.0 / grid, room)
        table = (*rows_of, scale, pairs, labels)
        total = _add_up(loops.sum_sparse, table, behind, rows, n, _SPARSE_SHARE, threads)
        return np.ascontiguousarray(total.T)
    table, matrix, loss = _dense(features, pairs, labels, W, n, **options)
    if separately:
        behind = (matrix, *loss, _units(clip, grid))
        total = _add_up(loops.sum_exactly, table, behind, rows, n, EXACT_TILE, threads)
    else:
        behind = (TILE, matrix, *loss, 1.0 / grid)
        total = _add_up(loops.sum_tiles, table, behind, rows, n, TILE, threads)
    return total[: W.shape[0], : W.shape[1]]


def descend(
    features: NDArray[Any],
    pairs: NDArray[Any],
    labels: Labels,
    batches: tuple[IntArray, IntArray],
    W: FloatArray,
    noise: FloatArray,
    rate: float,
    **options: Unpack[Options],
) -> tuple[FloatArray, FloatArray]:
    """W after several steps ``W -= rate * (clipped sum + noise)``, and the noisy sums.

    ``batches`` are (rows, edges): step t takes the pairs ``rows[edges[t]:edges[t + 1]]``. The noise, of
    shape (steps, k, d), is in multiples of the grid, below 2^53 of it.
    """
    rows, edges = batches
    longest = int(np.diff(edges).max(initial=0))
    table, matrix, loss = _dense(features, pairs, labels, W, longest, **options)
    noisy = np.array(noise, dtype=np.float64)  # a copy: it is written over
    clip, grid = options["clip"], options["grid"]
    moved, sound = loops.descend_exactly(
        *table, rows, edges, W, matrix, float(rate), noisy, grid, *loss, _units(clip, grid)
    )
    _refuse_outside(sound)
    return moved, noisy


def checked(
    features: Any,
    dtype: Any,
    pairs: NDArray[Any],
    labels: Labels,
    W: NDArray[Any],
    n: int,
    *,
    margin: float,
    clip: float,
    grid: float,
    norm: Norm = "l2",
    scale: FloatArray | None = None,
    weights: tuple[float, float] = (1.0, 1.0),
) -> tuple[NDArray[Any], tuple[float, tuple[float, float], float, bool]]:
    """The columns' scale, and (margin, weights, clip, is l1), as the compiled loops take them.

    Refuses a sum of n pairs' gradients whose clip, grid or shape the proof does not cover.
    """
    d = features.shape[1]
    if W.ndim != 2 or W.shape[1] != d:
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
    return columns, (float(margin), (float(weights[0]), float(weights[1])), clip, norm == "l1")


def _dense(
    features: NDArray[Any],
    pairs: NDArray[Any],
    labels: Labels,
    W: NDArray[Any],
    n: int,
    **options: Unpack[Options],
) -> tuple[tuple[NDArray[Any], ...], NDArray[Any], tuple[Any, ...]]:
    """(features, scale, pairs, labels), W in whole blocks, and the loss, for loops over dense rows."""
    if features.dtype not in (np.float32, np.float64) or not features.flags.c_contiguous:
        raise InputError("features must be a C-contiguous array of float32 or float64")
    columns, loss = checked(features, features.dtype, pairs, labels, W, n, **options)
    k, d = W.shape
    matrix = np.zeros((-(-k // ROWS) * ROWS, -(-d // LANES) * LANES), dtype=features.dtype)
    matrix[:k, :d] = W
    return (np.asarray(features), columns, pairs, labels), matrix, loss


def _units(clip: float, grid: float) -> tuple[float, float]:
    """How many units make 1: the two factors share the bits that the grid resolves of the clip."""
    resolved = math.frexp(clip / grid)[1]  # C < 2^resolved grid
    if resolved > _MOST_BITS:
        raise InputError("the grid is too fine for sums that are exact without rounding")
    per_direction = 2.0 ** (resolved // 2)
    return per_direction, 1.0 / (grid * per_direction)


def _refuse_outside(sound: bool) -> None:
    if not sound:
        raise InputError("a pair or a row index is outside its table")


@lru_cache(maxsize=4)
def _pool(_process: int, threads: int) -> ThreadPoolExecutor:
    # Threads of our own over compiled code without the interpreter's lock, and not numba's prange:
    # its default pool aborts the process when two threads (two Dask tasks, say) enter it at once.
    # One pool a process: a forked child has none of its parent's threads.
    return ThreadPoolExecutor(threads, thread_name_prefix="pairveil-tiles")


def _add_up(
    loop: Callable[..., tuple[IntArray, bool]],
    before: tuple[Any, ...],
    behind: tuple[Any, ...],
    rows: NDArray[Any] | None,
    n: int,
    tile: int,
    threads: int | None,
) -> IntArray:
    """Run a compiled loop over n pairs in whole tiles, in threads where that pays; add the integers up.

    The loop is called as ``loop(*before, rows, all rows?, first, last, *behind)`` and returns its sum, and
    whether every index was inside its table.
    """
    chosen = np.empty(0, dtype=np.int64) if rows is None else np.asarray(rows)

    def part(first: int, last: int) -> tuple[IntArray, bool]:
        return loop(*before, chosen, rows is None, first, last, *behind)

    n_tiles = -(-n // tile)
    if threads is None:
        threads = 1 if n <= SMALL_BATCH else numba.config.NUMBA_NUM_THREADS
    threads = max(1, min(threads, n_tiles))
    edges = [min(n, n_tiles * t // threads * tile) for t in range(threads + 1)]
    run = map if threads == 1 else _pool(os.getpid(), threads).map
    shares = list(run(part, edges[:-1], edges[1:]))
    _refuse_outside(all(sound for _, sound in shares))
    return sum((share for share, _ in shares[1:]), start=shares[0][0])
