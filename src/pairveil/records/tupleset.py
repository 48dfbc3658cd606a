"""TupleSet: people's features once, and relative comparisons between the people of small tuples.

'a is closer to p than to n' is a record. Who is in a tuple is public: its *members*, in canonical order. Who
plays which part, the answer, is private: the *order* of the members by role (anchor, positive, negatives).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairveil.array_types import IntArray
from pairveil.errors import InputError, PrivateNote, warn
from pairveil.printable import many
from pairveil.records.kinds import TUPLES
from pairveil.records.records import Records, face
from pairveil.records.validation import check_features, check_members

Orders = NDArray[np.int8]

FEWEST, MOST = TUPLES.sizes
"""Members of a tuple: an anchor, a positive and a negative; more than 32 are a group, not a comparison."""
ABSENT = TUPLES.null
"""In an order: nobody plays this part. A record without an anchor is null and contributes nothing."""


class TupleSet(Records):
    """Relative comparisons between people.

    Parameters
    ----------
    features : ndarray or scipy sparse matrix of shape (n, d)
        One row a person, finite.
    tuples : integer array of shape (K, m)
        Row numbers of m different people, from 3 to 32. Who is in a tuple is public.
    order : integer array of shape (K, m), optional
        Who plays which part: the columns of the tuple's anchor, positive and negatives, in this order (for
        pair losses: anchor, positive, anchor, positive, ...), then -1 where there are fewer. Private. By
        default the columns as they stand. An order that makes no sense (a column twice, or one that is not
        there, or fewer than three parts) is null: the tuple contributes nothing.
    ids : array of shape (n,), optional
        What the people are called outside: integers or text, each once.
    feature_names : sequence of str, optional

    Examples
    --------
    Person 0 is closer to person 2 than to person 1:

    >>> data = TupleSet(np.eye(4), [[0, 2, 1], [3, 1, 2]])
    >>> data
    TupleSet(4 people, 2 tuples of 3, 4 features)
    >>> ordered, _ = data.canonical()
    >>> ordered.tuples.tolist(), ordered.order.tolist()
    ([[0, 1, 2], [1, 2, 3]], [[0, 2, 1], [2, 0, 1]])
    >>> ordered.emptied(np.array([True, False])).order.tolist()
    [[-1, -1, -1], [2, 0, 1]]
    """

    record_kind = TUPLES
    tuples = face("members", "Row numbers of the members of each tuple.")
    order = face("content", "The columns of those who play each part.")

    def __init__(
        self,
        features: Any,
        tuples: Any,
        order: Any = None,
        ids: Any = None,
        feature_names: Any = None,
    ) -> None:
        self._set_people(features, ids, feature_names)
        members = check_members(tuples, TUPLES, self.n_people).astype(np.int64, copy=False)
        self._set(members=members, content=_checked_order(order, members.shape))

    @classmethod
    def of_classes(
        cls,
        features: Any,
        tuples: ArrayLike,
        classes: ArrayLike,
        *,
        pairs: bool = False,
        ids: Any = None,
    ) -> TupleSet:
        """Parts that follow from people's classes, which are private: see `order_of_classes`.

        Parameters
        ----------
        features, tuples, ids
            As for the class itself.
        classes : array of shape (n,)
            Each person's class; None or NaN for somebody without one, whose tuples are null.
        pairs : bool
            Parts for pair losses: as many pairs of equal classes as there are classes with two members.

        Examples
        --------
        >>> TupleSet.of_classes(np.eye(3), [[0, 1, 2]], ["a", "b", "a"]).order.tolist()
        [[0, 2, 1]]
        """
        table = check_features(features)
        members = check_members(tuples, TUPLES, table.shape[0])
        values = np.asarray(classes)
        if values.shape != (table.shape[0],):
            raise InputError(f"{table.shape[0]} people need as many classes, one each")
        order = order_of_classes(_class_codes(values)[members], pairs=pairs)
        return cls(table, members, order, ids)

    def __repr__(self) -> str:
        return (
            f"TupleSet({self.n_people} people, {self.n_records} tuples of {self.size}, "
            f"{self.n_features} features)"
        )

    def contents(self, rows: Any = None) -> tuple[Any, Orders]:
        """What a statistic sees of some records: their members' features, m rows each, and their orders."""
        chosen = slice(None) if rows is None else rows
        members = self.features[self.tuples[chosen].ravel()]
        return members.astype(np.float64, copy=False), self.order[chosen]

    def with_order(self, order: Orders) -> TupleSet:
        """The same tuples with other parts, which must be orders."""
        return self._changed(content=order)


