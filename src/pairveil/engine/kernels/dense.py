"""The hot loop: the clipped sum of the contrastive gradients of many pairs, as exact integers.

Pairs are taken in tiles. A tile's sum is two matrix products; it is rounded to whole multiples of the grid
and added to 64-bit integers, so the total depends neither on the number of threads nor on the order of the
tiles. Zeroing a pair changes one tile, by at most C + `tile_error_bound`: docs/theory/sums.md has the proof.
"""

from __future__ import annotations

import math
from typing import Any, NotRequired, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.kernels.loops import LANES, LONGEST, ROWS, sum_tiles
from pairveil.engine.kernels.tiles import add_up
from pairveil.errors import InputError
from pairveil.privacy.grid import Norm

TILE = 128


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


class Options(TypedDict):
    """How gradients are weighted, clipped and rounded, by every loop as `clipped_sum` says."""

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


def checked_table(
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
    features: NDArray[Any],
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    rows: NDArray[Any] | None,
    weights: NDArray[Any],
    *,
    tile: int = TILE,
    threads: int | None = None,
    **options: Unpack[Options],
) -> NDArray[np.int64]:
    """Sum the clipped contrastive gradients of some pairs, in whole multiples of ``grid``.

    Parameters
    ----------
    features : ndarray of float32 or float64, shape (n, d), C-contiguous
        A memory map will do. Its type is the type of the products.
    pairs : ndarray of int32 or int64, shape (K, 2)
        Rows of ``features``.
    labels : ndarray of int8, shape (K,)
        +1 similar, -1 dissimilar.
    rows : ndarray of integers or None
        Which pairs; None is all of them. The choice must not depend on contents.
    weights : ndarray, shape (k, d)
        The matrix W.
    tile : int
        Pairs rounded together. Part of the result: the same tile gives the same integers.
    threads : int, optional
        By default one up to 512 pairs, then numba's number. Not part of the result.
    margin, weight_similar, weight_dissimilar : float
        Of the loss; the weights (1 by default) multiply the gradients before clipping.
    clip : float
        Bound on the norm of each pair's gradient.
    grid : float
        A power of two.
    norm : {"l2", "l1"}
        Norm of the full matrix in which gradients are clipped; l2 by default.
    scale : ndarray of shape (d,), optional
        Differences are multiplied by it, column by column: public, or released already. So scaled
        features need no second table.

    Returns ndarray of int64, shape (k, d): zeroing one pair moves ``grid`` times this by at most ``clip +
    tile_error_bound(...)``.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> total = clipped_sum(X, np.array([[1, 0]]), np.array([1], dtype=np.int8), None,
    ...                     np.eye(2), margin=1.0, clip=5.0, grid=2.0**-30)
    >>> total * 2.0**-30      # the gradient dx dx^T has norm 25, clipped to 5
    array([[1.8, 2.4],
           [2.4, 3.2]])
    """
    n = len(pairs) if rows is None else len(rows)
    table, (matrix, loss) = checked_table(features, pairs, labels, weights, n, **options)
    if tile < 1:
        raise InputError("a tile holds at least one pair")
    behind = (tile, matrix, *loss, 1.0 / options["grid"])
    total = add_up(sum_tiles, table, behind, rows, n, tile, threads, matrix.shape)
    return total[: weights.shape[0], : weights.shape[1]]
