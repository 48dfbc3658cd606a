"""Order is data: what a set of pairs becomes depends on who is paired with whom, and on nothing else."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pairveil.errors import DataWarning, InputError, PrivateNote
from pairveil.graph import choosing
from pairveil.graph.choosing import select_pairs
from pairveil.records import canonical
from pairveil.records.canonical import canonical_records, is_canonical
from pairveil.records.pairset import PairSet, counted_pairs
from pairveil.records.readers import read_features, read_pairs
from pairveil.records.scaling import PublicBounds, scale_to_bounds
from pairveil.records.tables import FeatureTable, PairTable
from pairveil.records.tupleset import TupleSet
from pairveil.records.validation import clip_rows_and_say_so

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
every_example = settings(deadline=None, max_examples=60, derandomize=True)
mentions = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([1, -1])).filter(
        lambda row: row[0] != row[1]
    ),
    min_size=1,
    max_size=60,
)


def expected(rows):
    """The records of some rows by a dictionary: {pair: (label, first mention)}."""
    found = {}
    for at, (a, b, label) in enumerate(rows):
        pair = (min(a, b), max(a, b))
        old, first = found.get(pair, (label, at))
        found[pair] = (label if old == label else 0, first)
    return found


@every_example
@given(mentions)
@pytest.mark.parametrize("sort", [canonical._by_numpy, canonical._by_loops])
def test_records_agree_with_a_dictionary(sort, rows):
    table = np.array(rows)
    pairs, labels = np.ascontiguousarray(table[:, :2]), table[:, 2].astype(np.int8)
    found = sort(pairs, labels) if sort is canonical._by_numpy else sort(pairs, labels, None)
    wanted = expected(rows)
    positions = np.arange(len(rows)) if found.positions is None else found.positions
    assert found.members.tolist() == [list(pair) for pair in sorted(wanted)]
    assert list(zip(found.content.tolist(), positions.tolist(), strict=True)) == [
        wanted[pair] for pair in sorted(wanted)
    ]
    assert is_canonical(found.members)
    assert found.n_repeated == len(rows) - len(wanted)
    assert found.n_contrary == sum(label == 0 for label, _ in wanted.values())


def test_both_ways_to_sort_agree_on_long_lists_and_with_ranks():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 30, (900, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    labels, rank = np.where(pairs[:, 0] % 2, 1, -1).astype(np.int8), rng.permutation(30)
    one, other = canonical._by_numpy(rank[pairs], labels), canonical._by_loops(pairs, labels, rank)
    for name in ("members", "content", "positions"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.n_repeated, one.n_contrary) == (other.n_repeated, other.n_contrary)
    assert one.n_contrary > 0


def test_pairs_that_are_in_order_are_not_copied():
    pairs = np.array([[0, 1], [0, 2], [1, 2]], dtype=np.int32)
    found = canonical_records(pairs)
    assert found.members is pairs
    assert found.positions is None
    long = np.stack([np.arange(40_000), np.arange(40_000) + 1], axis=1)  # more than one block
    assert is_canonical(long)
    assert not is_canonical(np.concatenate([long, long[:1]]))
    assert not is_canonical(long[:, ::-1])


def moved(rows, ids, rng, n=10):
    """The same pairs of the same people: rows shuffled, sides swapped, people in another order."""
    table = np.array(rows)[rng.permutation(len(rows))]
    people = rng.permutation(n)
    place = np.argsort(people)
    ends, swap = place[table[:, :2]], rng.random(len(table)) < 0.5
    ends[swap] = ends[swap, ::-1]
    features = (np.arange(n)[:, None] + np.array([0.5, 0.25]))[people]
    return PairSet(features, ends, table[:, 2], ids=ids[people])


IDS = {
    "integers": np.array([4, 30, 7, 100, 1, 2, 55, 9, 8, 11]),
    "text": np.array([f"{name}é" for name in "zyxabcpqrs"], dtype=object),
}


@every_example
@given(mentions, st.integers(0, 1000), st.sampled_from(["paths", "forest", "matching", "all"]))
@pytest.mark.parametrize("kind", IDS)
def test_the_order_of_rows_sides_and_people_changes_nothing(kind, rows, seed, how):
    rng, ids = np.random.default_rng(seed), IDS[kind]
    one, other = moved(rows, ids, rng), moved(rows, ids, rng)
    first, again = one.canonical()[0], other.canonical()[0]
    assert list(first.ids) == sorted(ids)
    for name in ("features", "pairs", "labels", "ids"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    np.testing.assert_array_equal(first.differences(), again.differences())
    chosen = [
        {
            frozenset(pair)
            for pair in data.ids[data.pairs[select_pairs(data, how, random_state=seed)]]
        }
        for data in (one, other, first)
    ]
    assert chosen[0] == chosen[1] == chosen[2]


@pytest.mark.parametrize("how", ["paths", "matching", "forest", "all"])
@pytest.mark.parametrize("many", [False, True])
def test_the_choice_of_an_array_is_a_function_of_its_pairs(how, many, monkeypatch):
    if many:
        monkeypatch.setattr(choosing, "MANY", 0)
    rng = np.random.default_rng(0)
    left = rng.integers(80, size=12_000 if many else 300)
    pairs = np.stack([left, (left + rng.integers(1, 80, size=left.size)) % 80], axis=1)
    order, swap = rng.permutation(len(pairs)), rng.random(len(pairs)) < 0.5
    other = pairs[order]
    other[swap] = other[swap, ::-1]
    kept = {tuple(sorted(p)) for p in pairs[select_pairs(pairs, how, random_state=1)].tolist()}
    again = {tuple(sorted(p)) for p in other[select_pairs(other, how, random_state=1)].tolist()}
    assert kept == again
    # People without pairs have no say either.
    apart = select_pairs(pairs * 3 + 5, how, random_state=1)
    assert {tuple(sorted(p)) for p in pairs[apart].tolist()} == kept


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_pair_whose_labels_disagree_is_null_and_its_difference_is_zero(kind):
    X = np.arange(8.0).reshape(4, 2) + 1
    data = PairSet(kind(X), [[0, 1], [2, 3], [1, 0], [3, 2]], [1, -1, -1, -1])
    with pytest.warns(DataWarning) as caught:
        ordered, positions = data.canonical()
    assert [w.category for w in caught] == [PrivateNote, PrivateNote]
    assert all(w.filename == __file__ for w in caught)
    assert str(caught[1].message).startswith(
        "1 pair has contradicting labels and contributes nothing"
    )
    assert positions.tolist() == [0, 1]
    assert ordered.labels.tolist() == [0, -1]
    found = ordered.differences()
    dense = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(dense, [[0.0, 0.0], X[2] - X[3]])
    np.testing.assert_array_equal(
        ordered.features.toarray() if sparse.issparse(ordered.features) else X, X
    )


def _said_publicly(labels, features, roles):
    """What the data layer says that may become part of an output."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaled = scale_to_bounds(features, PublicBounds([0.0, 0.0], [1.0, 1.0]))
        clip_rows_and_say_so(scaled, 1.0)
        listed = PairTable(["ann", "bob", "bob", "ANN"], ["bob", "ann", "cid", "cid"], labels)
        PairSet.join(FeatureTable(["ann", "bob", "cid", "ANN"], scaled), listed, 1.0).canonical()
        PairSet(scaled, [[0, 1], [1, 0]], labels[:2]).canonical()
        TupleSet(scaled, roles).canonical()
        counted_pairs(np.array(labels)[:, None], np.array(labels, dtype=np.int8), [[0, 1]] * 4)
    return [str(one.message) for one in caught if not issubclass(one.category, PrivateNote)]