def _checked_order(order: Any, shape: tuple[int, int]) -> Orders:
    """An order for each tuple; what makes no sense is private contents that cannot be used: null."""
    if order is None:
        return np.tile(np.arange(shape[1], dtype=np.int8), (shape[0], 1))
    values = np.asarray(order)
    if values.shape != tuple(shape) or values.dtype.kind not in "iu":
        raise InputError(
            f"order must hold integers, one a member: shape {shape}, not {values.shape}"
        )
    valid = is_order(values)
    meant = (values >= 0).any(axis=1)  # a row of -1 says that it is null
    if count := int((~valid & meant).sum()):
        have = many(count, "tuple has", "tuples have")
        nothing = "contributes nothing" if count == 1 else "contribute nothing"
        warn(f"{have} an order of roles that makes no sense and {nothing}", PrivateNote)
    return np.where(valid[:, None], values, ABSENT).astype(np.int8)


def is_order(order: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each row names different columns for at least three parts, and -1 behind them only."""
    m = order.shape[1]
    played = order >= 0
    inside = ((order >= ABSENT) & (order < m)).all(axis=1)
    packed = (played[:, :-1] | ~played[:, 1:]).all(axis=1)
    ordered = np.sort(order, axis=1)
    distinct = ((ordered[:, 1:] != ordered[:, :-1]) | (ordered[:, 1:] < 0)).all(axis=1)
    found: NDArray[np.bool_] = inside & packed & distinct & (played.sum(axis=1) >= FEWEST)
    return found


def order_of_classes(classes: IntArray, *, pairs: bool = False) -> Orders:
    """Who plays which part, from the classes of each tuple's members.

    The anchor and the positive are the first two members of one class that leaves members of other classes,
    which are the negatives. With ``pairs`` the first two members of every class that has two are a pair, and
    pairs follow one another. A tuple that has none, or a member without class, is null.

    ``classes``: integer array of shape (K, m); -1 for somebody without class.
    """
    n, m = classes.shape
    same = classes[:, :, None] == classes[:, None, :]
    known = (classes >= 0).all(axis=1, keepdims=True)
    later = np.triu(np.ones((m, m), dtype=bool), 1)
    first = ~(same & later.T).any(axis=2)  # nobody of this class stands before
    partner = (same & later).argmax(axis=2)
    has_partner = (same & later).any(axis=2)
    leads = first & has_partner & known
    order = np.full((n, m), ABSENT, dtype=np.int8)
    if pairs:
        use = leads & (leads.sum(axis=1, keepdims=True) >= 2)
        rank = np.cumsum(use, axis=1) - 1
        row, column = np.nonzero(use)
        order[row, 2 * rank[row, column]] = column
        order[row, 2 * rank[row, column] + 1] = partner[row, column]
        return order
    leads &= (~same).any(axis=2)  # others are left to be negatives
    row = np.flatnonzero(leads.any(axis=1))
    anchor = leads[row].argmax(axis=1)
    others = ~same[row, anchor]
    # Negatives in the order of members: a stable sort puts them first.
    behind = np.argsort(~others, axis=1, kind="stable")[:, : m - 2]
    order[row, 0], order[row, 1] = anchor, partner[row, anchor]
    there = np.arange(m - 2) < others.sum(axis=1)[:, None]
    order[row, 2:] = np.where(there, behind, ABSENT)
    return order


def _class_codes(values: NDArray[Any]) -> IntArray:
    """Classes as numbers; -1 for a missing one (None or NaN)."""
    numbers: dict[Any, int] = {}
    return np.array(
        [
            ABSENT if one is None or one != one else numbers.setdefault(one, len(numbers))
            for one in values.tolist()
        ],
        dtype=np.int64,
    )


def answered(y: Any, shape: tuple[int, ...]) -> Orders:
    """Orders from answers: column 0 is the anchor, the column named is the positive, the rest negatives."""
    n, m = shape
    given = np.asarray(y)
    if given.shape != (n,) or given.dtype.kind not in "iuf":
        raise InputError(
            f"y must name, for each of the {n} tuples, the column (1 to {m - 1}) of who is nearest to the "
            f"one in column 0; got shape {given.shape}"
        )
    valid = np.isin(given, np.arange(1, m))
    if not valid.all():
        names = many(int((~valid).sum()), "answer names", "answers name")
        warn(f"{names} no column from 1 to {m - 1}: such a tuple contributes nothing", PrivateNote)
    chosen = np.where(valid, given, 1).astype(np.int64)
    order = np.tile(np.arange(m), (n, 1))
    # The positive comes to place 1; those before it move back by one.
    for place in range(2, m):
        order[:, place] = np.where(place <= chosen, place - 1, place)
    order[:, 1] = chosen
    return np.where(valid[:, None], order, ABSENT).astype(np.int8)
