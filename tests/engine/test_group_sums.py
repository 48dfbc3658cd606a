"""Clipped sums over groups: a brute-force oracle, and a person's whole content never moves more than 2C."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairveil.engine.gradients import SetGradient
from pairveil.engine.losses import ContrastiveLoss
from pairveil.engine.statistics import TILE, clipped_sum
from pairveil.graph.choosing import design_groups
from pairveil.learners.contrastive.recipe import (
    ColumnSignal,
    DissimilarDistances,
    GroupMean,
    Survey,
)
from pairveil.privacy.grid import choose_grid
from pairveil.records.groups import GroupSet, slots

LOSS = ContrastiveLoss(1.0)
GRID = 2.0**-40


def _groups(rng, n, d, size, scale=1.0):
    features = rng.normal(size=(n, d)) * scale
    return GroupSet.of_classes(
        features, design_groups(n, size, random_state=0), rng.integers(-1, 3, size=n)
    )


def _by_hand(groups, gradient, norm):
    """Every pair's gradient formed, averaged over its group, clipped as a matrix."""
    first, second = slots(groups.size)
    total = np.zeros(gradient.shape)
    for members, labels in zip(groups.members, groups.labels, strict=True):
        x = groups.features[members] * gradient.scale
        mean, live = np.zeros(gradient.shape), 0
        for a, b, label in zip(first, second, labels, strict=True):
            if label == 0:
                continue
            z = x[a] - x[b]
            distance = np.linalg.norm(gradient.W @ z)
            factor = LOSS.coefficient(np.array([distance]), np.array([label]))[0]
            mean += factor * gradient.weights[0 if label > 0 else 1] * np.outer(gradient.W @ z, z)
            live += 1
        if live:
            mean /= live
            length = np.linalg.norm(mean)
            total += mean * min(1.0, gradient.clip / length) if length > 0 else 0.0
    del norm
    return total


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("clip", [1e-3, 0.1, 100.0])
def test_the_sum_is_that_of_a_brute_force_loop(size, clip):
    rng = np.random.default_rng(size)
    groups = _groups(rng, 61, 5, size)
    scale = np.linspace(0.5, 2.0, 5)
    gradient = SetGradient(rng.normal(size=(3, 5)), LOSS, clip, (0.7, 0.3), scale, size)
    grid = choose_grid(clip, 15, n_pairs=groups.n_records)
    found = clipped_sum(groups, None, gradient, "l2", grid) * grid
    np.testing.assert_allclose(found, _by_hand(groups, gradient, "l2"), atol=1e-6 * clip)


def _changed(rng, groups, person, scale):
    """One person's whole content: features and the labels of all her pairs; some of them null."""
    features = np.array(groups.features)
    features[person] = rng.normal(size=features.shape[1]) * scale
    labels = groups.labels.copy()
    first, second = slots(groups.size)
    row = int(np.flatnonzero((groups.members == person).any(axis=1))[0])
    hers = (groups.members[row][first] == person) | (groups.members[row][second] == person)
    labels[row, hers] = rng.integers(-1, 2, size=hers.sum())
    return GroupSet(features, groups.members, labels)


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 9),
    st.sampled_from([1e-160, 1e-80, 1e-6, 1.0, 1e8, 1e60]),
    st.sampled_from([1e-160, 1e-6, 1.0, 1e6, 1e60]),
    st.sampled_from([1e-4, 1.0]),
    st.sampled_from(["l2", "l1"]),
)
def test_a_person_never_moves_gradients_further_than_two_clips(
    seed, size, scale, other, clip, norm
):
    rng = np.random.default_rng(seed)
    n, d, k = 3 * size, 4, 2
    groups = _groups(rng, n, d, size, scale)
    near = _changed(rng, groups, int(groups.members[0, 0]), other)
    gradient = SetGradient(
        rng.normal(size=(k, d)) * rng.choice([0.1, 1, 30]), LOSS, clip, (1.0, 0.5), size=size
    )
    grid = choose_grid(clip, k * d, norm=norm, n_pairs=n)
    one, two = (clipped_sum(found, None, gradient, norm, grid) for found in (groups, near))
    moved = np.linalg.norm(((one - two) * grid).ravel(), 1 if norm == "l1" else 2)
    assert moved <= 2 * gradient.sensitivity(norm, grid)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_beyond_the_floats_contribute_nothing_and_stop_nothing():
    rng = np.random.default_rng(0)
    groups = _groups(rng, 12, 4, 3)
    gradient = SetGradient(rng.normal(size=(2, 4)), LOSS, 0.1, scale=np.full(4, 1e10), size=3)
    far = np.array(groups.features)
    far[groups.members[0, 0]] = 1e300  # infinite once scaled
    found = GroupSet(far, groups.members, groups.labels)
    rest = np.arange(1, groups.n_records)
    total = clipped_sum(found, None, gradient, "l2", GRID, separately=True)
    kept = clipped_sum(groups, rest, gradient, "l2", GRID, separately=True)
    assert (total == kept).all()


def test_two_clips_are_reached_so_one_would_be_too_little():
    # A pulls the group together, without her it pushes apart (a whole fit: tests/audit/test_group_audit.py).
    features = np.array([[-5.0, 0.0], [0.0, 0.0], [0.1, 0.0]])
    with_her = GroupSet.of_classes(features, [[0, 1, 2]], [0, 0, 1])
    without = GroupSet.of_classes(features, [[0, 1, 2]], [-1, 0, 1])
    gradient = SetGradient(np.eye(2), LOSS, 0.01, size=3)
    one, two = (clipped_sum(found, None, gradient, "l2", GRID) for found in (with_her, without))
    moved = np.linalg.norm((one - two) * GRID)
    assert 1.99 * 0.01 < moved <= 2 * gradient.sensitivity("l2", GRID)


