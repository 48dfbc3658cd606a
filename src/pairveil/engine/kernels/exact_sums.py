"""Sums to which each pair adds a whole number of units of its own, and the small steps made of them.

A Poisson batch must not show whether a null pair was drawn, not even in the rounding of its neighbours. So
each pair's contribution is cut to whole multiples of the grid on its own, and all that is added up are whole
numbers below 2^53: docs/theory/sums.md, 'Poisson samples'.

A batch of fifty pairs is summed in less time than an interpreter takes to ask for it. `descend`
therefore runs many steps at once: gather, products, clip, noise and update, for batches and noise that
were drawn before. It runs on one thread: two would wait for each other longer than they work.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pairveil.engine.kernels import dense as kernels
from pairveil.engine.kernels.loops import EXACT_TILE as TILE
from pairveil.engine.kernels.loops import descend_exactly, sum_exactly
from pairveil.engine.kernels.tiles import OUTSIDE, add_up
from pairveil.errors import InputError

_MOST_BITS = 44  # of the clip bound in grid units: with a tile's pairs on top, below 2^53


def _units(clip: float, grid: float) -> tuple[float, float]:
    """How many units make 1: the two factors share the bits that the grid resolves of the clip."""
    resolved = math.frexp(clip / grid)[1]  # C < 2^resolved grid
    if resolved > _MOST_BITS:
        raise InputError("the grid is too fine for sums that are exact without rounding")
    per_direction = 2.0 ** (resolved // 2)
    return per_direction, 1.0 / (grid * per_direction)


def clipped_sum(
    features: NDArray[Any],
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    rows: NDArray[Any] | None,
    weights: NDArray[Any],
    *,
    threads: int | None = None,
    **options: Unpack[kernels.Options],
) -> NDArray[np.int64]:
    """Sum the clipped contrastive gradients of some pairs, each cut to whole units on its own.

    Parameters
    ----------
    features, pairs, labels, rows, weights, threads, options
        As in `pairveil.engine.kernels.dense.clipped_sum`.

    Returns ndarray of int64, shape (k, d): the sum over the pairs of what each of them gives alone.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    >>> pairs, same = np.array([[1, 0], [2, 0]]), np.array([1, 1], dtype=np.int8)
    >>> def total(rows):
    ...     return clipped_sum(X, pairs, same, np.array(rows), np.eye(2),
    ...                        margin=1.0, clip=5.0, grid=2.0**-30)
    >>> bool((total([0, 1]) == total([0]) + total([1])).all())
    True
    >>> (total([0]) * 2.0**-30).round(3)
    array([[1.8, 2.4],
           [2.4, 3.2]])
    """
    n = len(pairs) if rows is None else len(rows)
    table, (matrix, loss) = kernels.checked_table(features, pairs, labels, weights, n, **options)
    behind = (matrix, *loss, _units(options["clip"], options["grid"]))
    total = add_up(sum_exactly, table, behind, rows, n, TILE, threads, matrix.shape)
    return total[: weights.shape[0], : weights.shape[1]]


def descend(
    features: NDArray[Any],
    pairs: NDArray[Any],
    labels: NDArray[np.int8],
    batches: tuple[NDArray[np.int64], NDArray[np.int64]],
    weights: NDArray[np.float64],
    noise: NDArray[np.float64],
    rate: float,
    **options: Unpack[kernels.Options],
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
    table, (matrix, loss) = kernels.checked_table(
        features, pairs, labels, weights, longest, **options
    )
    noisy = np.array(noise, dtype=np.float64)  # a copy: it is written over
    clip, grid = options["clip"], options["grid"]
    moved, sound = descend_exactly(
        *table, rows, edges, weights, matrix, float(rate), noisy, grid, *loss, _units(clip, grid)
    )
    if not sound:
        raise InputError(OUTSIDE)
    return moved, noisy
