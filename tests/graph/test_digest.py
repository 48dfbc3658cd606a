"""A graph's name: of the set of pairs, and of no other graph."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil.errors import InputError
from pairveil.graph.kappa import digest_of, graph_digest
from pairveil.records.pairset import PairSet

text = st.text(st.characters(codec="utf-8"), max_size=3)
graphs = st.one_of(
    st.lists(st.integers(-5, 300), min_size=3, max_size=5, unique=True),
    st.lists(text, min_size=3, max_size=5, unique=True),
).flatmap(
    lambda ids: st.tuples(
        st.just(ids),
        st.lists(
            st.tuples(st.integers(0, len(ids) - 1), st.integers(0, len(ids) - 1)).filter(
                lambda pair: pair[0] != pair[1]
            ),
            min_size=1,
            max_size=6,
        ),
    )
)


def as_set(ids, pairs):
    return frozenset(frozenset((type(ids[a]).__name__, ids[a]) for a in pair) for pair in pairs)


def named(ids, pairs):
    array = np.array(ids, dtype=object if isinstance(ids[0], str) else np.int64)
    return digest_of(array, np.array(pairs))


@settings(deadline=None, max_examples=80, derandomize=True)
@given(graphs, graphs, st.randoms(use_true_random=False))
def test_names_are_equal_where_the_sets_of_pairs_are(one, other, random):
    assert (named(*one) == named(*other)) == (as_set(*one) == as_set(*other))
    ids, pairs = one
    place = random.sample(range(len(ids)), len(ids))
    shuffled = [None] * len(ids)
    for old, new in enumerate(place):
        shuffled[new] = ids[old]
    turned = [(place[b], place[a]) for a, b in random.sample(pairs, len(pairs))]
    assert named(shuffled, turned) == named(ids, pairs)


def test_kinds_lengths_and_characters_do_not_collide():
    pair = [[0, 1]]
    names = {
        digest_of([1, 2], pair),
        digest_of(["1", "2"], pair),
        digest_of(["a\0b", "c"], pair),
        digest_of(["a", "b\0c"], pair),
        digest_of(["ab", "c"], pair),
        digest_of(["a", "bc"], pair),
        digest_of([1, 2, 3], [[0, 1], [1, 2]]),
    }
    assert len(names) == 7
    assert digest_of([1, 2, 3], pair) == digest_of([1, 2], pair)  # who is in no pair is in no graph


def test_a_salt_makes_another_name_and_is_long_enough():
    data = PairSet(np.eye(2), [[0, 1]], ids=["ann", "bob"])
    salted = graph_digest(data, salt=b"0" * 16)
    assert len({graph_digest(data), salted, graph_digest(data, salt=b"1" * 16)}) == 3
    assert salted == digest_of(["bob", "ann"], [[0, 1]], salt=b"0" * 16)
    with pytest.raises(InputError, match="at least 16 bytes"):
        graph_digest(data, salt=b"short")
    assert graph_digest(PairSet(np.eye(2), [[0, 1]])) is None


def test_other_ids_are_refused():
    with pytest.raises(InputError, match="integers or text"):
        digest_of([1.5, 2.5], [[0, 1]])
    with pytest.raises(InputError, match="integers or text"):
        digest_of(np.array([1, "a"], dtype=object), [[0, 1]])
