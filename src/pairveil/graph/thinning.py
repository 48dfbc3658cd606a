"""Choosing few pairs out of very many: look closely at a share of them only.

Where people have hundreds of pairs each, a matching or a set of paths uses one or two of them. Ordering all
pairs by urgency would then take more memory than all else, so the careful choice is made on a random
share, and one pass over everything adds what still fits: the outcome is maximal all the same.

A pair is in the share with chance PLENTY / (the smaller degree of its two people). So each person keeps
at least PLENTY of hers on average (all of them if she has no more), and the share holds at most
PLENTY * n_people pairs on average. Who is paired with whom is public; labels and features are not seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.graph.choosing_loops import fill_up
from pairveil.graph.lazy_njit import lazy_njit

PLENTY = 16
MANY = 1 << 22  # below, all pairs are looked at: memory is no matter


def share_of_pairs(
    ends: NDArray[Any], n_people: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Ascending positions of a random share of the pairs.

    ``ends``: (K, 2) row numbers, K below 2**30.

    Examples
    --------
    >>> few = np.array([[0, 1], [1, 2], [0, 2]])
    >>> share_of_pairs(few, 3, np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """
    degree = np.zeros(n_people, dtype=np.int32)
    _count(ends, degree)
    expected = _expected(ends, degree, PLENTY)
    found = np.empty(int(expected + 12 * np.sqrt(expected) + 16), dtype=np.int32)
    count = _draw(ends, degree, PLENTY, np.uint64(rng.integers(2**63)), found)
    return found[:count]


def complete(
    ends: NDArray[Any],
    names: NDArray[np.int32],
    chosen: NDArray[np.int64],
    limit: int,
    acyclic: bool,
    tree: NDArray[np.int32],
) -> NDArray[np.int64]:
    """``chosen`` and every further pair that still fits, in ascending order.

    Parameters
    ----------
    ends : (K, 2) array of integers
    names : ndarray of int32
        What `tree` calls each person.
    chosen : ndarray of int64
        Positions chosen so far.
    limit : int
        Pairs a person may have.
    acyclic : bool
        No cycle may close.
    tree : ndarray of int32
        Union-find of what is chosen; updated.

    Examples
    --------
    >>> path = np.array([[0, 1], [1, 2], [0, 2]])
    >>> trees = np.array([0, 0, 2], dtype=np.int32)  # 0 and 1 are joined by the pair chosen
    >>> people = np.arange(3, dtype=np.int32)
    >>> complete(path, people, np.array([0]), 2, True, trees).tolist()
    [0, 1]
    """
    degree = np.zeros(len(names), dtype=np.int32)
    _count(ends[chosen], degree)
    more = np.empty(limit * len(names), dtype=np.int64)
    count = fill_up(ends, names, degree, limit, acyclic, tree, _marked(chosen, len(ends)), more)
    return np.sort(np.concatenate([chosen, more[:count]]))


def _marked(chosen: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    marked = np.zeros(n, dtype=np.bool_)
    marked[chosen] = True
    return marked


@lazy_njit
def _count(ends, degree):  # type: ignore[no-untyped-def]
    """Add each person's number of pairs to `degree`."""
    for e in range(ends.shape[0]):
        degree[ends[e, 0]] += 1
        degree[ends[e, 1]] += 1


@lazy_njit
def _expected(ends, degree, plenty):  # type: ignore[no-untyped-def]
    """How many pairs the share holds on average."""
    total = 0.0
    for e in range(ends.shape[0]):
        total += min(1.0, plenty / min(degree[ends[e, 0]], degree[ends[e, 1]]))
    return total


@lazy_njit
def _draw(ends, degree, plenty, seed, found):  # type: ignore[no-untyped-def]
    """Write the positions of the share into `found` (as many as it holds); how many."""
    count = 0
    for e in range(ends.shape[0]):
        # splitmix64: a good 64-bit hash of the position, so that no list of numbers is kept
        z = seed + np.uint64(e) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        least = min(degree[ends[e, 0]], degree[ends[e, 1]])
        if np.float64(z >> np.uint64(11)) * 2.0**-53 * least < plenty and count < found.size:
            found[count] = e
            count += 1
    return count
