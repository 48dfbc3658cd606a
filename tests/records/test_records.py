"""The one container: what holds of records of every kind."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import sparse

from pairveil import GroupSet, InputError, PairSet, TupleSet
from pairveil.records.groups import People
from pairveil.records.kinds import KINDS
from pairveil.records.pairset import CountedPairs

N = 24
X = np.arange(N * 3.0).reshape(N, 3) ** 0.5
IDS = np.array([f"q{i:02d}" for i in np.random.default_rng(0).permutation(N)], dtype=object)
CLASSES = np.arange(N) % 3


def pairs_of(people):
    ends = people[np.random.default_rng(1).permutation(N).reshape(-1, 2)]
    return PairSet(
        X[np.argsort(people)], ends, np.where(np.arange(N // 2) % 3, 1, -1), moved(people)
    )


def groups_of(people):
    members = people[np.random.default_rng(2).permutation(N).reshape(-1, 4)]
    members[::2, 3] = -1
    order = np.argsort(people)
    return GroupSet.of_classes(X[order], members, CLASSES[order], moved(people))


def tuples_of(people):
    members = people[np.random.default_rng(3).permutation(N).reshape(-1, 4)]
    parts = np.resize([[0, 1, 2, 3], [2, 0, 3, -1], [3, 2, 1, 0]], members.shape)
    return TupleSet(X[np.argsort(people)], members, parts, moved(people))


def people_of(people):
    order = np.argsort(people)
    return People(X[order], CLASSES[order], 3, moved(people))


def moved(people):
    """Ids of people of whom the i-th now has the row ``people[i]``."""
    return IDS[np.argsort(people)]


BUILT = {"pairs": pairs_of, "groups": groups_of, "tuples": tuples_of, "people": people_of}
every_kind = pytest.mark.parametrize("kind", BUILT)


def shuffled(records, rng):
    """The same records with rows in another order, and members where contents do not follow them."""
    if records.members is None:
        return records
    return records.subset(rng.permutation(records.n_records))


@every_kind
def test_the_order_of_rows_and_people_changes_nothing(kind):
    one = BUILT[kind](np.arange(N)).canonical()[0]
    rng = np.random.default_rng(4)
    for _ in range(5):
        other = shuffled(BUILT[kind](rng.permutation(N)), rng).canonical()[0]
        for name in ("features", "members", "content", "ids"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(one.contents()[0], other.contents()[0])
        assert one.topology() == other.topology()
    assert one.canonical() == (one, None)
    assert one.ids.tolist() == sorted(IDS)


@every_kind
def test_positions_say_where_each_record_was(kind):
    given = BUILT[kind](np.random.default_rng(5).permutation(N))
    ordered, positions = given.canonical()
    assert named(ordered) == named(given.subset(positions))


def named(records):
    """Who is in each record, by ids."""
    rows = np.arange(N)[:, None] if records.members is None else records.members
    return [sorted(records.ids[row[row >= 0]]) for row in rows]


@every_kind
def test_null_records_stay_in_their_place(kind):
    records = BUILT[kind](np.arange(N))
    null = np.arange(records.n_records) % 2 == 0
    emptied = records.emptied(null)
    assert (emptied.content[null] == KINDS[kind].null).all()
    np.testing.assert_array_equal(emptied.content[~null], records.content[~null])
    assert emptied.topology() == records.topology()
    assert not (records.content[null] == KINDS[kind].null).all()  # the given ones are as they were


@every_kind
@pytest.mark.parametrize("table", [np.asarray, sparse.csr_array])
def test_parts_hold_the_contents_of_their_own_records(kind, table):
    records = BUILT[kind](np.arange(N)).with_features(table(X))
    for rows in (slice(0, 3), slice(3, None)):
        wanted = records.contents(rows)
        for own in (True, False):
            part = records.part(rows, own_people=own)
            assert part.ids is None
            for found, expected in zip(part.contents(), wanted, strict=True):
                dense = [
                    one.toarray() if sparse.issparse(one) else one for one in (found, expected)
                ]
                np.testing.assert_array_equal(*dense)
    assert records.part(slice(0, 1)).n_people <= records.size


@every_kind
def test_records_are_frozen_and_replaced_through_their_checks(kind):
    records = BUILT[kind](np.arange(N))
    with pytest.raises(FrozenInstanceError):
        records.features = X
    assert records.kind == kind
    assert records.replace(features=X / 2).features[1, 0] == X[1, 0] / 2
    with pytest.raises(InputError, match="NaN"):
        records.replace(features=np.full((N, 3), np.nan))
    with pytest.raises(InputError, match=f"there are no {kind}"):
        records.subset(np.empty(0, dtype=np.int64))
    with pytest.raises(InputError, match=f"at least one {KINDS[kind].one}"):
        list(records.blocks(0))


def test_pairs_that_have_rows_of_their_own_take_them_along():
    data = CountedPairs(np.arange(8).reshape(4, 2), np.array([1, -1, 1, -1], dtype=np.int8))
    some = data.subset(np.array([3, 1]))
    assert (some.values.tolist(), some.labels.tolist()) == ([[6, 7], [2, 3]], [-1, -1])
    assert data.part(slice(1, 2)).values.tolist() == [[2, 3]]
    assert data.emptied(np.arange(4) < 1).labels.tolist() == [0, -1, 1, -1]
