"""PairSet: people's features once, pairs as row numbers, differences when they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.errors import InputError
from pairveil.pairs.clipping import clip_rows_and_say_so
from pairveil.pairs.resolving import index_pairs
from pairveil.pairs.tables import FeatureTable, PairTable
from pairveil.pairs.validation import check_features, check_labels, check_pairs, row_blocks


@dataclass(frozen=True, eq=False, repr=False)
class PairSet:
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
        +1 similar, -1 dissimilar.
    ids : array of shape (n,), optional
        What the people are called outside.
    feature_names : sequence of str, optional

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

    def __post_init__(self) -> None:
        names = None if self.feature_names is None else tuple(map(str, self.feature_names))
        features = check_features(self.features, names)
        n_people = features.shape[0]
        pairs = check_pairs(self.pairs, n_people)
        labels = None if self.labels is None else check_labels(self.labels, len(pairs))
        ids = None if self.ids is None else np.asarray(self.ids)
        if ids is not None and ids.shape != (n_people,):
            raise InputError(f"{n_people} people need {n_people} ids, one each")
        self._set(features, pairs, labels, ids, names)

    def _set(self, *values: Any) -> None:
        names = ("features", "pairs", "labels", "ids", "feature_names")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def join(
        cls, features: FeatureTable, pairs: PairTable, data_norm: float | None = None
    ) -> PairSet:
        """Put pairs of ids and people's features together.

        Parameters
        ----------
        features : FeatureTable
        pairs : PairTable
        data_norm : float, optional
            Rows longer than this (l2) are clipped to it, each by its own length.

        Returns
        -------
        PairSet

        Raises
        ------
        InputError
            An id without features, a pair of a person with herself, contradicting labels.

        Warns
        -----
        DataWarning
            Repeated pairs were merged, or rows were clipped.

        Examples
        --------
        >>> people = FeatureTable(ids=["ann", "bob", "cid"], values=[[0.0], [0.5], [1.0]])
        >>> listed = PairTable(left=["cid", "ann"], right=["bob", "cid"], labels=[1, -1])
        >>> PairSet.join(people, listed, data_norm=1.0).pairs.tolist()
        [[2, 1], [0, 2]]
        """
        found = index_pairs(pairs, features.ids)
        values = features.values
        if data_norm is not None:
            values = clip_rows_and_say_so(values, data_norm, stacklevel=2)
        joined = object.__new__(cls)  # the tables have been checked already
        joined._set(values, found.pairs, found.labels, features.ids, features.names)
        return joined

    def __repr__(self) -> str:
        labelled = "unlabelled" if self.labels is None else "labelled"
        return (
            f"PairSet({self.n_people} people, {self.n_pairs} pairs, "
            f"{self.n_features} features, {labelled})"
        )

    @property
    def n_people(self) -> int:
        """Rows of the features."""
        return int(self.features.shape[0])

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return int(self.features.shape[1])

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
        return self.features[chosen[:, 0]] - self.features[chosen[:, 1]]

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
        part = object.__new__(type(self))  # checked when the whole was made
        part._set(self.features, pairs, labels, self.ids, self.feature_names)
        return part

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
        return row_blocks(self.n_pairs, size)
