"""What one pair, relationship or entity can move the counts by: never more than is charged."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil.engine.statistics import clipped_sum
from pairveil.learners.preparing import pairs_of_entity
from pairveil.linkage.levels import less_noise, posterior_mean
from pairveil.linkage.model import LevelCounts, beyond_bound
from pairveil.privacy.grid import choose_grid
from pairveil.records.kinds import COUNTED_PAIRS
from pairveil.records.pairset import CountedPairs

N_LEVELS = (3, 2)
LEVELS = st.tuples(*(st.integers(-1, n - 1) for n in N_LEVELS))
LABELS = st.sampled_from([-1, 0, 1])
CONTENTS = st.lists(st.tuples(LEVELS, LABELS), min_size=1, max_size=12)
ORDER = {"l2": 2, "l1": 1}


def statistic(norm, matches_only=False):
    return LevelCounts(N_LEVELS, matches_only, LevelCounts.bound(len(N_LEVELS), norm))


def summed(contents, norm, matches_only=False):
    levels = np.array([one[0] for one in contents])
    labels = np.array([one[1] for one in contents], dtype=np.int8)
    counts = statistic(norm, matches_only)
    grid = choose_grid(counts.clip, math.prod(counts.shape), norm=norm)
    return clipped_sum(CountedPairs(levels, labels), None, counts, norm, grid) * grid


@pytest.mark.parametrize("norm", ["l2", "l1"])
@given(CONTENTS, st.data(), st.booleans())
@settings(deadline=None, max_examples=150)
def test_no_neighbour_moves_the_counts_further_than_is_charged(norm, contents, data, matches_only):
    changed = data.draw(st.sets(st.integers(0, len(contents) - 1), min_size=1))
    cost = COUNTED_PAIRS.costs(
        dict.fromkeys(("pair", "relationship", "person"), len(changed)), l2=norm == "l2"
    )
    clip, before = statistic(norm).clip, summed(contents, norm, matches_only)
    for adjacency in ("zero-out", "replace"):
        others = [
            one if i not in changed
            else (one[0], 0) if adjacency == "zero-out"
            else data.draw(st.tuples(LEVELS, LABELS))
            for i, one in enumerate(contents)
        ]  # fmt: skip
        moved = np.linalg.norm(before - summed(others, norm, matches_only), ORDER[norm])
        assert moved <= cost["pair"].sensitivity(adjacency) * clip * (1 + 1e-12)


@pytest.mark.oracle
def test_the_charges_are_attained_over_all_pairs_and_root_two_is_the_least_that_holds():
    every = list(itertools.product(itertools.product(range(-1, 3), range(-1, 2)), (-1, 0, 1)))
    for norm, moves in (("l2", (1.0, math.sqrt(2))), ("l1", (1.0, 2.0))):
        sums = np.array([summed([one], norm) for one in every]) / statistic(norm).clip
        lengths = np.linalg.norm(sums, ORDER[norm], axis=1)
        apart = max(np.linalg.norm(a - b, ORDER[norm]) for a, b in itertools.combinations(sums, 2))
        assert lengths.max() == pytest.approx(moves[0], rel=1e-12)
        assert apart == pytest.approx(moves[1], rel=1e-12)
        assert COUNTED_PAIRS.moves("pair", l2=norm == "l2").replace == pytest.approx(moves[1])


def test_counts_are_those_of_a_loop_in_any_order_and_exact():
    rng = np.random.default_rng(0)
    levels = np.column_stack([rng.integers(-1, n, 5000) for n in N_LEVELS])
    labels = rng.choice([-1, 0, 1], 5000)
    found = summed(list(zip(levels.tolist(), labels, strict=True)), "l2")
    shuffled = rng.permutation(5000)
    again = summed(list(zip(levels[shuffled].tolist(), labels[shuffled], strict=True)), "l2")
    expected = [0.5 * (labels == s).sum() for s in (1, -1)]
    for s in (1, -1):
        for column, size in enumerate(N_LEVELS):
            for level in range(size):
                expected.append(sum((labels == s) & (levels[:, column] == level)))
    assert found.tolist() == expected
    assert (found == again).all()


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=14),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.integers(1, 4),
    st.integers(0, 3),
)
@settings(deadline=None, max_examples=200)
def test_an_entity_is_in_no_more_pairs_than_its_kappa_and_moves_no_other_pair(
    edges, owner, most, who
):
    """The bound is enforced: emptying or changing one entity changes kappa pairs, all of its own."""
    pairs = np.array(sorted({(min(e), max(e)) for e in edges if e[0] != e[1]}))
    if not len(pairs):
        return
    entities = np.array(owner)[pairs]
    late = beyond_bound(entities, pairs, most)
    own = (entities == who).any(axis=1)
    assert (own & ~late).sum() <= pairs_of_entity(pairs, most)
    # Whoever the entity's records are said to be instead, pairs of other entities keep their place.
    others = np.where(entities == who, 99, entities)
    assert (beyond_bound(others, pairs, most)[~own] == late[~own]).all()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, 1, 7], [1.0, 1.0, np.nan]),  # a column with a missing cell is one of floats
        (["1", "1", "7"], [1, 1, None]),
        (pd.array([1, 1, 7], dtype="Int64"), pd.array([1, 1, pd.NA], dtype="Int64")),
        (["a", "A ", "c"], [" a", "A", ""]),
    ],
)
def test_an_entity_that_is_written_in_two_ways_has_no_more_records_for_it(left, right):
    entities = pd.DataFrame({"l": pd.array(left, dtype=object), "r": pd.array(right, dtype=object)})
    late = beyond_bound(entities, np.array([[0, 1], [2, 3], [4, 5]]), 2)
    assert late.tolist() == [False, True, True]


@pytest.mark.parametrize("z", [-4.0, 0.3, 6.0, 300.0])
@pytest.mark.parametrize("shape", [0.1, 0.4, 3.0])
@pytest.mark.parametrize("scale", [5.0, 500.0])
def test_a_noisy_count_becomes_its_mean_given_the_noise(z, shape, scale):
    """Against plain sums over a fine grid of t, x to a power at which the density has no pole."""
    noise = 20.0
    count = z * noise
    power = min(shape, 1.0)
    ends = [max(count - 30 * noise, 0.0) ** power, (max(count, 0.0) + 15 * noise) ** power]
    x = np.linspace(*ends, 300_001) ** (1 / power)
    log_density = -x / scale - ((count - x) / noise) ** 2 / 2
    density = np.exp(log_density - log_density.max()) * x ** (shape - power)
    mean = (x * density).sum() / density.sum()
    assert posterior_mean(count, noise, shape, scale) == pytest.approx(mean, rel=2e-3)


def test_counts_far_above_the_noise_stay_and_those_below_become_small():
    kept = less_noise(np.array([100.0, 9e4, 1e5]), 10.0, 2e5, matches=True)
    assert kept == pytest.approx([100.5, 9e4 + 0.5, 1e5 + 0.5], rel=0.05)
    lost = less_noise(np.array([500.0, -300.0, 120.0]), 300.0, 500.0, matches=False)
    assert lost[0] > 5 * lost[1]
    assert (lost > 0).all()
