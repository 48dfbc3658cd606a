"""Groups dealt and cut: disjoint, small enough, blind to order, and keeping what they can."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil import InputError, PairSet, design_groups, design_pairs, select_pairs
from pairveil.graph.choosing import cut_into_groups


@pytest.mark.parametrize("size", [2, 3, 8])
def test_dealt_groups_are_disjoint_and_leave_few_over(size):
    groups = design_groups(50, size, random_state=1)
    assert groups.shape == (50 // size, size)
    assert len(np.unique(groups)) == groups.size
    assert not np.array_equal(groups, design_groups(50, size, random_state=2))
    assert np.array_equal(groups, design_groups(50, size, random_state=1))


@pytest.mark.parametrize(
    ("n", "size"), [(3, 4), (10, 1), (10, 65), (10, 2.5), (True, 2), (10, True)]
)
def test_designs_that_make_no_sense_are_refused(n, size):
    with pytest.raises(InputError):
        design_groups(n, size)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(1, 80), st.integers(2, 9))
def test_cut_groups_are_small_and_hold_a_pair(seed, n, k, size):
    rng = np.random.default_rng(seed)
    ends = np.unique(np.sort(rng.integers(n, size=(k, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    if not len(ends):
        return
    group = cut_into_groups(ends, n, size, np.random.default_rng(0))
    sizes = np.bincount(group[group >= 0], minlength=1)
    assert sizes.max() <= size
    paired = np.zeros(n, dtype=bool)
    paired[ends] = True
    assert not (group[~paired] >= 0).any()
    inside = ends[(group[ends[:, 0]] == group[ends[:, 1]]) & (group[ends[:, 0]] >= 0)]
    # Each group is connected: so that components of the pairs kept are the groups again.
    for one in np.flatnonzero(sizes > 1):
        here = inside[group[inside[:, 0]] == one]
        reached, grew = {int(here[0, 0])}, True
        while grew:
            more = {int(x) for pair in here for x in pair if reached & {int(v) for v in pair}}
            grew = not more <= reached
            reached |= more
        assert len(reached) == sizes[one]


def test_separate_cliques_are_kept_whole_and_paths_mostly():
    first, second = np.triu_indices(8, 1)
    cliques = np.concatenate([np.column_stack([first, second]) + 8 * i for i in range(20)])
    assert len(select_pairs(cliques, "groups", random_state=0)) == len(cliques)
    assert len(select_pairs(design_pairs(1000), "groups", random_state=0)) > 0.8 * 999


def test_a_selection_of_groups_depends_on_the_set_of_pairs_only():
    rng = np.random.default_rng(3)
    pairs = np.unique(np.sort(rng.integers(60, size=(150, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    kept = {tuple(row) for row in pairs[select_pairs(pairs, "groups", random_state=0)].tolist()}
    shuffled = rng.permutation(pairs)[:, ::-1]
    again = shuffled[select_pairs(shuffled, "groups", random_state=0)]
    assert kept == {tuple(sorted(row)) for row in again.tolist()}
    data = PairSet(rng.normal(size=(60, 2)), pairs, rng.choice([-1, 1], size=len(pairs)))
    assert len(select_pairs(data, "groups", random_state=0)) == len(kept)


def test_a_star_keeps_one_group():
    star = np.column_stack([np.zeros(30, dtype=int), np.arange(1, 31)])
    assert len(select_pairs(star, "groups", random_state=0)) == 7


def test_max_degree_is_not_for_groups():
    with pytest.raises(InputError, match="max_degree"):
        select_pairs([(0, 1), (1, 2)], "groups", max_degree=1)
