"""One order for records and people, which follows from who is with whom and from nothing else.

Files are sorted: by label, by class, by score. Whatever depends on the order of a file (which pairs are
selected, which batch a pair is dealt to, which tile it is rounded with) would then depend on private
contents, and one changed label could move many pairs: no finite epsilon holds for that. So before anything
else records are brought into *canonical order*:

- people in the order of their ids: integers by value, text by code points; without ids by row number;
- in a record the lower person first, which fixes the sign of a pair's difference;
- records ascending, each once.

Rows that mention the same members are one record. If their contents disagree, the record is *null*: it
stays in its place and contributes nothing. To refuse it, or to drop it, would tell of labels.

At 10^8 pairs memory is what costs: one int32 a pair for the order, and the sorted pairs themselves.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil._compiled import lazy_njit
from pairveil.errors import PrivateNote, warn
from pairveil.printable import many
from pairveil.records.kinds import PAIRS, VACANT, RecordKind
from pairveil.records.tables import as_arrow, as_numpy
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

NULL = PAIRS.null
"""The label of a pair whose mentions disagree."""
_FAR = np.iinfo(np.int64).max  # where nobody sits: behind everybody


class Canonical(NamedTuple):
    """Each record once, in canonical order."""

    members: np.ndarray  # (K, m): people by their place in the canonical order; the lower one first
    content: np.ndarray | None
    # (K,): where each record is first mentioned among the rows given; None where every row is where it
    # was
    positions: np.ndarray | None
    n_repeated: int  # rows that mention a record again
    n_contrary: int  # records whose mentions have different contents

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """Ascending positions, among the rows given, of some of the records."""
        found = chosen if self.positions is None else np.sort(self.positions[chosen])
        return found.astype(np.int64, copy=False)


def mentioned(members: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which of the pairs in canonical order each row of ``ends`` mentions: people by their places in it."""
    size = int(members.max()) + 1
    low, high = (column.astype(np.int64) for column in members.T)
    place: np.ndarray = np.searchsorted(
        low * size + high, ends.min(axis=1) * size + ends.max(axis=1)
    )
    return place


def order_of_ids(ids: np.ndarray | None) -> np.ndarray | None:
    """The people in the order of their ids; None where they are in it already, or have none."""
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
    """The place of each person in an order of people."""
    if order is None:
        return None
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def canonical_records(
    members: np.ndarray,
    content: np.ndarray | None = None,
    rank: np.ndarray | None = None,
    kind: RecordKind = PAIRS,
) -> Canonical:
    """Records in canonical order, each once. Arrays that are in it already are returned as they are.

    ``members`` has nobody twice in a row, -1 for nobody, and below 2**31 rows; ``rank`` is each person's
    place in the order of people (`ranks`), by default her number.
    """
    if rank is None and is_canonical(members):
        return Canonical(members, content, None, 0, 0)
    if len(members) <= MANY or kind.follow is not None:
        return _by_numpy(members, content, rank, kind)
    return _by_loops(members, content, rank)


def _by_numpy(
    members: np.ndarray,
    content: np.ndarray | None,
    rank: np.ndarray | None = None,
    kind: RecordKind = PAIRS,
) -> Canonical:
    placed = members if rank is None else rank[members]
    if kind.follow is None:  # two people, both there
        low, high = placed.T
        placed = np.stack([np.minimum(low, high), np.maximum(low, high)], axis=1)
    else:
        placed = np.where(members < 0, _FAR, placed)
        sort = np.argsort(placed, axis=1, kind="stable")
        content = None if content is None else kind.follow(content, sort)
        placed = np.take_along_axis(placed, sort, axis=1)
    order = np.lexsort(placed.T[::-1])  # stable: mentions of a record stay in the order given
    placed = placed[order]
    new = np.ones(len(placed), dtype=bool)
    new[1:] = (placed[1:] != placed[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    found, contrary = placed[first], np.empty(0)
    if kind.follow is not None:
        found[found == _FAR] = VACANT
    if content is not None:
        rows = content[order]
        least, most = (merge.reduceat(rows, first, axis=0) for merge in (np.minimum, np.maximum))
        contrary = least != most if least.ndim == 1 else (least != most).any(axis=1)
        least[contrary] = kind.null
        content = least.astype(np.int8, copy=False)
    n_repeated = len(members) - len(first)
    return Canonical(found, content, order[first], n_repeated, int(contrary.sum()))


def _by_loops(pairs: np.ndarray, labels: np.ndarray | None, rank: np.ndarray | None) -> Canonical:
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
    return Canonical(found[:count], kept_labels, order[:count], len(pairs) - count, int(contrary))


def is_canonical(members: np.ndarray) -> bool:
    """Whether every record has its lower people first and is greater than the one before it."""
    last: tuple[int, ...] = (0,)
    for block in row_blocks(len(members)):
        columns = list(members[block].T)
        if not all((low < high).all() for low, high in pairwise(columns)):
            if not any((column < 0).any() for column in columns):
                return False
            columns = [np.where(column < 0, _FAR, column) for column in columns]
            if not all(((low < high) | (high == _FAR)).all() for low, high in pairwise(columns)):
                return False
        greater = np.zeros(len(columns[0]) - 1, dtype=bool)
        for column in reversed(columns):
            before, after = column[:-1], column[1:]
            greater = (before < after) | ((before == after) & greater)
        if not greater.all() or not last < tuple(int(column[0]) for column in columns):
            return False
        last = tuple(int(column[-1]) for column in columns)
    return True


def say_merged(n_repeated: int, where: str = "", kind: RecordKind = PAIRS) -> None:
    """Tell the operator that rows mention a record again, if any do; ``where`` names the rows.

    A private note: a file may be sorted by label, and then the number of a row tells a label.
    """
    if n_repeated:
        said = many(
            n_repeated,
            f"{kind.one} appeared before and was",
            f"{kind.name} appeared before and were",
        )
        warn(f"{said} merged{where}", PrivateNote)


def say_contrary(n_contrary: int, where: str = "", kind: RecordKind = PAIRS) -> None:
    """Tell the operator that contents disagree, if any do; ``where`` names the rows."""
    if n_contrary:
        have = many(n_contrary, f"{kind.one} has", f"{kind.name} have")
        contribute = "contributes" if n_contrary == 1 else "contribute"
        warn(
            f"{have} contradicting {kind.said}{where} and {contribute} nothing. Decide which holds, "
            f"or remove the {kind.one}",
            PrivateNote,
        )


def as_index(values: Any) -> np.ndarray:
    """Row numbers as int32 or int64, as the compiled loops take them."""
    array = np.asarray(values)
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)
