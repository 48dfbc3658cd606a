"""Choosing from a share of very many pairs: still maximal, still within its limits."""

import numpy as np
import pytest

from pairveil.graph import choosing
from pairveil.graph import choosing as thinning
from pairveil.graph.choosing import select_pairs
from pairveil.graph.kappa import kappa


def dense_graph(n_people, n_pairs, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(n_people, size=n_pairs)
    right = (left + rng.integers(1, n_people, size=n_pairs)) % n_people
    # A person whose only pair comes last, and who must not be forgotten.
    return np.vstack([np.column_stack([left, right]), [[n_people, 0]]])


@pytest.fixture
def thinned(monkeypatch):
    monkeypatch.setattr(choosing, "MANY", 0)


def root(tree, v):
    while tree[v] != v:
        v = tree[v]
    return v


@pytest.mark.parametrize(("how", "limit"), [("paths", 2), ("matching", 1)])
def test_the_choice_from_a_share_is_maximal_and_nearly_as_large(thinned, how, limit):
    pairs = dense_graph(300, 30_000)
    kept = select_pairs(pairs, how, random_state=0)
    assert (np.diff(kept) > 0).all()
    assert kappa(pairs[kept]).person <= limit
    assert kappa(pairs[kept]).relationship == 1
    assert len(kept) >= 0.98 * (300 if how == "paths" else 150)
    # Maximal: nothing that was left out fits.
    degree = np.bincount(pairs[kept].ravel(), minlength=301)
    tree = list(range(301))
    for a, b in pairs[kept]:
        tree[root(tree, a)] = root(tree, b)
    for a, b in np.delete(pairs, kept, axis=0):
        full = degree[a] >= limit or degree[b] >= limit
        assert full or (how == "paths" and root(tree, a) == root(tree, b))


def test_the_choice_follows_the_seed_and_nothing_else(thinned):
    pairs = dense_graph(200, 20_000)
    first, again, other = (select_pairs(pairs, "paths", random_state=s) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_share_keeps_plenty_of_everyone():
    pairs = dense_graph(500, 100_000)
    share = thinning.share_of_pairs(pairs, 501, np.random.default_rng(0))
    degree = np.bincount(pairs[share].ravel(), minlength=501)
    assert len(share) < 0.1 * len(pairs)
    # Means of at least 16 pairs: below 2 with chance exp(-16) * 17 < 2e-6 a person, 1e-3 in all.
    assert degree[:500].min() >= 2
    assert degree[500] == 1  # who has one pair keeps it
    assert 16 <= degree[:500].mean() < 40


def test_few_pairs_a_person_are_all_looked_at(thinned, monkeypatch):
    def fail(*_):
        raise AssertionError("no share was needed")

    monkeypatch.setattr(choosing, "share_of_pairs", fail)
    select_pairs(dense_graph(300, 600), "paths", random_state=0)
    select_pairs(dense_graph(300, 30_000), "forest", random_state=0)
    with pytest.raises(AssertionError, match="no share"):
        select_pairs(dense_graph(300, 30_000), "paths", random_state=0)
