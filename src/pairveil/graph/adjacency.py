"""From pairs to neighbour lists: checks, then a counting sort into int32 arrays.

At 10^8 pairs the arrays are what costs, so each exists once: the caller's pairs are read in place
(int32 or int64), offsets are int32 until 2K no longer fits, neighbours are int32, and the sort
needs no scratch array.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairveil.errors import InputError
from pairveil.graph.lazy_njit import lazy_njit

_INT32_MAX = 2**31 - 1
_CHUNK = 1 << 22  # rows renumbered at a time: bounds the scratch memory of searchsorted


@dataclass(frozen=True)
class Adjacency:
    """Neighbour lists of an undirected multigraph.

    Attributes
    ----------
    offsets : ndarray of shape (n + 1,)
        The neighbours of person v are ``neighbours[offsets[v]:offsets[v + 1]]``.
    neighbours : ndarray of int32, shape (2K,)
        Ascending within each list; a pair that occurs m times is listed m times.
    multiplicity : int
        How often the most frequent pair occurs.
    people : ndarray or None
        The caller's number of each person when the numbers had to be compacted, else None.
    """

    offsets: NDArray[np.signedinteger]
    neighbours: NDArray[np.int32]
    multiplicity: int
    people: NDArray[np.integer] | None

    @property
    def n(self) -> int:
        """How many people the lists are for (people without a pair have an empty list)."""
        return len(self.offsets) - 1


def checked_pairs(pairs: Any) -> NDArray[np.signedinteger]:
    """The pairs as a C-ordered (K, 2) int32 or int64 array of numbers >= 0, or an `InputError`.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or an object with such a ``pairs`` attribute

    Examples
    --------
    >>> checked_pairs([(0, 1), (1, 2)]).shape
    (2, 2)
    >>> checked_pairs([(0, 1), (2, 2)])
    Traceback (most recent call last):
    pairveil.errors.InputError: pair 1 joins a person with herself; drop such pairs (rows count from 0)
    """
    try:
        array = np.asarray(getattr(pairs, "pairs", pairs))
    except ValueError:  # ragged lists
        raise InputError("pairs must be a (K, 2) array: two people in every row") from None
    if array.size == 0:
        raise InputError("there are no pairs; give at least one pair of people")
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"pairs must be a (K, 2) array, one row per pair; got shape {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            f"pairs must hold integer row numbers of people; got dtype {array.dtype}. "
            "Use pairveil.PairSet.join to turn ids into row numbers"
        )
    if array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError("a person's number in pairs exceeds 2**63 - 1; renumber people from 0")
    if array.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        array = array.astype(np.int64)
    array = np.ascontiguousarray(array)
    lowest, self_row = _lowest_and_self(array)
    if lowest < 0:
        row = int(np.argmax((array < 0).any(axis=1)))
        raise InputError(f"pair {row} has a negative person number; people count from 0")
    if self_row >= 0:
        raise InputError(
            f"pair {self_row} joins a person with herself; drop such pairs (rows count from 0)"
        )
    return array


def build_adjacency(pairs: Any, n_people: int | None = None) -> Adjacency:
    """Neighbour lists of the graph whose edges are the pairs, by a counting sort.

    Parameters
    ----------
    pairs : (K, 2) array_like of integers, or a PairSet
    n_people : int, optional
        People are 0..n_people-1; by default up to the largest number seen. When the numbers are
        sparse (the largest exceeds 4K + 65,536) people are renumbered in ascending order instead.

    Examples
    --------
    >>> adjacency = build_adjacency([(0, 1), (2, 1)])
    >>> adjacency.neighbours.tolist(), adjacency.offsets.tolist()
    ([1, 0, 2, 1], [0, 1, 3, 4])
    """
    array = checked_pairs(pairs)
    largest = int(array.max())
    if n_people is not None and largest >= n_people:
        raise InputError(f"a person number in pairs is not below the {n_people} people there are")
    people: NDArray[np.integer] | None = None
    if n_people is None and largest >= 4 * len(array) + 65_536:
        people, array = compacted(array)
        largest = len(people) - 1
    offsets = _zero_offsets(largest + 1 if n_people is None else n_people, len(array))
    neighbours = np.empty(2 * len(array), dtype=np.int32)
    _count(array, offsets)
    _ends_of_lists(offsets)
    _place(array, offsets, neighbours)
    multiplicity = int(_sort_lists(offsets, neighbours))
    return Adjacency(offsets, neighbours, multiplicity, people)


def adjacency_of_parts(
    degrees: NDArray[np.integer], parts: Iterable[NDArray[np.signedinteger]]
) -> Adjacency:
    """Neighbour lists of pairs that come part by part and are never held together.

    Degrees say how long each list gets, so a part's pairs can be put where they belong and be
    forgotten: 8 bytes a pair instead of 16.

    Parameters
    ----------
    degrees : (n_people,) array of integers
        How many pairs each person has, over all parts.
    parts : iterable of (k, 2) int32 or int64 arrays
        Together every pair once.

    Raises InputError: the parts are not those that the degrees were counted on.

    Examples
    --------
    >>> parts = [np.array([[0, 1]]), np.array([[2, 1]])]
    >>> adjacency_of_parts(np.array([1, 2, 1]), parts).neighbours.tolist()
    [1, 0, 2, 1]
    """
    n_pairs = int(degrees.sum(dtype=np.int64)) // 2
    if n_pairs == 0:
        raise InputError("there are no pairs; give at least one pair of people")
    offsets = _zero_offsets(len(degrees), n_pairs)
    neighbours = np.empty(2 * n_pairs, dtype=np.int32)
    offsets[:-1] = degrees
    _ends_of_lists(offsets)
    as_counted = all(
        _place(checked_pairs(part), offsets, neighbours) for part in parts if len(part)
    )
    if not (as_counted and _all_placed(degrees, offsets)):
        raise InputError("the pairs changed between two readings of them")
    return Adjacency(offsets, neighbours, int(_sort_lists(offsets, neighbours)), None)


def _zero_offsets(n: int, n_pairs: int) -> NDArray[np.signedinteger]:
    if n > _INT32_MAX - 1:
        raise InputError("more than 2**31 - 2 people: split the graph by connected component")
    return np.zeros(n + 1, dtype=np.int32 if 2 * n_pairs <= _INT32_MAX else np.int64)


def compacted(
    array: NDArray[np.signedinteger],
) -> tuple[NDArray[np.signedinteger], NDArray[np.int32]]:
    """Distinct people, ascending, and the pairs renumbered to positions in that list.

    Examples
    --------
    >>> people, renumbered = compacted(np.array([[10**9, 7], [7, 50]]))
    >>> people.tolist(), renumbered.tolist()
    ([7, 50, 1000000000], [[2, 0], [0, 1]])
    """
    people = np.unique(array)
    renumbered = np.empty(array.shape, dtype=np.int32)
    for start in range(0, len(array), _CHUNK):
        rows = slice(start, start + _CHUNK)
        renumbered[rows] = np.searchsorted(people, array[rows])
    return people, renumbered


@lazy_njit
def _lowest_and_self(pairs):  # type: ignore[no-untyped-def]
    """The lowest number and the first row whose two ends are equal (-1: none)."""
    lowest, self_row = pairs[0, 0], -1
    for row in range(pairs.shape[0]):
        lowest = min(lowest, pairs[row, 0], pairs[row, 1])
        if self_row < 0 and pairs[row, 0] == pairs[row, 1]:
            self_row = row
    return lowest, self_row


@lazy_njit
def _count(pairs, offsets):  # type: ignore[no-untyped-def]
    """Add each person's number of pairs to her place in `offsets`."""
    for row in range(pairs.shape[0]):
        offsets[pairs[row, 0]] += 1
        offsets[pairs[row, 1]] += 1


