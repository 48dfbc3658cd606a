"""What all sets of records over a table of people have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from pairveil.errors import InputError
from pairveil.records.columns import as_ids
from pairveil.records.similar_ids import say_similar
from pairveil.records.tables import refuse_repeated
from pairveil.records.validation import check_features, row_blocks


class RecordsOfPeople:
    """Base of frozen dataclasses with ``features`` (a row a person), ``ids`` and ``feature_names``."""

    features: Any
    ids: np.ndarray | None
    feature_names: tuple[str, ...] | None

    kind: ClassVar[str]
    of_each: ClassVar[tuple[str, ...]]
    """Fields with one entry a record. The first holds rows of people (-1: nobody), or records are people."""

    @classmethod
    def checked_before(cls, **contents: Any) -> Self:
        """A set whose contents were checked elsewhere; what is not named has its default."""
        made = object.__new__(cls)
        made._set(**contents)
        return made

    def _set(self, **contents: Any) -> None:
        for name, value in contents.items():
            object.__setattr__(self, name, value)

    def _changed(self, **contents: Any) -> Self:
        """The same with other contents, which must have been checked."""
        return self.checked_before(**{**vars(self), **contents})

    def _check_people(self) -> None:
        """Check the table of people, and who they are."""
        names = None if self.feature_names is None else tuple(map(str, self.feature_names))
        self._set(features=check_features(self.features, names), feature_names=names)
        if self.ids is None:
            return
        ids, n_people = as_ids(self.ids), self.n_people
        if len(ids) != n_people:
            raise InputError(f"{n_people} people need {n_people} ids, one each")
        # Of one person in two rows, each row would count as a person: kappa would be too small.
        refuse_repeated(ids)
        say_similar("the people", ids)
        self._set(ids=ids)

    @property
    def n_people(self) -> int:
        """Rows of the features."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return int(self.features.shape[1])

    @property
    def n_records(self) -> int:
        """Records that a fit sums over."""
        raise NotImplementedError

    def blocks(self, size: int) -> Iterator[slice]:
        """Slices of at most ``size`` records that cover all of them in order."""
        return row_blocks(self.n_records, size)

    def with_features(self, features: Any) -> Self:
        """The same records of people with other features, which must have been checked."""
        return self._changed(features=features)

    def part(self, rows: slice, *, own_people: bool = True) -> Self:
        """Some records, with the features of their own people only, by default: what another machine sums."""
        taken = {name: np.array(getattr(self, name)[rows]) for name in self.of_each}
        first = self.of_each[0]
        if taken[first].ndim == 1:
            return self._changed(features=self.features[rows], ids=None, **taken)
        if own_people:
            people, places = np.unique(taken[first], return_inverse=True)
            vacant = int(people[0] < 0)
            taken[first] = (places.reshape(taken[first].shape) - vacant).astype(taken[first].dtype)
            taken["features"] = self.features[people[vacant:]]
        return self._changed(ids=None, **taken)

    def _people_in(self, order: np.ndarray | None) -> dict[str, Any]:
        """Features and ids of the people in another order."""
        if order is None:
            return {}
        return {
            "features": self.features[order],
            "ids": None if self.ids is None else self.ids[order],
        }