def _side_queries(d, clip, norm, size):
    """All that a fit asks of groups beside gradients."""
    columns = np.linspace(0.5, 2.0, d)
    for statistic in (
        Survey(d, 2.0, Survey.bound(norm)),
        ColumnSignal(d, (1.0, 0.3), clip, columns),
        DissimilarDistances(2.0, DissimilarDistances.bound(norm), columns),
    ):
        yield GroupMean(statistic, size)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-160, 1e-6, 1.0, 1e8]),
    st.sampled_from([1e-3, 1.0]),
    st.sampled_from(["l2", "l1"]),
)
def test_a_person_never_moves_the_side_queries_further_than_two_clips(seed, scale, clip, norm):
    rng = np.random.default_rng(seed)
    groups = _groups(rng, 12, 4, 4, scale)
    near = _changed(rng, groups, int(groups.members[0, 0]), rng.choice([1e-6, 1.0, 1e8]))
    for statistic in _side_queries(4, clip, norm, size=4):
        grid = choose_grid(statistic.clip, int(np.prod(statistic.shape)), norm=norm, n_pairs=12)
        one, two = (clipped_sum(found, None, statistic, norm, grid) for found in (groups, near))
        moved = np.linalg.norm(((one - two) * grid).ravel(), 1 if norm == "l1" else 2)
        assert moved <= 2 * statistic.sensitivity(norm, grid)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("size", [2, 8, 64])
def test_a_mean_is_charged_the_rounding_of_all_pairs_of_a_tile(size, norm):
    """1,024 groups of P pairs are added up in both worlds: gamma(1024 P) of what their terms come to."""
    terms = TILE * size * (size - 1) / 2 * 2.0**-53
    for mean in _side_queries(4, 0.4, norm, size):
        largest = max(mean.clip, mean.of.largest_term)
        rounding = 2 * terms / (1 - terms) * TILE * largest
        width = np.prod(mean.shape) if norm == "l1" else np.sqrt(np.prod(mean.shape))
        assert mean.sensitivity(norm, GRID) >= mean.clip + rounding + GRID * width


def test_larger_groups_than_a_mean_is_charged_for_are_refused():
    groups = _groups(np.random.default_rng(0), 12, 4, 4)
    for mean in _side_queries(4, 0.1, "l2", size=3):
        with pytest.raises(ValueError, match="smaller groups"):
            clipped_sum(groups, None, mean, "l2", GRID)


def test_null_groups_contribute_nothing_and_batches_add_up():
    rng = np.random.default_rng(0)
    groups = _groups(rng, 40, 3, 4)
    gradient = SetGradient(rng.normal(size=(2, 3)), LOSS, 0.1, size=4)
    null = GroupSet(groups.features, groups.members, np.zeros_like(groups.labels))
    assert not clipped_sum(null, None, gradient, "l2", GRID).any()
    # A tile in which nobody says anything is no error: that would tell of it.
    for statistic in _side_queries(3, 0.1, "l2", size=4):
        assert not clipped_sum(null, None, statistic, "l2", GRID).any()
    parts = [
        clipped_sum(groups, rows, gradient, "l2", GRID, separately=True)
        for rows in (np.arange(5), np.arange(5, 10))
    ]
    whole = clipped_sum(groups, None, gradient, "l2", GRID, separately=True)
    assert np.array_equal(parts[0] + parts[1], whole)
    np.testing.assert_allclose(
        whole * GRID, clipped_sum(groups, None, gradient, "l2", GRID) * GRID, atol=1e-9
    )


def test_sparse_and_dense_features_give_the_same_sum():
    from scipy import sparse

    rng = np.random.default_rng(1)
    groups = _groups(rng, 24, 4, 3)
    thin = groups.with_features(sparse.csr_array(groups.features))
    gradient = SetGradient(rng.normal(size=(2, 4)), LOSS, 0.1, size=3)
    one, two = (clipped_sum(found, None, gradient, "l2", GRID) * GRID for found in (groups, thin))
    np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_group_contributes_the_mean_over_its_pairs_and_no_more_than_a_clip(norm):
    rng = np.random.default_rng(4)
    groups = _groups(rng, 40, 3, 5)
    first, second = slots(5)
    for statistic in _side_queries(3, 0.05, norm, size=5):
        total = np.zeros(statistic.shape)
        for members, labels in zip(groups.members, groups.labels, strict=True):
            rows = groups.features[members] * (1.0 if statistic.scale is None else statistic.scale)
            z = (rows[first] - rows[second])[labels != 0]
            if len(z):
                own = [labels[labels != 0][[at]] for at in range(len(z))]
                each = [statistic.of.tile_sum(z[[at]], own[at], norm) for at in range(len(z))]
                mean = np.mean(each, axis=0)
                assert np.linalg.norm(mean, 1 if norm == "l1" else 2) <= statistic.clip * (1 + 1e-9)
                total += mean
        found = clipped_sum(groups, None, statistic, norm, GRID) * GRID
        np.testing.assert_allclose(found, total, atol=1e-6)
