"""People: a record is a person with features and a class, and no pair is ever formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairveil.errors import InputError
from pairveil.records.records import RecordsOfPeople
from pairveil.records.validation import check_features

NO_CLASS = -1
"""The class of a null person, who contributes nothing to any sum."""


@dataclass(frozen=True, eq=False, repr=False)
class People(RecordsOfPeople):
    """People with one class each.

    Parameters
    ----------
    features : ndarray or scipy sparse matrix of shape (n, d)
    classes : integer array of shape (n,)
        Position of each person's class in the public list of classes; -1 for none.
    n_classes : int
        Length of that list. Public: it must not be read off the classes of the people.
    ids : array of shape (n,), optional

    Examples
    --------
    >>> People(np.eye(3), [0, 1, 1], n_classes=2)
    People(3 people of 2 classes, 3 features)
    """

    features: Any
    classes: np.ndarray
    n_classes: int
    ids: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None

    kind = "people"  # of records, for what a protected unit costs
    of_each = ("classes",)

    def __post_init__(self) -> None:
        names = None if self.feature_names is None else tuple(map(str, self.feature_names))
        features = check_features(self.features, names)
        classes = np.asarray(self.classes)
        if classes.shape != (features.shape[0],) or classes.dtype.kind not in "iu":
            raise InputError(
                f"{features.shape[0]} people need {features.shape[0]} class numbers, one each"
            )
        if self.n_classes < 2:
            raise InputError("there must be at least two classes to tell apart")
        if classes.size and (classes.min() < NO_CLASS or classes.max() >= self.n_classes):
            raise InputError("a class number is not in the list of classes")
        self._set(features=features, classes=classes.astype(np.int32), feature_names=names)

    def __repr__(self) -> str:
        return (
            f"People({self.n_records} people of {self.n_classes} classes, "
            f"{self.n_features} features)"
        )

    @property
    def n_records(self) -> int:
        """Records that a fit sums over: the people."""
        return self.n_people

    def contents(self, rows: Any = None) -> tuple[Any, np.ndarray]:
        """What a statistic sees of some records: features in float64, and class numbers."""
        chosen = slice(None) if rows is None else rows
        features = self.features[chosen]
        return features.astype(np.float64, copy=False), self.classes[chosen]

    def subset(self, indices: Any) -> People:
        """The people at ``indices``."""
        ids = None if self.ids is None else np.asarray(self.ids)[indices]
        return self._changed(
            features=self.features[indices], classes=self.classes[indices], ids=ids
        )

    def occupied(self, indices: Any) -> np.ndarray:
        """Those of ``indices`` who have a class: others add nothing to any sum.

        Examples
        --------
        >>> People(np.eye(3), [0, NO_CLASS, 1], n_classes=2).occupied(np.arange(3))
        array([0, 2])
        """
        found: np.ndarray = np.asarray(indices)[self.classes[indices] != NO_CLASS]
        return found


def class_numbers(y: Any, classes: Sequence[Any]) -> np.ndarray:
    """Positions of each person's class in a public list; -1 where it is not in it.

    Parameters
    ----------
    y : array of shape (n,)
    classes : sequence
        The public list, each class once.

    Examples
    --------
    >>> class_numbers(["a", "b", "z"], ["a", "b"]).tolist()
    [0, 1, -1]
    """
    listed = list(classes)
    if len(set(listed)) != len(listed) or len(listed) < 2:
        raise InputError("classes must list each class once, and at least two")
    place = {one: number for number, one in enumerate(listed)}
    values = np.asarray(y)
    if values.ndim != 1:
        raise InputError("y must hold one class a person")
    return np.array([place.get(one, NO_CLASS) for one in values.tolist()], dtype=np.int32)
