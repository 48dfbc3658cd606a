"""GroupSet: what it refuses, and that its order follows from ids alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil import GroupSet, InputError, PairSet, design_groups, read_features
from pairveil.errors import PrivateNote
from pairveil.records import read_groups
from pairveil.records.groups import check_numbers, members_by_group, slots
from pairveil.records.kinds import VACANT


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([[0, 1, 2], [2, 3, 4]], "groups overlap"),
        ([[0, 0, 1]], "groups overlap"),
        ([[0, -1, -1]], "at least two people"),
        ([[0, 9, 1]], "outside the 5 people"),
        ([[0, -2, 1]], "outside the 5 people"),
        (np.zeros((0, 3), dtype=int), "no groups"),
        ([0, 1, 2], "shape"),
        ([[0.0, 1.0]], "integer"),
    ],
)
def test_groups_that_make_no_sense_are_refused(members, says):
    with pytest.raises(InputError, match=says):
        GroupSet.of_classes(np.eye(5), members, np.zeros(5, dtype=int))


def test_a_group_is_not_larger_than_the_proof_covers():
    with pytest.raises(InputError, match="at most 64"):
        GroupSet.of_classes(np.zeros((65, 2)), [np.arange(65)], np.zeros(65, dtype=int))


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([0, 0, 1, 1], "not inside one group"),
        ([0, 0, 0, -1], "not inside one group"),
        ([0, 0, 0, 1], "at least two people"),
        ([0, 0, 0], "4 people need 4"),
        ([-1, -1, -1, -1], "no groups"),
        ([-2, 0, 0, 0], "start at 0"),
    ],
)
def test_pairs_across_groups_are_refused(groups, says):
    pairs = PairSet(np.eye(4), [[0, 1], [1, 2], [2, 3]], [1, -1, 1])
    with pytest.raises(InputError, match=says):
        GroupSet.of_pairs(pairs, groups)


def test_pairs_come_to_the_places_of_their_people():
    pairs = PairSet(np.eye(6), [[4, 0], [2, 5], [0, 2], [1, 3]], [1, -1, 1, -1])
    groups = GroupSet.of_pairs(pairs, [7, 3, 7, 3, 7, 7])
    first, second = slots(groups.size)
    found = {
        (int(row[a]), int(row[b])): int(label)
        for row, labels in zip(groups.members, groups.labels, strict=True)
        for a, b, label in zip(first, second, labels, strict=True)
        if label
    }
    assert found == {(0, 4): 1, (2, 5): -1, (0, 2): 1, (1, 3): -1}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_canonical_order_follows_from_ids_alone(seed, size):
    rng = np.random.default_rng(seed)
    n = 4 * size + 1
    features, classes = rng.normal(size=(n, 2)), rng.integers(3, size=n)
    ids = np.array([f"p{i:02d}" for i in rng.permutation(n)])
    members = design_groups(n, size, random_state=int(seed))
    given = GroupSet.of_classes(features, members, classes, ids).canonical()[0]
    # The same people in other rows, groups and places in another order: the same records.
    people = rng.permutation(n)
    where = np.argsort(people)
    shuffled = rng.permuted(where[members], axis=1)[rng.permutation(len(members))]
    again = GroupSet.of_classes(
        features[people], shuffled, classes[people], ids[people]
    ).canonical()[0]
    for name in ("features", "members", "labels", "ids"):
        assert np.array_equal(getattr(given, name), getattr(again, name)), name
    assert given.topology() == again.topology()


def test_a_null_person_has_null_pairs_and_vacant_places_too():
    groups = GroupSet.of_classes(np.eye(5), [[0, 1, 2], [3, 4, VACANT]], [0, -1, 0, 1, 1])
    assert groups.labels.tolist() == [[0, 1, 0], [1, 0, 0]]
    people, _ = groups.contents()
    assert not people[1, 2].any()


def test_numbers_and_members_agree():
    members, place = members_by_group(check_numbers([5, -1, 9, 5, 9, 9], 6))
    assert members.tolist() == [[0, 3, -1], [2, 4, 5]]
    assert place.tolist() == [0, -1, 0, 1, 1, 2]


def test_no_message_shows_a_private_value():
    with pytest.raises(InputError) as caught:
        GroupSet(np.eye(3) * 7.25, [[0, 1, 2]], [[1, -1, 7]])
    assert "7" not in str(caught.value)


PEOPLE = read_features({"id": ["ann", "bob", "cid", "dan", "eve"], "x": [0.1, 0.2, 0.3, 0.4, 0.5]})


def _listed(**changes):
    listed = {
        "left": ["ann", "bob", "dan", "cid"],
        "right": ["bob", "cid", "eve", "ann"],
        "label": ["same", "different", "same", "different"],
        "group": ["ward b", "ward b", "ward a", "ward b"],
    }
    return {**listed, **changes}


def test_a_file_with_a_group_column_is_read(tmp_path):
    groups = read_groups(_listed(), PEOPLE)
    assert groups.members.tolist() == [[0, 1, 2], [3, 4, -1]]
    assert groups.labels.tolist() == [[1, -1, -1], [1, 0, 0]]
    file = tmp_path / "pairs.csv"
    columns = _listed(ward=["1", "1", "2", "1"])
    columns.pop("group")
    rows = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    file.write_text("\n".join(rows) + "\n")
    assert read_groups(file, PEOPLE, group="ward").members.tolist() == groups.members.tolist()


def test_a_label_that_cannot_be_read_leaves_its_pair_null():
    with pytest.warns(PrivateNote, match="1 label cannot be read"):
        groups = read_groups(_listed(label=["same", "what", "same", "different"]), PEOPLE)
    assert groups.members.tolist() == [[0, 1, 2], [3, 4, -1]]
    assert np.count_nonzero(groups.labels) == 3


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"group": ["a", "b", "c", "a"]}, "somebody in row [12] of the pairs"),
        ({"label": ["what", "what", "what", "same"]}, "label"),
        ({"right": ["bob", "zoe", "eve", "ann"]}, "zoe|not in|row"),
        ({"left": ["bob", "bob", "dan", "cid"]}, "herself|row"),
    ],
)
def test_bad_group_files_are_refused(changes, says):
    with pytest.raises(InputError, match=says):
        read_groups(_listed(**changes), PEOPLE)


def test_a_file_without_the_group_column_says_so():
    listed = _listed()
    listed.pop("group")
    with pytest.raises(InputError, match="group"):
        read_groups(listed, PEOPLE)


def test_people_who_change_together_are_not_cut_into_groups():
    pairs = PairSet(np.eye(4), [[0, 1], [2, 3]], [1, -1], together=["mill", "lane", "mill", "lane"])
    with pytest.raises(InputError, match="together"):
        GroupSet.of_pairs(pairs, [0, 0, 1, 1])
