"""One order for pairs and people, which follows from who is paired with whom and from nothing else.

Files are sorted: by label, by class, by score. Whatever depends on the order of a file (which pairs are
selected, which batch a pair is dealt to, which tile it is rounded with) would then depend on private
contents, and one changed label could move many pairs: no finite epsilon holds for that. So before anything
else pairs are brought into *canonical order*:

- people in the order of their ids: integers by value, text by code points; without ids by row number;
- in a pair the lower person first, which fixes the sign of its difference;
- pairs ascending, each once.

Rows that mention the same pair are one record. If their labels disagree, the record is *null* (label 0): it
stays in its place and contributes nothing. To refuse it, or to drop it, would tell of labels.

The compiled loops behind `canonical`: a counting sort of pairs, and the same pair once.

At 10^8 pairs memory is what costs: one int32 a pair for the order, and the sorted pairs themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil._compiled import lazy_njit
from pairveil._warn import warn
from pairveil.errors import PrivateNote
from pairveil.records.columns import as_arrow, as_numpy
from pairveil.records.validation import row_blocks

# ---- a counting sort of pairs, and the same pair once --------------------------------------------


@lazy_njit
def _ends(pairs, rank, row):  # type: ignore[no-untyped-def]
    """The two people of a row, the lower one first; an empty `rank` leaves people as they are."""
    a, b = pairs[row, 0], pairs[row, 1]
    if rank.size:
        a, b = rank[a], rank[b]
    return min(a, b), max(a, b)


@lazy_njit
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


@lazy_njit
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


@lazy_njit
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


# ---- records in canonical order -------------------------------------------------------------------

MANY = 1 << 22  # below, memory is no matter, and nothing need be compiled

NULL = 0
"""The label of a pair whose mentions disagree."""


class Records(NamedTuple):
    """Each pair once, in canonical order.

    Attributes
    ----------
    pairs : ndarray of shape (K, 2)
        People by their place in the canonical order; the lower one first.
    labels : ndarray of int8 or None
    positions : ndarray of shape (K,) or None
        Where each pair is first mentioned among the rows given; None where every row is where it was.
    n_repeated : int
        Rows that mention a pair again.
    n_contrary : int
        Pairs whose mentions have different labels.
    """

    pairs: np.ndarray
    labels: np.ndarray | None
    positions: np.ndarray | None
    n_repeated: int
    n_contrary: int

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """Ascending positions, among the rows given, of some of the records."""
        found = chosen if self.positions is None else np.sort(self.positions[chosen])
        return found.astype(np.int64, copy=False)


def order_of_ids(ids: np.ndarray | None) -> np.ndarray | None:
    """The people in the order of their ids; None where they are in it already, or have none.

    Examples
    --------
    >>> order_of_ids(np.array([30, 4, 100])).tolist()
    [1, 0, 2]
    >>> order_of_ids(np.array(["ann", "bob"], dtype=object)) is None
    True
    """
    if ids is None:
        return None
    column = as_arrow(ids)
    if ids.dtype.kind not in "iu":
        column = column.cast(pa.large_string())
    if len(column) < 2 or pc.all(pc.less(column[:-1], column[1:])).as_py():
        return None
    # Arrow compares text as UTF-8, which orders it by code points.
    return as_numpy(pc.sort_indices(column))


def ranks(order: np.ndarray | None) -> np.ndarray | None:
    """The place of each person in an order of people.

    Examples
    --------
    >>> ranks(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    if order is None:
        return None
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def records_of(
    pairs: np.ndarray, labels: np.ndarray | None = None, rank: np.ndarray | None = None
) -> Records:
    """Pairs in canonical order, each once. Arrays that are in it already are returned as they are.

    Parameters
    ----------
    pairs : integer array of shape (K, 2)
        Not below 0, nobody with herself; K below 2**31.
    labels : int8 array of shape (K,), optional
    rank : integer array, optional
        The place of each person in the order of people (`ranks`); by default her number.

    Examples
    --------
    >>> found = records_of(np.array([[2, 1], [1, 0], [1, 2]]), np.array([1, -1, -1], dtype=np.int8))
    >>> found.pairs.tolist(), found.labels.tolist(), found.positions.tolist()
    ([[0, 1], [1, 2]], [-1, 0], [1, 0])
    """
    if rank is None and is_canonical(pairs):
        return Records(pairs, labels, None, 0, 0)
    if len(pairs) <= MANY:
        return _by_numpy(pairs if rank is None else rank[pairs], labels)
    return _by_loops(pairs, labels, rank)


def _by_numpy(pairs: np.ndarray, labels: np.ndarray | None) -> Records:
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    order = np.lexsort((high, low))  # stable: mentions of a pair stay in the order given
    ends = np.stack([low[order], high[order]], axis=1)
    new = np.ones(len(ends), dtype=bool)
    new[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    n_repeated, contrary = len(pairs) - len(first), 0
    if labels is not None:
        least, most = (merge.reduceat(labels[order], first) for merge in (np.minimum, np.maximum))
        contrary = int((least != most).sum())
        labels = np.where(least == most, least, NULL).astype(np.int8)
    return Records(ends[first], labels, order[first], n_repeated, contrary)


def _by_loops(pairs: np.ndarray, labels: np.ndarray | None, rank: np.ndarray | None) -> Records:
    """The same with 13 bytes a pair instead of 40, result included."""

    n_people = int(pairs.max()) + 1 if rank is None else len(rank)
    places = np.empty(0, dtype=np.int64) if rank is None else rank
    given = np.empty(0, dtype=np.int8) if labels is None else labels
    order = np.empty(len(pairs), dtype=np.int32)
    found = np.empty((len(pairs), 2), dtype=np.int32 if n_people < 2**31 else np.int64)
    found_labels = np.empty(len(given), dtype=np.int8)
    sort_rows(pairs, places, n_people, order)
    count, contrary = merge_rows(pairs, places, given, order, found, found_labels)
    kept_labels = None if labels is None else found_labels[:count]
    return Records(found[:count], kept_labels, order[:count], len(pairs) - count, int(contrary))


def is_canonical(pairs: np.ndarray) -> bool:
    """Whether every pair has its lower person first and is greater than the one before it.

    Examples
    --------
    >>> is_canonical(np.array([[0, 2], [1, 2]])), is_canonical(np.array([[0, 2], [0, 1]]))
    (True, False)
    """
    last = (-1, -1)
    for block in row_blocks(len(pairs)):
        low, high = pairs[block, 0], pairs[block, 1]
        if not (low < high).all() or not last < (int(low[0]), int(high[0])):
            return False
        if not ((low[:-1] < low[1:]) | ((low[:-1] == low[1:]) & (high[:-1] < high[1:]))).all():
            return False
        last = (int(low[-1]), int(high[-1]))
    return True


def say_merged(n_repeated: int, where: str = "") -> None:
    """Tell the operator that rows mention a pair again, if any do; ``where`` names the rows.

    A private note: a file may be sorted by label, and then the number of a row tells a label.

    Examples
    --------
    >>> say_merged(0)
    """
    if n_repeated:
        many = n_repeated > 1
        warn(
            f"{n_repeated} pair{'s' if many else ''} appeared before and "
            f"{'were' if many else 'was'} merged{where}",
            PrivateNote,
        )


def say_contrary(n_contrary: int, where: str = "") -> None:
    """Tell the operator that labels disagree, if any do; ``where`` names the rows.

    Examples
    --------
    >>> say_contrary(0)
    """
    if n_contrary:
        one = n_contrary == 1
        warn(
            f"{n_contrary} pair{' has' if one else 's have'} contradicting labels{where} and "
            f"contribute{'s' if one else ''} nothing. Decide which holds, or remove the pair",
            PrivateNote,
        )


def as_index(values: Any) -> np.ndarray:
    """Row numbers as int32 or int64, as the compiled loops take them."""
    array = np.asarray(values)
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)
