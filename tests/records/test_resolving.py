"""Ids to rows, and each pair once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil.errors import DataWarning, InputError, PrivateNote
from pairveil.records.identity import index_pairs
from pairveil.records.tables import FeatureTable, PairTable


def test_without_features_people_are_numbered_in_the_order_of_ids():
    found = index_pairs(PairTable([30, 100, 30], [20, 30, 40]))
    assert found.ids.tolist() == [20, 30, 40, 100]
    assert found.pairs.tolist() == [[1, 0], [3, 1], [1, 2]]
    words = index_pairs(PairTable(["b", "a", "é"], ["C", "é", "b"]))
    assert words.ids.tolist() == ["C", "a", "b", "é"]


@pytest.mark.parametrize("text_first", [True, False])
def test_integer_ids_join_the_same_ids_written_as_text(text_first):
    integers, text = [1, 2, 3], ["1", "2", "3"]
    people, ends = (text, integers) if text_first else (integers, text)
    found = index_pairs(PairTable(ends[:2], ends[1:]), FeatureTable(people, np.eye(3)).ids)
    assert found.pairs.tolist() == [[0, 1], [1, 2]]


def test_integer_ids_join_text_ids_of_which_some_are_no_integers():
    found = index_pairs(PairTable([2], [10]), FeatureTable(["b", "10", "2"], np.eye(3)).ids)
    assert found.pairs.tolist() == [[2, 1]]


def test_an_id_with_a_leading_zero_is_another_id():
    people = FeatureTable(["007", "8"], np.eye(2))
    with pytest.raises(InputError, match=r"1 of 1 pairs names an id.*integers in one.*zeros"):
        index_pairs(PairTable([7], [8]), people.ids)


def test_columns_that_hold_no_ids_are_told():
    people = FeatureTable(["ann", "bob"], np.eye(2))
    with pytest.raises(
        InputError, match=r"2 of 2 .* name the columns of ids with left=, right= and id="
    ):
        index_pairs(PairTable(["1.3.", "2.3."], ["ann", "bob"], [1, -1]), people.ids)


def test_unknown_ids_are_counted_and_the_first_row_is_named():
    people = FeatureTable(["a", "b"], np.eye(2))
    listed = PairTable(["a", "x", "a"], ["b", "b", "y"], rows=[1, 5, 9])
    with pytest.raises(
        InputError, match=r"2 of 3 pairs name an id without features \(first: row 5"
    ):
        index_pairs(listed, people.ids)


def test_repeated_pairs_with_one_label_are_merged_whichever_way_round():
    listed = PairTable(["a", "b", "a", "c"], ["b", "c", "c", "b"], [1, -1, 1, -1])
    with pytest.warns(DataWarning, match=r"1 pair appeared before and was merged \(row 4\)"):
        found = index_pairs(listed)
    assert found.positions.tolist() == [0, 1, 2]
    assert found.labels.tolist() == [1, -1, 1]


@pytest.mark.parametrize("labels", [[1, 1, -1], [1, -1, 1], [-1, 1, 1]])
def test_a_pair_with_contradicting_labels_is_one_null_record(labels):
    listed = PairTable(["a", "b", "a", "d"], ["b", "a", "b", "c"], [*labels, 1], rows=[4, 6, 8, 9])
    with pytest.warns(DataWarning) as caught:
        found = index_pairs(listed)
    said = [str(warning.message) for warning in caught]
    assert said[0] == "2 pairs appeared before and were merged (rows 6, 8)"
    assert said[1].startswith(
        "1 pair has contradicting labels (first in row 4) and contributes nothing"
    )
    assert [w.category for w in caught] == [PrivateNote, PrivateNote]
    assert found.labels.tolist() == [0, 1]
    assert found.positions.tolist() == [0, 3]


def test_a_label_that_cannot_be_read_contradicts_nothing():
    null = np.array([False, True, False, True])
    ends = ["a", "b", "a", "c"], ["b", "c", "b", "d"]
    listed = PairTable(*ends, [1, 1, -1, 1], rows=[4, 6, 8, 9], null=null)
    with pytest.warns(DataWarning) as caught:
        found = index_pairs(listed)
    assert found.labels.tolist() == [0, 0, 0]
    [said] = [str(one.message) for one in caught if "contradicting" in str(one.message)]
    assert said.startswith("1 pair has contradicting labels (first in row 4) and contributes")


def test_without_labels_repeated_pairs_cannot_contradict():
    with pytest.warns(DataWarning, match="2 pairs appeared before and were merged"):
        assert len(index_pairs(PairTable([1, 2, 1], [2, 1, 2])).pairs) == 1


def test_self_pairs_are_refused_by_row():
    with pytest.raises(InputError, match=r"2 pairs join a person with themselves \(rows 2, 3\)"):
        index_pairs(PairTable([1, 2, 3], [2, 2, 3]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40))
@pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
def test_merging_agrees_with_a_dictionary(listed):
    listed = [pair for pair in listed if pair[0] != pair[1]]
    if not listed:
        return
    first: dict[frozenset, int] = {}
    for at, pair in enumerate(listed):
        first.setdefault(frozenset(pair), at)
    left, right = zip(*listed, strict=True)
    assert index_pairs(PairTable(left, right)).positions.tolist() == sorted(first.values())