def test_what_is_said_publicly_follows_from_ids_alone():
    inside, outside = np.full((4, 2), 0.4), np.full((4, 2), 7.0)
    said = _said_publicly([1, 1, -1, 1], inside, [[0, 1, 2], [0, 1, 2]])
    assert ["case, outer spaces" in one for one in said] == [True]  # similar ids
    assert _said_publicly([-1, 1, 1, 1], outside, [[0, 1, 2], [1, 0, 2]]) == said


def test_nobody_can_say_null_himself():
    with pytest.raises(InputError, match=r"1 label not \+1"):
        PairSet(np.eye(2), [[0, 1]], [0])
    with pytest.raises(InputError, match=r"1 label not \+1"):
        PairTable(["a"], ["b"], [0])


def test_one_id_for_many_rows_is_refused():
    with pytest.raises(InputError, match=r"2 rows of the features repeat an id .*rows 3, 4"):
        PairSet(np.eye(4), [[0, 1], [2, 3]], ids=["a", "b", "a", "b"])
    with pytest.raises(InputError, match="1 row of the features repeats"):
        PairSet(np.eye(2), [[0, 1]], ids=[7, 7])


SIMILAR = ["ann", "ann ", "ANN", "bob", "Straße", "STRASSE", "ﬁn", "fin", "007"]


@pytest.mark.filterwarnings("default")
def test_similar_ids_are_counted_where_they_enter_and_never_shown():
    pairs = {"left": SIMILAR[:-1], "right": SIMILAR[1:]}
    table = {"id": SIMILAR, "x": np.arange(9.0)}
    ways = {
        "features": lambda: read_features(table),
        "pairs": lambda: read_pairs(pairs, label=None),
        "people": lambda: PairSet(np.eye(9), [[0, 1]], ids=SIMILAR),
    }
    for what, read in ways.items():
        with pytest.warns(
            DataWarning, match=f"^4 ids of the {what} differ from another one"
        ) as caught:
            read()
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert not any(
            name.strip() in str(caught[0].message) for name in ("ANN", "bob", "Stra", "007")
        )
    people = FeatureTable(SIMILAR, np.eye(9))
    with pytest.warns(DataWarning, match="4 ids of the features"):
        PairSet.join(people, PairTable(["ann"], ["bob"]))


@pytest.mark.filterwarnings("error")
def test_similar_ids_are_merged_on_request():
    listed = {"left": ["ann", "ANN ", "bob"], "right": ["Bob", "cid", "CID"], "label": [1, -1, 1]}
    pairs = read_pairs(listed, merge_similar_ids=True)
    people = read_features(
        {"id": ["Ann", " bob", "Cid"], "x": [0.0, 0.5, 1.0]}, merge_similar_ids=True
    )
    assert people.ids.tolist() == ["ann", "bob", "cid"]
    assert PairSet.join(people, pairs).pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    with pytest.raises(InputError, match="1 row of the features repeats an id"):
        read_features({"id": ["ann", "ANN"], "x": [1, 2]}, merge_similar_ids=True)
    same = read_pairs({"left": ["ann"], "right": ["Ann"], "label": [1]}, merge_similar_ids=True)
    with pytest.raises(InputError, match="joins a person with herself"):
        PairSet.join(people, same)
    assert (
        read_pairs({"left": [1], "right": [2], "label": [1]}, merge_similar_ids=True).left.dtype
        == np.int64
    )


def test_ids_without_features_say_when_they_are_merely_spelled_otherwise():
    people = FeatureTable(["ann", "bob"], np.eye(2))
    with pytest.raises(InputError, match=r"another case.*merge_similar_ids=True"):
        PairSet.join(people, PairTable(["ANN"], ["bob"]))
    with pytest.raises(InputError) as caught:
        PairSet.join(people, PairTable(["zoe"], ["bob"]))
    assert "merge_similar_ids" not in str(caught.value)
