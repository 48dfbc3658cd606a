"""People alone, and in groups.

`People`: a record is a person with features and a class, and no pair is ever formed.

`GroupSet`: a record is a group of people, and all labelled pairs inside it are its contents. Groups are
disjoint, so a pair, a relationship and a person are each in one record (docs/theory/records.md). Who is in
which group is public; features and labels are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pairveil.array_types import IntArray
from pairveil.errors import InputError
from pairveil.records.kinds import GROUPS, PEOPLE, VACANT
from pairveil.records.records import Records, face
from pairveil.records.validation import check_features

NO_CLASS = PEOPLE.null
"""The class of a null person, who contributes nothing to any sum."""


class People(Records):
    """People with one class each.

    ``classes`` are positions in a public list, -1 for none. Its length ``n_classes`` is public too: it must
    not be read off the classes of the people.
    """

    record_kind = PEOPLE
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
        table = check_features(features, names)
        numbers = _one_each(classes, table.shape[0], "class numbers")
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


def one_by_one(values: Any) -> np.ndarray:
    """Classes, each as it is: of a list in which one is a text NumPy would make texts of all.

    Examples
    --------
    >>> one_by_one([1, 0, "unknown"]).tolist()
    [1, 0, 'unknown']
    """
    try:
        array = np.asarray(values)
        if hasattr(values, "dtype") or array.ndim != 1:
            return array
    except ValueError:  # one is a list, or bytes that are no text
        pass
    found = np.empty(len(values), dtype=object)
    for place, one in enumerate(values):
        found[place] = one
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
    numbers = [place.get(one, NO_CLASS) if _is_plain(one) else NO_CLASS for one in values.tolist()]
    return np.array(numbers, dtype=np.int32)


def _is_plain(value: Any) -> bool:
    """Whether a cell can be looked up at all: a list or an array is no class."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


# ---- groups of people ----------------------------------------------------------------------------

NULL = GROUPS.null
FEWEST_PEOPLE, MOST_PEOPLE = GROUPS.sizes
"""Of one group: rounding errors of larger ones are outside the proof."""
_AT_ONCE = 1 << 21  # numbers of a tile's differences, so that they stay in the cache's reach


def slots(size: int) -> tuple[IntArray, IntArray]:
    """The places of each pair inside a group of ``size``: (0, 1), (0, 2), ..., (1, 2), ..."""
    first, second = np.triu_indices(size, 1)
    return first.astype(np.int64), second.astype(np.int64)


