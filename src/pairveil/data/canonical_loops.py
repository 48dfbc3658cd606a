"""The compiled loops behind `canonical`: a counting sort of pairs, and the same pair once.

At 10^8 pairs memory is what costs: one int32 a pair for the order, and the sorted pairs themselves.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _ends(pairs, rank, row):  # type: ignore[no-untyped-def]
    """The two people of a row, the lower one first; an empty `rank` leaves people as they are."""
    a, b = pairs[row, 0], pairs[row, 1]
    if rank.size:
        a, b = rank[a], rank[b]
    return min(a, b), max(a, b)


@njit(cache=True, nogil=True)
def sort_rows(pairs, rank, n_people, order):  # type: ignore[no-untyped-def]
    """Fill `order` with rows by (lower, higher) person; rows of one pair stay in the order given."""
    offsets = np.zeros(n_people + 1, dtype=np.int64)
    for row in range(pairs.shape[0]):
        offsets[_ends(pairs, rank, row)[0]] += 1
    total = 0
    for v in range(n_people + 1):
        total += offsets[v]
        offsets[v] = total
    for row in range(pairs.shape[0] - 1, -1, -1):
        low = _ends(pairs, rank, row)[0]
        offsets[low] -= 1
        order[offsets[low]] = row
    for v in range(n_people):
        _sort_by_higher(pairs, rank, order[offsets[v] : offsets[v + 1]])


@njit(cache=True, nogil=True)
def _sort_by_higher(pairs, rank, rows):  # type: ignore[no-untyped-def]
    """Sort the rows of one lower person by the higher one, stably."""
    if rows.size > 24:
        higher = np.empty(rows.size, dtype=np.int64)
        for i in range(rows.size):
            higher[i] = _ends(pairs, rank, rows[i])[1]
        rows[:] = rows[np.argsort(higher, kind="mergesort")]
        return
    for i in range(1, rows.size):  # insertion sort: most lists are short
        row = rows[i]
        high = _ends(pairs, rank, row)[1]
        j = i
        while j > 0 and _ends(pairs, rank, rows[j - 1])[1] > high:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


@njit(cache=True, nogil=True)
def merge_rows(pairs, rank, labels, order, found, found_labels):  # type: ignore[no-untyped-def]
    """Write each pair once, and where it is first mentioned into `order`; how many, how many are null.

    ``labels`` may be empty. Mentions that disagree leave the label 0.
    """
    count = contrary = 0
    for i in range(order.size):
        row = order[i]
        low, high = _ends(pairs, rank, row)
        if count and found[count - 1, 0] == low and found[count - 1, 1] == high:
            if labels.size and found_labels[count - 1] != labels[row]:
                contrary += found_labels[count - 1] != 0
                found_labels[count - 1] = 0
            continue
        found[count, 0], found[count, 1] = low, high
        if labels.size:
            found_labels[count] = labels[row]
        order[count] = row
        count += 1
    return count, contrary
