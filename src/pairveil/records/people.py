"""People: a record is a person with features and a class, and no pair is ever formed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairveil.errors import InputError
from pairveil.records.kinds import PEOPLE
from pairveil.records.records import Records, face
from pairveil.records.validation import check_features

NO_CLASS = PEOPLE.null
"""The class of a null person, who contributes nothing to any sum."""


class People(Records):
    """People with one class each.

    Parameters
    ----------
    features : ndarray or scipy sparse matrix of shape (n, d)
    classes : integer array of shape (n,)
        Position of each person's class in the public list of classes; -1 for none.
    n_classes : int
        Length of that list. Public: it must not be read off the classes of the people.
    ids : array of shape (n,), optional
    feature_names : sequence of str, optional
    """

    row = PEOPLE
    classes = face("content", "Position of each person's class in the public list; -1 for none.")
    n_classes: int

    def __init__(
        self,
        features: Any,
        classes: Any,
        n_classes: int,
        ids: Any = None,
        feature_names: Any = None,
    ) -> None:
        names = None if feature_names is None else tuple(map(str, feature_names))
        table, numbers = check_features(features, names), np.asarray(classes)
        n = table.shape[0]
        if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
            raise InputError(f"{n} people need {n} class numbers, one each")
        if n_classes < 2:
            raise InputError("there must be at least two classes to tell apart")
        if numbers.size and (numbers.min() < NO_CLASS or numbers.max() >= n_classes):
            raise InputError("a class number is not in the list of classes")
        self._set(
            features=table,
            content=numbers.astype(np.int32),
            n_classes=n_classes,
            ids=None if ids is None else np.asarray(ids),
            feature_names=names,
        )

    def __repr__(self) -> str:
        return f"People({self.n_records} people of {self.n_classes} classes, {self.n_features} features)"

    def occupied(self, indices: Any) -> np.ndarray:
        """Those of ``indices`` who have a class: others add nothing to any sum."""
        found: np.ndarray = np.asarray(indices)[self.classes[indices] != NO_CLASS]
        return found


def class_numbers(y: Any, classes: Sequence[Any]) -> np.ndarray:
    """Positions of each person's class in a public list; -1 where it is not in it."""
    listed = list(classes)
    if len(set(listed)) != len(listed) or len(listed) < 2:
        raise InputError("classes must list each class once, and at least two")
    place = {one: number for number, one in enumerate(listed)}
    values = np.asarray(y)
    if values.ndim != 1:
        raise InputError("y must hold one class a person")
    return np.array([place.get(one, NO_CLASS) for one in values.tolist()], dtype=np.int32)
