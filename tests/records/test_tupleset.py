"""Tuples: members are public and canonical, roles are private contents that never stop anything."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil import InputError, TupleSet
from pairveil.errors import DataWarning, PrivateNote
from pairveil.records.tupleset import is_order, order_of_classes

X = np.arange(12.0).reshape(6, 2)


def roles(data):
    """What the tuples say, as a set of (members by role)."""
    return {
        tuple(row[column] for column in order if column >= 0)
        for row, order in zip(data.tuples.tolist(), data.order.tolist(), strict=True)
    }


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(3, 5))
def test_canonical_order_says_the_same_and_follows_from_members_alone(seed, m):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.permutation(6)[:m] for _ in range(5)])
    rows = rows[np.unique(np.sort(rows, axis=1), axis=0, return_index=True)[1]]
    data = TupleSet(X, rows)
    ordered, _ = data.canonical()
    assert roles(ordered) == roles(data)
    shuffled = rows[rng.permutation(len(rows))]
    turned = np.array([rng.permutation(row) for row in shuffled])  # other answers, same members
    other, positions = TupleSet(X, turned).canonical()
    np.testing.assert_array_equal(other.tuples, ordered.tuples)
    if positions is not None:
        np.testing.assert_array_equal(np.sort(turned[positions], axis=1), other.tuples)
    assert ordered.canonical() == (ordered, None)


def test_people_are_ordered_by_their_ids():
    one, _ = TupleSet(X[:3], [[0, 1, 2]], ids=["c", "a", "b"]).canonical()
    two, _ = TupleSet(X[[1, 2, 0]], [[2, 0, 1]], ids=["a", "b", "c"]).canonical()
    for first, second in (
        (one.features, two.features),
        (one.tuples, two.tuples),
        (one.order, two.order),
    ):
        np.testing.assert_array_equal(first, second)


def test_the_same_members_again_are_one_record_and_contrary_answers_make_it_null():
    with pytest.warns(DataWarning, match="2 tuples appeared before and were merged"):
        agreed, _ = TupleSet(X, [[0, 1, 2], [0, 1, 2], [0, 1, 2]]).canonical()
    assert agreed.order.tolist() == [[0, 1, 2]]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        contrary, positions = TupleSet(X, [[3, 4, 5], [0, 1, 2], [0, 2, 1]]).canonical()
    assert any(issubclass(one.category, PrivateNote) for one in said)
    assert contrary.tuples.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert contrary.order.tolist() == [[-1, -1, -1], [0, 1, 2]]
    assert positions.tolist() == [1, 0]


@pytest.mark.parametrize("order", [[0, 0, 1], [0, 1, 3], [0, 1, -1], [-1, 0, 1], [0, -2, 1]])
def test_roles_that_make_no_sense_are_null_and_told_to_the_operator_alone(order):
    assert not is_order(np.array([order])).any()
    with pytest.warns(PrivateNote, match="1 tuple has an order of roles that makes no sense"):
        data = TupleSet(X, [[0, 1, 2]], [order])
    assert data.order.tolist() == [[-1, -1, -1]]


def test_a_null_that_says_so_is_no_news():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TupleSet(X, [[0, 1, 2]], [[-1, -1, -1]]).order.tolist() == [[-1] * 3]


def loop_order(classes, pairs):
    """The rule of `order_of_classes`, one tuple at a time."""
    m = len(classes)
    if -1 in classes:
        return [-1] * m
    leads = [
        (i, next(j for j in range(i + 1, m) if classes[j] == classes[i]))
        for i in range(m)
        if classes[i] not in classes[:i] and classes.count(classes[i]) > 1
    ]
    if pairs:
        found = [one for lead in leads for one in lead] if len(leads) > 1 else []
    elif leads and len(set(classes)) > 1:
        anchor, positive = leads[0]
        found = [anchor, positive, *(k for k in range(m) if classes[k] != classes[anchor])]
    else:
        found = []
    return found + [-1] * (m - len(found))


@settings(max_examples=150, deadline=None)
@given(
    classes=st.integers(3, 7).flatmap(
        lambda m: st.lists(
            st.lists(st.integers(-1, 3), min_size=m, max_size=m), min_size=1, max_size=4
        )
    ),
    pairs=st.booleans(),
)
def test_roles_follow_from_classes_as_the_loop_says(classes, pairs):
    found = order_of_classes(np.array(classes), pairs=pairs)
    assert found.tolist() == [loop_order(one, pairs) for one in classes]
    live = found[(found >= 0).any(axis=1)]
    assert is_order(live).all()


def test_somebody_without_class_makes_her_tuples_null():
    classes = np.array(["a", "a", None, "b", "b", "a"], dtype=object)
    data = TupleSet.of_classes(X, [[0, 1, 2], [0, 1, 3], [3, 4, 5]], classes)
    assert data.order.tolist() == [[-1] * 3, [0, 1, 2], [0, 1, 2]]
    nan = TupleSet.of_classes(X, [[0, 1, 2]], [0.0, 0.0, np.nan, 1, 1, 1])
    assert nan.order.tolist() == [[-1] * 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TupleSet(X, [[0, 1, 1]]), r"names a person twice \(row 1\)"),
        (lambda: TupleSet(X, [[0, 1, 6]]), r"outside the 6 people \(row 1\)"),
        (lambda: TupleSet(X, [[0, 1]]), "m from 3 to 32"),
        (lambda: TupleSet(X, [[0, 1, 2], [0, 1]]), "as many members"),
        (lambda: TupleSet(X, []), "no tuples"),
        (lambda: TupleSet(X, [["a", "b", "c"]]), "integers"),
        (lambda: TupleSet(X, [[0, 1, 2]], [[0, 1]]), "order must hold"),
        (lambda: TupleSet(X, [[0, 1, 2]], ids=[1]), "6 ids, one each"),
        (lambda: TupleSet(X, [[0, 1, 2]], ids=[1, 1, 2, 3, 4, 5]), "id"),
        (lambda: TupleSet(np.full((3, 1), np.nan), [[0, 1, 2]]), "NaN"),
        (lambda: TupleSet.of_classes(X, [[0, 1, 2]], [1, 2]), "as many classes"),
        (lambda: TupleSet(X, [[0, 1, 2]]).subset([]), "no tuples"),
    ],
)
def test_public_structure_that_is_wrong_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
