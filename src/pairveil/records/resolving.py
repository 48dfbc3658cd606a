"""From ids to row numbers, and the same pair once: the joining of pairs with people.

Hashing and one sort, by arrow and numpy: near-linear in the number of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from pairveil.errors import InputError
from pairveil.records.canonical import (
    NULL,
    order_of_ids,
    ranks,
    records_of,
    say_contrary,
    say_merged,
)
from pairveil.records.columns import as_arrow, as_ids, as_numpy, ids_as_text, numbered, same_kind
from pairveil.records.similar_ids import folded_ids
from pairveil.records.tables import PairTable
from pairveil.records.validation import name_rows, refuse_self_pairs


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
        Where each pair stands in the `PairTable` (its first mention), ascending: pairs stay in the order
        of the table. What depends on an order takes the canonical one (`pairveil.records.canonical`).
    """

    pairs: np.ndarray
    labels: np.ndarray | None
    ids: np.ndarray
    positions: np.ndarray


def index_pairs(table: PairTable, ids: np.ndarray | None = None) -> IndexedPairs:
    """Replace ids by row numbers and merge repeated pairs; (a, b) and (b, a) are the same pair.

    ``ids``: the people that have features, in row order. Without it everybody who is in a pair is
    numbered in the order of ids: enough for the graph, which needs no features.

    Raises InputError: a pair names somebody not in ``ids``; a person is paired with herself.

    Warns
    -----
    PrivateNote
        The same pair was there more than once, and was merged. Where its labels contradict each other,
        its label is 0: it contributes nothing.

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
        pairs = look_up(table, people)
    refuse_self_pairs(pairs, table.rows)
    kept, labels = _merge(pairs, table.labels, table.rows)
    return IndexedPairs(pairs if len(kept) == len(pairs) else pairs[kept], labels, people, kept)


def _number_everybody(table: PairTable) -> tuple[np.ndarray, np.ndarray]:
    both = np.empty(2 * table.n_pairs, dtype=table.left.dtype)
    both[0::2], both[1::2] = table.left, table.right
    people, rows = numbered(both)
    pairs = rows.reshape(-1, 2)
    order = order_of_ids(people)
    places = ranks(order)
    if order is None or places is None:
        return pairs, people
    return places.astype(np.int32)[pairs], people[order]


def look_up(table: PairTable, people: np.ndarray) -> np.ndarray:
    """Row numbers among ``people`` of every pair of a table, repeated ones too, shape (K, 2)."""
    assert table.rows is not None
    return rows_of_ids((table.left, table.right), people, "pairs", table.rows, table.notes)


def rows_of_ids(
    columns: Sequence[np.ndarray],
    people: np.ndarray,
    what: str,
    lines: np.ndarray,
    notes: Sequence[str] = (),
) -> np.ndarray:
    """Row numbers among ``people`` of the ids in equally long columns, shape (K, number of columns).

    Parameters
    ----------
    columns : sequence of arrays of ids
        All integers, or all text.
    what : str
        What a row of the columns is called, in the plural.
    lines : array of shape (K,)
        The numbers by which messages name rows.
    notes : sequence of str
        Said with an error.

    Examples
    --------
    >>> rows_of_ids([np.array([7, 9]), np.array([9, 8])], np.array([7, 8, 9]), "pairs", np.arange(2))
    array([[0, 2],
           [2, 1]], dtype=int32)
    """
    found = look_up_some(columns, people)
    unknown = np.any(found < 0, axis=1)
    if unknown.any():
        message = unknown_ids(columns, people, unknown, what, lines)
        raise InputError(". ".join([message, *notes]))
    return found


def look_up_some(columns: Sequence[np.ndarray], people: np.ndarray) -> np.ndarray:
    """Row numbers among ``people`` of the ids in equally long columns; -1 for who is not there."""
    found = np.empty((len(columns[0]), len(columns)), dtype=np.int32)
    known = same_kind(columns[0][:1], people)[1]
    value_set = as_arrow(known)
    for side, column in enumerate(columns):
        distinct, rows = numbered(column)
        asked = ids_as_text(distinct) if known.dtype.kind == "O" else distinct
        places = pc.index_in(as_arrow(asked), value_set=value_set)
        found[:, side] = as_numpy(pc.fill_null(places, -1))[rows]
    return found


def unknown_ids(
    columns: Sequence[np.ndarray],
    people: np.ndarray,
    unknown: np.ndarray,
    what: str,
    lines: np.ndarray,
) -> str:
    """How many rows name somebody without features, the first of them, and what may be the cause."""
    at = np.flatnonzero(unknown)
    message = (
        f"{at.size} of {len(unknown)} {what} name{'s' if at.size == 1 else ''} an id without "
        f"features (first: {name_rows(lines[at[:1]])})"
    )
    if columns[0].dtype.kind != people.dtype.kind:
        message += (
            ". The ids are integers in one table and text in the other: compare leading zeros "
            "and spaces"
        )
    known = same_kind(columns[0][:1], people)[1]
    if _known_when_folded([column[at] for column in columns], known):
        message += (
            ". They are there in another case, with outer spaces or in another Unicode form: "
            "merge_similar_ids=True takes them as one"
        )
    return message


def _known_when_folded(columns: Sequence[np.ndarray], known: np.ndarray) -> bool:
    """Whether folding ids would find somebody for every one of the ids."""
    if known.dtype.kind != "O":
        return False
    people = as_arrow(ids_as_text(folded_ids(known)))
    texts = np.concatenate([ids_as_text(column) for column in columns])
    ends = as_arrow(ids_as_text(folded_ids(numbered(texts)[0])))
    return bool(pc.all(pc.is_in(ends, value_set=people)).as_py())


def _merge(
    pairs: np.ndarray, labels: np.ndarray | None, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Positions of the pairs to keep, the first mention of each, and their labels."""
    found = records_of(pairs, labels)
    if not found.n_repeated:
        return np.arange(len(pairs)), labels
    assert found.positions is not None
    in_file = np.argsort(found.positions)
    kept = found.positions[in_file].astype(np.int64)
    again = np.ones(len(pairs), dtype=bool)
    again[kept] = False
    say_merged(found.n_repeated, f" ({name_rows(rows[again])})")
    if found.content is None:
        return kept, None
    contrary = np.sort(found.positions[found.content == NULL])
    say_contrary(found.n_contrary, f" (first in {name_rows(rows[contrary])})")
    return kept, found.content[in_file]
