"""Labelled pairs.

`PairSet`: people's features once, pairs as row numbers, differences when they are needed.

`CountedPairs`: the contents belong to the pair itself: comparison levels, or a score. A pair comes with its
own row of values, and statistics count with it: contributions are never negative, which makes replacing a
pair cheaper (docs/theory/records.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pairveil.errors import InputError, PrivateNote, warn
from pairveil.foreign import is_sparse
from pairveil.printable import many
from pairveil.records.canonical import canonical_records, mentioned, order_of_ids, ranks, say_merged
from pairveil.records.dirt import sifted
from pairveil.records.identity import (
    index_pairs,
    look_up_some,
    say_similar,
    together_digest,
    value_numbers,
)
from pairveil.records.kinds import COUNTED_PAIRS, PAIRS
from pairveil.records.records import Records, face
from pairveil.records.tables import FeatureTable, PairTable, as_ids, numbered, refuse_repeated
from pairveil.records.validation import (
    check_labels,
    check_members,
    clip_rows_and_say_so,
    without_levels,
)


class PairSet(Records):
    """Labelled pairs of people.

    Features are stored once; a pair is two row numbers. The difference of a pair's features, the
    only thing a metric learns from, is formed for the pairs asked for.

    Parameters
    ----------
    features : ndarray or scipy sparse matrix of shape (n, d)
        One row a person, finite. float32 and float64 stay as they are.
    pairs : integer array of shape (K, 2)
        Row numbers of two different people.
    labels : array of shape (K,), optional
        +1 similar, -1 dissimilar. `join` writes 0 for a pair whose mentions have different labels:
        it is *null* and contributes nothing.
    ids : array of shape (n,), optional
        What the people are called outside: integers or text, each once.
    feature_names : sequence of str, optional
    together : array of shape (n,), optional
        A public value of each person: a household, a site. People with equal values change together, and
        the unit 'person' covers all of them; somebody without one stands alone.

    Examples
    --------
    >>> import numpy as np
    >>> people = PairSet(np.eye(3), pairs=[[0, 1], [1, 2]], labels=[1, -1])
    >>> people
    PairSet(3 people, 2 pairs, 3 features, labelled)
    >>> people.differences([1])
    array([[ 0.,  1., -1.]])
    >>> people.subset([1]).pairs, people.emptied(np.array([True, False])).labels
    (array([[1, 2]]), array([ 0, -1], dtype=int8))
    >>> [people.differences(block).shape for block in people.blocks(1)]
    [(1, 3), (1, 3)]
    """

    record_kind = PAIRS
    pairs = face("members", "Row numbers of two people each.")
    labels = face("content", "+1 similar, -1 dissimilar, 0 null; None where there are none.")
    n_pairs = face("n_records", "Number of pairs.")

    def __init__(
        self,
        features: Any,
        pairs: Any,
        labels: Any = None,
        ids: Any = None,
        feature_names: Any = None,
        together: Any = None,
    ) -> None:
        self._set_people(features, ids, feature_names)
        members = check_members(pairs, PAIRS, self.n_people)
        self._set(
            members=members,
            content=None if labels is None else check_labels(labels, len(members)),
            together=None if together is None else value_numbers(together, self.n_people),
        )

    @classmethod
    def join(
        cls,
        features: FeatureTable,
        pairs: PairTable,
        data_norm: float | None = None,
        together: Any = None,
        leave_out: bool = False,
    ) -> PairSet:
        """Put pairs of ids and people's features together.

        Parameters
        ----------
        features : FeatureTable
        pairs : PairTable
        data_norm : float, optional
            Rows longer than this (l2) are clipped to it, each by its own length.
        together : array, optional
            A public value of each row of the features: see `PairSet`.
        leave_out : bool
            Leave out pairs of a person with herself and of ids without features, instead of refusing them.

        Returns
        -------
        PairSet

        Raises
        ------
        InputError
            An id without features, a pair of a person with herself.

        Warns
        -----
        PrivateNote
            Repeated pairs were merged, pairs with contradicting labels became null, rows were clipped.
        IdentityWarning
            Ids that may be one person's.

        Examples
        --------
        >>> people = FeatureTable(ids=["ann", "bob", "cid"], values=[[0.0], [0.5], [1.0]])
        >>> listed = PairTable(left=["cid", "ann"], right=["bob", "cid"], labels=[1, -1])
        >>> PairSet.join(people, listed, data_norm=1.0).pairs.tolist()
        [[2, 1], [0, 2]]
        """
        say_similar("the features", features.ids)
        if leave_out:
            pairs, _ = sifted(features, pairs, leave_out=True)
        found = index_pairs(pairs, features.ids)
        values, null = features.readable()
        if data_norm is not None:
            values = clip_rows_and_say_so(values, data_norm)
        joined = cls.checked_before(
            features=values,
            members=found.pairs,
            content=found.labels,
            ids=features.ids,
            feature_names=features.names,
            together=None if together is None else value_numbers(together, len(features.ids)),
        )
        lost = null[joined.pairs].any(axis=1)
        return joined.emptied(lost) if lost.any() and joined.labels is not None else joined

    def __repr__(self) -> str:
        labelled = "unlabelled" if self.labels is None else "labelled"
        return (
            f"PairSet({self.n_people} people, {self.n_pairs} pairs, "
            f"{self.n_features} features, {labelled})"
        )

    def contents(self, rows: Any = None) -> tuple[Any, np.ndarray]:
        """What a statistic sees of some records: differences in float64, and labels."""
        assert self.labels is not None
        labels = self.labels if rows is None else self.labels[rows]
        return self.differences(rows).astype(np.float64, copy=False), labels

    def differences(self, rows: Any = None) -> Any:
        """``x_a - x_b`` of the pairs asked for, of the features' kind (dense or CSR) and dtype.

        Parameters
        ----------
        rows : slice, integer or boolean array, optional
            Which pairs. Without it all of them at once: n_pairs x n_features numbers; use `blocks`
            for more than a few thousand.

        Examples
        --------
        >>> import numpy as np
        >>> PairSet(np.array([[1.0], [4.0]]), [[0, 1]]).differences()
        array([[-3.]])
        """
        chosen = self.pairs if rows is None else self.pairs[rows]
        found = self.features[chosen[:, 0]] - self.features[chosen[:, 1]]
        if self.labels is None:
            return found
        null = (self.labels if rows is None else self.labels[rows]) == PAIRS.null
        return _without(found, null) if null.any() else found

    def occupied(self, indices: Any) -> np.ndarray:
        """Those of ``indices`` whose pairs have contents: null pairs add nothing to any sum.

        Examples
        --------
        >>> import numpy as np
        >>> people = [[1.0], [0.0], [0.0]]
        >>> PairSet(people, [[0, 1], [1, 2]]).occupied(np.arange(2))
        array([0])
        """
        contents = np.asarray(abs(self.differences(indices)).sum(axis=1)).ravel()
        found: np.ndarray = np.asarray(indices)[contents > 0]
        return found


def _without(differences: Any, null: np.ndarray) -> Any:
    """Differences of which some are zero: such a pair contributes nothing to any statistic."""
    if not is_sparse(differences):
        differences[null] = 0
        return differences
    rows = differences.tocsr()
    rows.data[np.repeat(null, np.diff(rows.indptr))] = 0
    return rows


# ---- pairs with values of their own --------------------------------------------------------------


class CountedPairs(Records):
    """Pairs of records with a row of values each, in canonical order; `counted_pairs` makes them.

    ``pairs`` are row numbers in ``ids``, and None where nobody said who is compared with whom; ``together``
    has the number of each record's value in the column that says which people change together, ``column``
    its name.
    """

    record_kind = COUNTED_PAIRS
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
    records = canonical_records(ends, labels)
    if records.positions is None:
        return CountedPairs(values, labels, ends, ids, names, *shared), np.arange(len(values))
    say_merged(records.n_repeated)
    at = records.positions
    found = CountedPairs(
        values[at], np.asarray(records.content), records.members, ids, names, *shared
    )
    contrary = _contrary(values, ends, records)
    if contrary.any():
        warn(
            many(int(contrary.sum()), "pair is", "pairs are")
            + " there twice with different contents, or with a label that cannot be read, and add nothing",
            PrivateNote,
        )
    return found.emptied(contrary | (found.labels == COUNTED_PAIRS.null)), at


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
    listed = np.asarray(without_levels(pairs))
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
    """Which pairs have mentions that differ, or none with a label: which one holds nobody knows."""
    contrary = np.zeros(len(records.members), dtype=bool)
    if records.n_repeated == 0:
        return contrary
    place = mentioned(records.members, ends)
    differs = (values != values[records.positions[place]]).any(axis=1)
    contrary[place[differs]] = True
    nulled = np.asarray(records.content) == COUNTED_PAIRS.null
    found: np.ndarray = contrary | nulled & (np.bincount(place) > 1)
    return found
