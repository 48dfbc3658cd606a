"""Random pairs beside few labels: they leave kappa as it is, and make u precise at the same price."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled import N_LEVELS, M, U, labelled

from pairveil import InputError
from pairveil.graph.kappa import kappa
from pairveil.linkage import PrivateLinkageModel, random_pairs
from pairveil.linkage.levels import belief


@given(
    st.sets(st.integers(0, 60), max_size=40),
    st.lists(st.integers(0, 60), max_size=20),
    st.integers(0, 50),
)
@settings(deadline=None, max_examples=100)
def test_they_are_a_path_of_records_that_no_labelled_pair_has(ids, labelled, n):
    free = ids - set(labelled)
    found = random_pairs(sorted(ids), n, labelled)
    assert len(found) == max(0, min(n, len(free) - 1))
    assert set(found.ravel().tolist()) <= free
    walk = [*found[:1, 0].tolist(), *found[:, 1].tolist()]
    assert len(set(walk)) == len(walk)
    assert (found[1:, 0] == found[:-1, 1]).all()
    again = random_pairs(sorted(ids, reverse=True), n, labelled)  # the order of ids is data too
    assert (again == found).all()


def test_pairs_of_two_tables_have_a_record_of_either():
    old, new = [f"old-{i}" for i in range(9)], [f"new-{i}" for i in range(5)]
    found = random_pairs(old, 100, ["old-3", "new-0"], new)
    assert len(found) == 7
    assert all({one.split("-")[0] for one in pair} == {"old", "new"} for pair in found)


@pytest.mark.parametrize("n", [-1, 2.5, "7"])
def test_a_number_of_pairs_that_is_none_is_refused(n):
    with pytest.raises(InputError, match="whole number, 0 or more"):
        random_pairs([1, 2, 3], n)


def test_with_them_few_labels_make_a_better_model_at_the_same_price():
    """Seeded: the error of log2 u over all levels, five fits each."""
    levels, y, pairs = labelled(500, seed=1)
    rng = np.random.default_rng(2)
    drawn = random_pairs(np.arange(6000), 5000, pairs)
    more = np.column_stack([rng.choice(len(u), len(drawn), p=list(u)) for u in U])
    wrong = {}
    for name, given_ in {
        "labels": (levels, y, pairs),
        "with random pairs": (
            np.concatenate([levels, more]),
            np.append(y, np.full(len(drawn), -1)),
            np.concatenate([pairs, drawn]),
        ),
    }.items():
        assert kappa(given_[2]).relationship == 1
        found = []
        for seed in range(5):
            model = PrivateLinkageModel(epsilon=0.1, random_state=seed).fit(*given_, N_LEVELS)
            assert model.certificate_.kappas == {"pair": 1, "relationship": 1, "person": 2}
            found += [np.abs(np.log2(a / b)) for a, b in zip(model.u_, U, strict=True)]
        wrong[name] = np.concatenate(found).mean()
    assert wrong["with random pairs"] < 0.7 * wrong["labels"]


def test_labels_of_matches_alone_do_with_random_pairs_and_a_matching_keeps_kappa_at_one():
    levels, y, pairs = labelled(4000, seed=4)
    apart = np.arange(0, 4000, 2)  # pairs of a path that share no record
    levels, pairs = (one[apart][y[apart] > 0] for one in (levels, pairs))
    drawn = random_pairs(np.arange(9000), 4000, pairs)
    rng = np.random.default_rng(5)
    more = np.column_stack([rng.choice(len(u), len(drawn), p=list(u)) for u in U])
    model = PrivateLinkageModel(epsilon=1.0, unit="person", select="matching", random_state=0)
    y = np.repeat([1, -1], [len(pairs), len(drawn)])
    model.fit(np.concatenate([levels, more]), y, np.concatenate([pairs, drawn]), N_LEVELS)
    assert model.kappa_ == 1
    for found, true in zip([*model.m_, *model.u_], [*M, *U], strict=True):
        assert found == pytest.approx(true, abs=0.05)


@pytest.mark.parametrize("size", range(1, 12))
def test_what_is_believed_before_any_pair_is_seen_rises_with_the_level(size):
    m, u = belief(size, matches=True), belief(size, matches=False)
    assert m.sum() == pytest.approx(1) == u.sum()
    assert min(m.min(), u.min()) > 0
    assert (np.diff(m / u) > 0).all()


def test_where_noise_is_all_the_belief_decides():
    levels, y, pairs = labelled(200, seed=3)
    model = PrivateLinkageModel(epsilon=1e-4, random_state=0).fit(levels, y, pairs, N_LEVELS)
    for m, u, size in zip(model.m_, model.u_, N_LEVELS, strict=True):
        assert m == pytest.approx(belief(size, matches=True), abs=0.02)
        assert u == pytest.approx(belief(size, matches=False), abs=0.02)
