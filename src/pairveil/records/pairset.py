"""PairSet: people's features once, pairs as row numbers, differences when they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pairveil.errors import InputError
from pairveil.records.canonical import (
    NULL,
    as_index,
    order_of_ids,
    ranks,
    records_of,
    say_contrary,
    say_merged,
)
from pairveil.records.clipping import clip_rows_and_say_so
from pairveil.records.records import RecordsOfPeople
from pairveil.records.resolving import index_pairs
from pairveil.records.shared_values import numbered
from pairveil.records.similar_ids import say_similar
from pairveil.records.tables import FeatureTable, PairTable
from pairveil.records.validation import check_labels, check_pairs


@dataclass(frozen=True, eq=False, repr=False)
class PairSet(RecordsOfPeople):
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
    """

    features: Any
    pairs: np.ndarray
    labels: np.ndarray | None = None
    ids: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None
    together: np.ndarray | None = None

    kind = "pairs"  # of records, for what a protected unit costs
    of_each = ("pairs", "labels")

    def __post_init__(self) -> None:
        self._check_people()
        pairs = check_pairs(self.pairs, self.n_people)
        labels = None if self.labels is None else check_labels(self.labels, len(pairs))
        shared = None if self.together is None else numbered(self.together, self.n_people)
        self._set(pairs=pairs, labels=labels, together=shared)

    @classmethod
    def join(
        cls,
        features: FeatureTable,
        pairs: PairTable,
        data_norm: float | None = None,
        together: Any = None,
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
        found = index_pairs(pairs, features.ids)
        values = features.values
        if data_norm is not None:
            values = clip_rows_and_say_so(values, data_norm)
        return cls.checked_before(
            features=values,
            pairs=found.pairs,
            labels=found.labels,
            ids=features.ids,
            feature_names=features.names,
            together=None if together is None else numbered(together, len(features.ids)),
        )

    def __repr__(self) -> str:
        labelled = "unlabelled" if self.labels is None else "labelled"
        return (
            f"PairSet({self.n_people} people, {self.n_pairs} pairs, "
            f"{self.n_features} features, {labelled})"
        )

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def n_records(self) -> int:
        """Records that a fit sums over: the pairs."""
        return len(self.pairs)

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
        null = (self.labels if rows is None else self.labels[rows]) == NULL
        return _without(found, null) if null.any() else found

    def canonical(self) -> tuple[PairSet, np.ndarray | None]:
        """The same records in canonical order (`pairveil.records.canonical`), and where each was first.

        Returns
        -------
        (PairSet, ndarray or None)
            People by id, pairs ascending and each once; the position of each among the pairs of this
            set. None where nothing had to move: then it is this very set.

        Warns
        -----
        PrivateNote
            The same pair was there more than once.

        Examples
        --------
        >>> import numpy as np
        >>> data = PairSet(np.eye(3), [[2, 1], [1, 0]], [1, -1], ids=["zoe", "bob", "ann"])
        >>> ordered, positions = data.canonical()
        >>> ordered.pairs.tolist(), ordered.labels.tolist(), ordered.ids.tolist()
        ([[0, 1], [1, 2]], [1, -1], ['ann', 'bob', 'zoe'])
        """
        people = order_of_ids(self.ids)
        records = records_of(as_index(self.pairs), self.labels, ranks(people))
        if records.positions is None:
            return self, None
        say_merged(records.n_repeated)
        say_contrary(records.n_contrary)
        shared = self.together
        if people is not None and shared is not None:  # numbers follow the ids' order too
            shared = numbered(shared[people], len(people))
        moved = self._changed(
            pairs=records.pairs, labels=records.labels, together=shared, **self._people_in(people)
        )
        return moved, records.positions

    def emptied(self, null: np.ndarray) -> PairSet:
        """The same pairs, of which some are null: they stay in their place and contribute nothing.

        Examples
        --------
        >>> import numpy as np
        >>> PairSet(np.eye(3), [[0, 1], [1, 2]], [1, -1]).emptied(np.array([True, False])).labels
        array([ 0, -1], dtype=int8)
        """
        if self.labels is None:
            raise InputError("pairs without labels contribute nothing as they are")
        labels = np.where(null, NULL, self.labels).astype(np.int8)
        return self._changed(labels=labels)

    def subset(self, indices: Any) -> PairSet:
        """The pairs at ``indices`` (as `select_pairs` returns them); features are shared.

        Examples
        --------
        >>> import numpy as np
        >>> PairSet(np.eye(3), [[0, 1], [1, 2]]).subset([1]).pairs
        array([[1, 2]])
        """
        pairs = self.pairs[indices]
        if len(pairs) == 0:
            raise InputError("there are no pairs")
        labels = None if self.labels is None else self.labels[indices]
        return self._changed(pairs=pairs, labels=labels)

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

    def blocks(self, size: int) -> Iterator[slice]:
        """Slices of at most ``size`` pairs that cover all of them in order.

        Examples
        --------
        >>> import numpy as np
        >>> people = PairSet(np.eye(3), [[0, 1], [1, 2], [0, 2]])
        >>> [people.differences(block).shape for block in people.blocks(2)]
        [(2, 3), (1, 3)]
        """
        if size < 1:
            raise InputError("a block holds at least one pair")
        return super().blocks(size)


def _without(differences: Any, null: np.ndarray) -> Any:
    """Differences of which some are zero: such a pair contributes nothing to any statistic."""
    if not sparse.issparse(differences):
        differences[null] = 0
        return differences
    rows = sparse.csr_array(differences)
    rows.data[np.repeat(null, np.diff(rows.indptr))] = 0
    return rows
