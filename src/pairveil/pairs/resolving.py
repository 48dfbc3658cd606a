"""From ids to row numbers, and the same pair once: the joining of pairs with people.

Hashing and one sort, by arrow and numpy: near-linear in the number of pairs.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairveil.errors import DataWarning, InputError
from pairveil.pairs.columns import as_ids, numbered, same_kind
from pairveil.pairs.tables import PairTable
from pairveil.pairs.validation import name_rows, refuse_self_pairs


class IndexedPairs(NamedTuple):
    """Pairs as row numbers of people, each pair once.

    Attributes
    ----------
    pairs : ndarray of shape (K, 2)
        People as positions in ``ids``.
    labels : ndarray of int8 or None
    ids : ndarray
        The people.
    positions : ndarray of shape (K,)
        Where each pair stands in the `PairTable` (its first mention), ascending.
    """

    pairs: np.ndarray
    labels: np.ndarray | None
    ids: np.ndarray
    positions: np.ndarray


def index_pairs(table: PairTable, ids: np.ndarray | None = None) -> IndexedPairs:
    """Replace ids by row numbers and merge repeated pairs; (a, b) and (b, a) are the same pair.

    Parameters
    ----------
    table : PairTable
    ids : ndarray, optional
        The people that have features, in row order. Without it everybody who is in a pair is
        numbered in order of appearance: enough for the graph, which needs no features.

    Returns
    -------
    IndexedPairs

    Raises
    ------
    InputError
        A pair names somebody not in ``ids``; a person is paired with herself; the same pair has
        contradicting labels.

    Warns
    -----
    DataWarning
        The same pair with the same label was there more than once, and was merged.

    Examples
    --------
    >>> found = index_pairs(PairTable(left=["ann", "bob"], right=["bob", "cid"]))
    >>> found.pairs.tolist(), found.ids.tolist()
    ([[0, 1], [1, 2]], ['ann', 'bob', 'cid'])
    """
    assert table.rows is not None
    if ids is None:
        pairs, people = _number_everybody(table)
    else:
        people = as_ids(ids)
        pairs = _look_up(table, people)
    refuse_self_pairs(pairs, table.rows)
    kept = _merge(pairs, table.labels, table.rows, len(people))
    if len(kept) == len(pairs):
        return IndexedPairs(pairs, table.labels, people, kept)
    labels = None if table.labels is None else table.labels[kept]
    return IndexedPairs(pairs[kept], labels, people, kept)


def _number_everybody(table: PairTable) -> tuple[np.ndarray, np.ndarray]:
    # Row by row (left, right, left, ...), so that numbering follows the file's order.
    both = np.empty(2 * table.n_pairs, dtype=table.left.dtype)
    both[0::2], both[1::2] = table.left, table.right
    people, rows = numbered(both)
    return rows.reshape(-1, 2), people


def _look_up(table: PairTable, people: np.ndarray) -> np.ndarray:
    left, known = same_kind(table.left, people)
    right, _ = same_kind(table.right, people)
    value_set = pa.array(known)
    pairs = np.empty((table.n_pairs, 2), dtype=np.int32)
    for side, column in enumerate((left, right)):
        distinct, rows = numbered(column)
        found = pc.index_in(pa.array(distinct), value_set=value_set)
        pairs[:, side] = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)[rows]
    unknown = np.flatnonzero((pairs < 0).any(axis=1))
    if unknown.size:
        one = unknown.size == 1
        message = (
            f"{unknown.size} of {table.n_pairs} pairs name{'s' if one else ''} an id without "
            f"features (first: {name_rows(table.rows[unknown[:1]])})"  # type: ignore[index]
        )
        if table.left.dtype.kind != people.dtype.kind:
            message += (
                ". The ids are integers in one table and text in the other: compare leading zeros "
                "and spaces"
            )
        for note in table.notes:
            message += f". {note}"
        raise InputError(message)
    return pairs


def _merge(
    pairs: np.ndarray, labels: np.ndarray | None, rows: np.ndarray, n_people: int
) -> np.ndarray:
    """Positions of the pairs to keep: the first mention of each."""
    low = np.minimum(pairs[:, 0], pairs[:, 1]).astype(np.int64)
    key = low * n_people + np.maximum(pairs[:, 0], pairs[:, 1])
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    if not repeats.size:
        return np.arange(len(pairs))
    if labels is not None:
        contrary = repeats[labels[order[repeats]] != labels[order[repeats - 1]]]
        if contrary.size:
            shown = ", ".join(
                f"rows {rows[order[at - 1]]} and {rows[order[at]]}" for at in contrary[:5]
            )
            more = f" and {contrary.size - 5} more" if contrary.size > 5 else ""
            raise InputError(
                f"the same pair has contradicting labels: {shown}{more}. Decide, or remove both"
            )
    dropped = order[repeats]
    warnings.warn(
        f"{dropped.size} pair{'s' if dropped.size > 1 else ''} appeared before and "
        f"{'were' if dropped.size > 1 else 'was'} merged ({name_rows(rows[np.sort(dropped)])})",
        DataWarning,
        stacklevel=4,
    )
    keep = np.ones(len(pairs), dtype=bool)
    keep[dropped] = False
    return np.flatnonzero(keep)
