"""Labelled pairs whose contents belong to the pair itself: comparison levels, or a score.

A `PairSet` holds features of people and takes differences. Here a pair comes with its own row of values, and
statistics count with it: contributions are never negative, which makes replacing a pair cheaper
(docs/theory/records.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pairveil._warn import warn
from pairveil.errors import InputError, PrivateNote
from pairveil.records.canonical import order_of_ids, ranks, records_of, say_merged
from pairveil.records.columns import as_ids, numbered
from pairveil.records.identity import look_up_some, say_similar, together_digest, value_numbers
from pairveil.records.kinds import COUNTED_PAIRS
from pairveil.records.records import Records, face
from pairveil.records.tables import refuse_repeated


class CountedPairs(Records):
    """Pairs of records with a row of values each, in canonical order; `counted_pairs` makes them.

    ``pairs`` are row numbers in ``ids``, and None where nobody said who is compared with whom; ``together``
    has the number of each record's value in the column that says which people change together, ``column``
    its name.
    """

    row = COUNTED_PAIRS
    values = face("features", "Contents of each pair.")
    labels = face("content", "+1 match, -1 no match, 0 null.")
    pairs = face("members", "Row numbers in ``ids``.")
    column: str | None

    def __init__(
        self,
        values: np.ndarray,
        labels: np.ndarray,
        pairs: np.ndarray | None = None,
        ids: np.ndarray | None = None,
        feature_names: tuple[str, ...] | None = None,
        together: np.ndarray | None = None,
        column: str | None = None,
    ) -> None:
        self._set(features=values, content=labels, members=pairs, ids=ids)
        self._set(feature_names=feature_names, together=together, column=column)

    def __repr__(self) -> str:
        return f"CountedPairs({self.n_records} pairs, {self.n_features} columns)"

    def contents(self, rows: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """What a statistic sees of some pairs: their values, as they are, and labels."""
        chosen = slice(None) if rows is None else rows
        return self.values[chosen], self.labels[chosen]


def counted_pairs(
    values: np.ndarray,
    labels: np.ndarray,
    pairs: Any = None,
    names: tuple[str, ...] | None = None,
    together: Mapping[Any, Any] | None = None,
) -> tuple[CountedPairs, np.ndarray]:
    """Pairs in canonical order, each once, and where each was first among the rows given."""
    if pairs is None:
        if together is not None:
            raise InputError("together goes with pairs, which name the people")
        return CountedPairs(values, labels, None, None, names), np.arange(len(values))
    ids, ends = record_numbers(pairs, len(values))
    shared = (None, None) if together is None else _sharing(together, ids)
    records = records_of(ends, labels)
    if records.positions is None:
        return CountedPairs(values, labels, ends, ids, names, *shared), np.arange(len(values))
    say_merged(records.n_repeated)
    at = records.positions
    found = CountedPairs(
        values[at], np.asarray(records.content), records.members, ids, names, *shared
    )
    contrary = _contrary(values, ends, records) | (found.labels == COUNTED_PAIRS.null)
    if contrary.any():
        warn(
            f"{int(contrary.sum())} pairs are there twice with different contents, or with a label that "
            "cannot be read, and contribute nothing",
            PrivateNote,
        )
    return found.emptied(contrary), at


def _sharing(together: Mapping[Any, Any], ids: np.ndarray) -> tuple[np.ndarray, str | None]:
    """The number of each record's value, and the column's name, which is that of all its people."""
    people = as_ids(np.array(list(together), dtype=object), "the ids of together")
    refuse_repeated(people)
    values = value_numbers(list(together.values()), len(people))
    rows = look_up_some((ids,), people)[:, 0]
    if unknown := np.count_nonzero(rows < 0):
        raise InputError(f"together has no value for {unknown} people of the pairs")
    return values[rows], together_digest(people, values)


def record_numbers(pairs: Any, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """The records' ids in order, and each row's two records as places among them."""
    listed = np.asarray(pairs)
    if listed.shape != (n_pairs, 2):
        raise InputError(
            f"pairs must name the two records of each of the {n_pairs} rows: shape (n, 2)"
        )
    ids, numbers = numbered(as_ids(listed.reshape(-1), "the ids of the pairs"))
    say_similar("the pairs", ids)
    order = order_of_ids(ids)
    ids = ids if order is None else ids[order]
    places = ranks(order)
    ends = (numbers if places is None else places[numbers]).reshape(-1, 2).astype(np.int64)
    same = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if same.size:
        raise InputError(f"row {same[0] + 1} of pairs compares a record with itself")
    return ids, ends


def _contrary(values: np.ndarray, ends: np.ndarray, records: Any) -> np.ndarray:
    """Which pairs have mentions with different values: which one holds nobody knows."""
    contrary = np.zeros(len(records.members), dtype=bool)
    if records.n_repeated == 0:
        return contrary
    size = int(ends.max()) + 1
    keys = records.members[:, 0] * size + records.members[:, 1]  # ascending, as canonical pairs are
    place = np.searchsorted(keys, ends.min(axis=1) * size + ends.max(axis=1))
    differs = (values != values[records.positions[place]]).any(axis=1)
    contrary[place[differs]] = True
    return contrary
