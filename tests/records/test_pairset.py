"""PairSet: features once, differences on demand, one place of validation."""

import numpy as np
import pytest
from scipy import sparse

from pairveil.errors import DataWarning, InputError
from pairveil.records.pairset import PairSet
from pairveil.records.tables import FeatureTable, PairTable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_array, sparse.csr_matrix, sparse.coo_array]
)
def test_differences_are_the_loop_of_differences_and_keep_the_dtype(dtype, kind):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(6, 3)).astype(dtype)
    pairs = np.array([[0, 1], [4, 2], [5, 0]])
    data = PairSet(kind(features), pairs)
    found = data.differences([2, 0])
    dense = found.toarray() if sparse.issparse(found) else found
    assert dense.dtype == dtype
    np.testing.assert_array_equal(dense, [features[5] - features[0], features[0] - features[1]])
    assert sparse.issparse(found) == sparse.issparse(kind(features))


def test_float_arrays_are_stored_without_a_copy():
    features = np.ones((3, 2), dtype=np.float32)
    assert PairSet(features, [[0, 1]]).features is features


def test_integers_become_floats():
    assert PairSet(np.arange(6).reshape(3, 2), [[0, 1]]).features.dtype == np.float64


def test_blocks_cover_every_pair_once():
    data = PairSet(np.eye(5), [[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]])
    blocks = list(data.blocks(2))
    joined = np.concatenate([data.differences(block) for block in blocks])
    np.testing.assert_array_equal(joined, data.differences())
    assert [block.stop - block.start for block in blocks] == [2, 2, 1]
    with pytest.raises(InputError, match="at least one"):
        data.blocks(0)


def test_subset_shares_features_and_takes_labels_along():
    data = PairSet(np.eye(3), [[0, 1], [1, 2], [0, 2]], [1, -1, -1], ids=np.array([7, 8, 9]))
    part = data.subset(np.array([0, 2]))
    assert part.features is data.features
    assert part.pairs.tolist() == [[0, 1], [0, 2]]
    assert part.labels.tolist() == [1, -1]
    assert part.ids.tolist() == [7, 8, 9]
    with pytest.raises(InputError, match="no pairs"):
        data.subset([])


def test_repr_shows_sizes_only():
    data = PairSet(np.full((2, 1), 0.123456), [[0, 1]], [1], ids=np.array(["ann", "bob"]))
    assert repr(data) == "PairSet(2 people, 1 pairs, 1 features, labelled)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": np.empty((0, 2), dtype=int)}, "no pairs"),
        ({"pairs": [[0, 1], [2, 2]]}, r"person with herself \(row 2\)"),
        ({"pairs": [[0, 3]]}, r"outside the 3 people \(row 1\)"),
        ({"pairs": [[-1, 1]]}, r"outside the 3 people \(row 1\)"),
        ({"pairs": [[0.0, 1.0]]}, "must be integers"),
        ({"pairs": [[0, 1, 2]]}, "must have shape"),
        ({"labels": [1]}, "need 2 labels"),
        ({"labels": [1, 2]}, r"not \+1 .*: row 2"),
        ({"labels": ["a", "b"]}, "must be the numbers"),
        ({"features": [[1.0], [np.nan], [2.0]]}, "column 1, row 2"),
        ({"features": [[1.0], [2.0], [np.inf]]}, "column 1, row 3"),
        ({"features": sparse.csr_array([[0, 1.0], [0, np.inf], [0, 1]])}, "column 2, row 2"),
        ({"features": [["x"], ["y"], ["z"]]}, "not a number"),
        ({"features": np.ones(3)}, "1 dimensions"),
        ({"features": np.ones((0, 2))}, "no rows"),
        ({"features": np.ones((3, 0))}, "no numeric columns"),
        ({"ids": np.array([1, 2])}, "need 3 ids"),
        ({"feature_names": ["a", "b"]}, "2 column names for 1"),
    ],
)
def test_each_kind_of_bad_input_has_its_own_error(changes, message):
    good = {"features": np.ones((3, 1)), "pairs": [[0, 1], [1, 2]], "labels": [1, -1]}
    with pytest.raises(InputError, match=message):
        PairSet(**{**good, **changes})


def test_a_finite_block_whose_sum_overflows_is_accepted():
    assert PairSet(np.full((3, 2), 1e308), [[0, 1]]).n_people == 3


PEOPLE = FeatureTable(["ann", "bob", "cid"], [[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], ["age", "dose"])


def test_join_resolves_ids_clips_rows_and_says_so():
    listed = PairTable(["cid", "ann"], ["bob", "cid"], [1, -1])
    with pytest.warns(DataWarning, match="1 of 3 people's rows were longer than 1 and clipped$"):
        data = PairSet.join(PEOPLE, listed, data_norm=1.0)
    assert data.pairs.tolist() == [[2, 1], [0, 2]]
    assert data.labels.tolist() == [1, -1]
    assert data.feature_names == ("age", "dose")
    np.testing.assert_allclose(data.features[0], [0.6, 0.8])
    np.testing.assert_array_equal(PEOPLE.values[0], [3.0, 4.0])  # the table is left alone


def test_join_advises_public_bounds_when_most_rows_are_clipped():
    people = FeatureTable([0, 1], [[3.0], [4.0]])
    with pytest.warns(DataWarning, match="more than half: scale the columns by public bounds"):
        PairSet.join(people, PairTable([0], [1]), data_norm=1.0)


def test_warnings_point_at_the_caller():
    with pytest.warns(DataWarning) as caught:
        PairSet.join(PEOPLE, PairTable(["ann", "bob"], ["bob", "ann"], [1, 1]), data_norm=1.0)
    assert len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}
