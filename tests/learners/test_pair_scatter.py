"""Second moments of labelled pairs: what one pair moves, and the metrics that are made of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from learners import chain, people
from pairveil import DPPScatterLearner, InputError, PairSet, PrivacyLedger
from pairveil.engine.statistics import clipped_sum
from pairveil.learners.pair_scatter import METHODS, WEIGHTS, PairMoments, Scatters, learn
from pairveil.privacy.grid import choose_grid

pytestmark = pytest.mark.filterwarnings("ignore::pairveil.errors.DataWarning")
X, GROUPS = people(600, 4)
PAIRS, Y = chain(GROUPS)
INF = float("inf")


def test_the_sum_is_counts_and_second_moments_of_each_label():
    rng = np.random.default_rng(0)
    dx, y = rng.normal(size=(50, 3)), rng.choice([-1, 1], size=50).astype(np.int8)
    dx /= np.maximum(1.0, np.linalg.norm(dx, axis=1, keepdims=True))
    for diagonal in (False, True):
        statistic = PairMoments(3, diagonal, PairMoments.bound("l2"))
        counts, sums = statistic.parted(statistic.tile_sum(dx, y, "l2"))
        for row, label in enumerate((1, -1)):
            wanted = dx[y == label].T @ dx[y == label]
            np.testing.assert_allclose(counts[row], (y == label).sum())
            np.testing.assert_allclose(
                sums[row], np.diag(np.diag(wanted)) if diagonal else wanted, atol=1e-12
            )
    thin = statistic.tile_sum(sparse.csr_array(dx), y, "l2")
    np.testing.assert_allclose(thin, statistic.tile_sum(dx, y, "l2"))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    norm=st.sampled_from(["l2", "l1"]),
    size=st.sampled_from([1e-160, 1e-3, 0.5, 3.0, 1e8]),
    diagonal=st.booleans(),
)
def test_no_pair_moves_a_sum_further_than_its_sensitivity(seed, norm, size, diagonal):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    features = rng.normal(size=(12, d)) * size
    y = rng.choice([-1, 1], size=6)
    data = PairSet(features, np.arange(12).reshape(6, 2), y)
    other = features.copy()
    other[:2] *= rng.choice([-1.0, 0.0, 10.0])
    turned = y.copy()
    turned[0] *= rng.choice([-1, 1])
    statistic = PairMoments(d, diagonal, PairMoments.bound(norm), np.linspace(0.5, 2.0, d))
    grid = choose_grid(statistic.clip, math.prod(statistic.shape), norm=norm, n_pairs=6)
    reach = statistic.sensitivity(norm, grid)
    before, nothing, after = (
        clipped_sum(one, None, statistic, norm, grid).astype(float) * grid
        for one in (
            data,
            data.emptied(np.arange(6) == 0),
            PairSet(other, np.arange(12).reshape(6, 2), turned),
        )
    )
    order = 1 if norm == "l1" else 2
    assert np.linalg.norm((before - nothing).ravel(), order) <= reach < 1.01 * statistic.clip
    moved = np.linalg.norm((before - after).ravel(), order)
    assert moved <= 2 * reach
    if norm == "l2":  # contributions never point away from each other (docs/theory/people.md)
        assert moved <= math.sqrt(2) * reach


def test_without_noise_the_metrics_are_those_of_their_papers():
    """Of many pairs, where shrinking does next to nothing."""
    rng = np.random.default_rng(0)
    n, d = 10**9, 3
    A, B = (np.cov(rng.normal(size=(d, 20))) for _ in range(2))
    similar, dissimilar = 0.1 * A, 0.1 * (A + 3 * np.outer([1, 2, 0], [1, 2, 0]) + 0.5 * B)
    sums = n * np.array([similar, dissimilar])
    found = Scatters(np.array([n, n], dtype=float), sums, 0.0, 2 * n)
    inverse = np.linalg.inv(similar)
    wanted = {
        "kissme": inverse - np.linalg.inv(dissimilar),
        "lda": inverse @ dissimilar @ inverse - inverse,
    }
    assert set(wanted) == set(METHODS)
    for method, matrix in wanted.items():
        values, vectors = np.linalg.eigh(matrix)
        matrix = (vectors * np.maximum(values, 0)) @ vectors.T
        rows, trust = learn(found, method)
        got = rows.T @ rows
        np.testing.assert_allclose(got / np.trace(got), matrix / np.trace(matrix), atol=2e-3)
        assert trust > 0.99


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("moments", ["full", "diagonal"])
def test_every_method_finds_the_column_that_tells_the_groups(method, moments):
    learner = DPPScatterLearner(
        epsilon=8.0,
        unit="relationship",
        preprocessor=X,
        random_state=0,
        method=method,
        moments=moments,
    ).fit(PAIRS, Y)
    weights = (learner.components_**2).sum(axis=0)
    assert weights[0] > 1.5 * weights[1:].max()
    plan = learner.certificate_.plan
    assert (plan["method"], plan["moments"]) == (method, moments)
    assert learner.certificate_.verify().problems == ()


def test_where_nothing_stands_out_of_the_noise_the_metric_is_euclid():
    learner = DPPScatterLearner(epsilon=1e-3, preprocessor=X, random_state=0).fit(PAIRS, Y)
    matrix = learner.get_mahalanobis_matrix()
    np.testing.assert_allclose(matrix, matrix[0, 0] * np.eye(4), atol=1e-9 * matrix[0, 0])


def test_leading_directions_alone():
    learner = DPPScatterLearner(epsilon=INF, preprocessor=X, n_components=1).fit(PAIRS, Y)
    assert learner.components_.shape == (1, 4)
    assert np.abs(learner.components_[0]).argmax() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "pca"}, "method must be one of"), ({"moments": "some"}, "moments"),
        ({"n_components": 5}, "n_components"), ({"select": "x"}, "select"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused_before_anything_is_spent(options, message):
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-5, unit="person")
    with pytest.raises(InputError, match=message):
        DPPScatterLearner(preprocessor=X, accountant=ledger, **options).fit(PAIRS, Y)
    with pytest.raises(InputError, match="at most 1024 features"):
        DPPScatterLearner(preprocessor=np.zeros((600, 1025)), accountant=ledger).fit(PAIRS, Y)
    assert ledger.entries == ()


def test_the_weights_make_a_contribution_of_length_one():
    assert math.hypot(*WEIGHTS) == pytest.approx(1.0)