class GroupSet(Records):
    """Disjoint groups of people with a label for each pair inside.

    Parameters
    ----------
    features : ndarray or scipy sparse matrix of shape (n, d)
        One row a person, finite.
    members : integer array of shape (G, m)
        The rows of each group's people, at least two; -1 where a group is smaller than m.
    labels : array of shape (G, m (m - 1) / 2)
        Of the pairs (0, 1), (0, 2), ..., (1, 2), ... of places: +1 similar, -1 dissimilar, 0 null.
    ids : array of shape (n,), optional
    feature_names : sequence of str, optional

    Examples
    --------
    >>> GroupSet(np.eye(4), members=[[0, 2, 3]], labels=[[1, -1, -1]])
    GroupSet(1 group of at most 3 people, 3 pairs, 4 features)
    >>> GroupSet.of_classes(np.eye(3), [[0, 1, 2]], classes=[0, 0, 1]).labels.tolist()
    [[1, -1, -1]]
    >>> given = GroupSet(np.eye(4), [[3, 2, -1], [1, 0, -1]], [[1, 0, 0], [-1, 0, 0]])
    >>> ordered, _ = given.canonical()
    >>> ordered.members.tolist(), ordered.labels.tolist()
    ([[0, 1, -1], [2, 3, -1]], [[-1, 0, 0], [1, 0, 0]])
    """

    record_kind = GROUPS
    labels = face(
        "content", "+1 similar, -1 dissimilar, 0 null, of the pairs of places in each group."
    )

    def __init__(
        self, features: Any, members: Any, labels: Any, ids: Any = None, feature_names: Any = None
    ) -> None:
        self._set_people(features, ids, feature_names)
        checked = check_groups(members, self.n_people)
        self._set(members=checked, content=_checked_labels(labels, checked))

    @classmethod
    def of_classes(
        cls,
        features: Any,
        members: Any,
        classes: Any,
        ids: Any = None,
        feature_names: tuple[str, ...] | None = None,
    ) -> GroupSet:
        """Groups of people with one class each: pairs of one class are similar.

        Parameters
        ----------
        features, members, ids, feature_names
            As for the class.
        classes : integer array of shape (n,)
            -1 is no class: all pairs of such a person are null.
        """
        numbers = _one_each(classes, features.shape[0], "class numbers")
        places = check_groups(members, len(numbers))
        own = np.where(places == VACANT, NO_CLASS, numbers[places])
        first, second = slots(places.shape[1])
        left, right = own[:, first], own[:, second]
        labels = np.where(left == right, 1, -1).astype(np.int8)
        labels[(left == NO_CLASS) | (right == NO_CLASS)] = NULL
        return cls(features, places, labels, ids, feature_names)

    @classmethod
    def of_pairs(cls, pairs: Any, groups: Any) -> GroupSet:
        """Given pairs, cut into groups.

        Parameters
        ----------
        pairs : PairSet
            Labelled, each pair once.
        groups : integer array of shape (n_people,)
            Each person's group, -1 for none. Both people of a pair must be in the same one.

        Examples
        --------
        >>> from pairveil.records.pairset import PairSet
        >>> GroupSet.of_pairs(PairSet(np.eye(4), [[0, 1], [2, 3]], [1, -1]), [0, 0, 1, 1])
        GroupSet(2 groups of at most 2 people, 2 pairs, 4 features)
        """
        of_person = check_numbers(groups, pairs.n_people)
        if pairs.together is not None:
            raise InputError(
                "people who change together may be in several groups, and each group protects one of them: "
                "leave 'together' out, or use the pairs themselves"
            )
        if pairs.labels is None:
            raise InputError("pairs without labels contribute nothing: groups need labelled pairs")
        own = of_person[pairs.pairs]
        across = np.flatnonzero((own[:, 0] != own[:, 1]) | (own[:, 0] < 0))
        if across.size:
            raise InputError(
                f"{across.size} pairs are not inside one group, the first at position {across[0]}: leave "
                "them out, or give both people the same group"
            )
        paired = np.zeros(pairs.n_people, dtype=np.bool_)
        paired[pairs.pairs] = True
        members, place = members_by_group(np.where(paired, of_person, -1))
        size = members.shape[1]
        group_row = np.full(int(of_person.max()) + 1, -1, dtype=np.int64)
        group_row[of_person[members[:, 0]]] = np.arange(len(members))
        low, high = np.sort(place[pairs.pairs], axis=1).T
        labels = np.zeros((len(members), size * (size - 1) // 2), dtype=np.int8)
        labels[group_row[own[:, 0]], low * (2 * size - low - 1) // 2 + high - low - 1] = (
            pairs.labels
        )
        about = {"ids": pairs.ids, "feature_names": pairs.feature_names}
        return cls.checked_before(features=pairs.features, members=members, content=labels, **about)

    def __repr__(self) -> str:
        groups = "1 group" if self.n_records == 1 else f"{self.n_records} groups"
        return (
            f"GroupSet({groups} of at most {self.size} people, {self.n_pairs} pairs, "
            f"{self.n_features} features)"
        )

    @property
    def n_pairs(self) -> int:
        """Places for pairs in all groups, null ones among them."""
        sizes = np.count_nonzero(self.members != VACANT, axis=1)
        return int((sizes * (sizes - 1) // 2).sum())

    def contents(self, rows: Any = None) -> tuple[Any, NDArray[np.int8]]:
        """What a statistic sees of some records: people (g, m, d) in float64, zero where vacant; labels."""
        chosen = slice(None) if rows is None else rows
        members = self.members[chosen]
        flat = np.maximum(members, 0).ravel()
        found = self.features[flat]
        dense = found.toarray() if sparse.issparse(found) else np.asarray(found)
        people = dense.astype(np.float64, copy=True).reshape(*members.shape, -1)
        people[members == VACANT] = 0.0
        return people, self.labels[chosen]

    def blocks(self, size: int) -> Iterator[slice]:
        """Slices of at most ``size`` groups that cover all of them in order; a power of two, as tiles are."""
        most = min(size, max(_AT_ONCE // (self.labels.shape[1] * self.n_features), 1))
        return super().blocks(most if most < 1 else 1 << most.bit_length() - 1)


def check_groups(members: Any, n_people: int) -> IntArray:
    """Refuse groups that overlap, hold fewer than two people or name nobody."""
    table = np.asarray(members)
    if table.ndim != 2 or table.dtype.kind not in "iu":
        raise InputError("groups must be an integer array of shape (n_groups, size): a row a group")
    found = table.astype(np.int64)
    _check_sizes(np.count_nonzero(found != VACANT, axis=1))
    if found.min() < VACANT or found.max() >= n_people:
        raise InputError(
            f"a group names somebody outside the {n_people} people (rows count from 0)"
        )
    if np.bincount(found[found != VACANT], minlength=1).max() > 1:
        raise InputError(
            "groups overlap: somebody is in two groups, or twice in one, and would be protected by half; put "
            "everybody into one group at most"
        )
    return found


def _one_each(values: Any, n: int, called: str) -> NDArray[Any]:
    """Whole numbers, one for each of so many people."""
    numbers = np.asarray(values)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise InputError(f"{n} people need {n} {called}, one each")
    return numbers


def check_numbers(groups: Any, n_people: int) -> IntArray:
    """One group number a person, at least 0 and without gaps, or -1 for none."""
    numbers = _one_each(groups, n_people, "whole group numbers")
    if numbers.size and numbers.min() < VACANT:
        raise InputError("group numbers start at 0; -1 is no group")
    names, tight = np.unique(numbers, return_inverse=True)
    numbers = tight.reshape(n_people).astype(np.int64) - np.count_nonzero(names < 0)
    _check_sizes(np.bincount(numbers[numbers >= 0]))
    return numbers


def _check_sizes(sizes: IntArray) -> None:
    """Refuse groups of which there are none, and people too few or too many for the proof."""
    if not sizes.size:
        raise InputError("there are no groups to learn from")
    if small := np.count_nonzero(sizes < FEWEST_PEOPLE):
        raise InputError(
            f"a group needs at least two people: {small} groups have fewer, the first at position "
            f"{int(np.argmax(sizes < FEWEST_PEOPLE))}; give their people no group (-1, or an empty cell) to "
            "leave them out"
        )
    if sizes.max() > MOST_PEOPLE:
        raise InputError(f"a group may have at most {MOST_PEOPLE} people; cut it into smaller ones")


def members_by_group(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of people from each person's group number, and each person's place in her group."""
    people = np.flatnonzero(numbers >= 0)
    names, group = np.unique(numbers[people], return_inverse=True)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(names))
    starts = np.cumsum(sizes) - sizes
    place = np.full(len(numbers), -1, dtype=np.int64)
    place[people[order]] = np.arange(len(people)) - np.repeat(starts, sizes)
    members = np.full((len(names), int(sizes.max())), VACANT, dtype=np.int64)
    members[group, place[people]] = people
    return members[np.argsort(members[:, 0], kind="stable")], place


def _checked_labels(labels: Any, members: IntArray) -> NDArray[np.int8]:
    first, second = slots(members.shape[1])
    wanted, found = (len(members), len(first)), np.asarray(labels)
    if found.shape != wanted or found.dtype.kind not in "iuf":
        raise InputError(f"groups of this shape need labels of shape {wanted}; got {found.shape}")
    if not np.isin(found, (-1, 0, 1)).all():
        raise InputError("labels must be +1 (similar), -1 (dissimilar) or 0 (null)")
    vacant = (members[:, first] == VACANT) | (members[:, second] == VACANT)
    return np.where(vacant, NULL, found).astype(np.int8)