@lazy_njit
def _ends_of_lists(offsets):  # type: ignore[no-untyped-def]
    """Turn lengths of lists into where each list ends."""
    total = 0
    for v in range(offsets.size):
        total += offsets[v]
        offsets[v] = total


@lazy_njit
def _place(pairs, offsets, neighbours):  # type: ignore[no-untyped-def]
    """Fill lists from their ends backwards; False (and no more is written) if a pair has no place.

    offsets[v] is the end of what is still free of v's list; each placement moves it one towards the start,
    so when every pair is placed it is the start, and no cursor array is needed.
    """
    for row in range(pairs.shape[0]):
        for side in range(2):
            v = pairs[row, side]
            if v >= offsets.size - 1 or offsets[v] == 0:
                return False
            offsets[v] -= 1
            neighbours[offsets[v]] = pairs[row, 1 - side]
    return True


@lazy_njit
def _all_placed(degrees, offsets):  # type: ignore[no-untyped-def]
    """Whether every list is full: it starts where those before it end."""
    total = 0
    for v in range(degrees.size):
        if offsets[v] != total:
            return False
        total += degrees[v]
    return True


@lazy_njit
def _sort_lists(offsets, neighbours):  # type: ignore[no-untyped-def]
    """Sort each list in place; return the longest run of one neighbour (the multiplicity)."""
    longest = 0
    for v in range(offsets.size - 1):
        start, end = offsets[v], offsets[v + 1]
        if end - start > 24:
            neighbours[start:end].sort()
        else:  # insertion sort: most lists are short and lie in one cache line
            for i in range(start + 1, end):
                item = neighbours[i]
                j = i
                while j > start and neighbours[j - 1] > item:
                    neighbours[j] = neighbours[j - 1]
                    j -= 1
                neighbours[j] = item
        run = 0
        for i in range(start, end):
            run = run + 1 if i > start and neighbours[i] == neighbours[i - 1] else 1
            longest = max(longest, run)
    return longest
