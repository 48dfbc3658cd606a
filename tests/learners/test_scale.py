"""Fits that must not grow: sparse tables stay sparse, wide ones never become square, float32 stays."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from pairveil.errors import DataWarning
from pairveil.graph.choosing import design_pairs
from pairveil.learners.contrastive import recipe as training
from pairveil.learners.contrastive.learner import DPPMetricLearner
from pairveil.records.pairset import PairSet

WIDE = 20_000


def wide_pairs(n=300, d=WIDE, seed=0):
    """Words of two topics: column 0 or 7 says which, the other 20 entries of a row are chance."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 2, n)
    columns = np.column_stack([7 * kinds, rng.integers(8, d, (n, 20))])
    rows = np.repeat(np.arange(n), 21)
    features = sparse.csr_array((np.full(21 * n, 0.2), (rows, columns.ravel())), shape=(n, d))
    pairs = design_pairs(n, random_state=0)
    return PairSet(features, pairs, np.where(kinds[pairs[:, 0]] == kinds[pairs[:, 1]], 1, -1))


def fit(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return DPPMetricLearner(random_state=0, n_steps=3, **options).fit(data)


def test_a_wide_sparse_table_is_never_made_dense_or_square():
    data = wide_pairs()
    fit(wide_pairs(40, 5000))  # compiles
    tracemalloc.start()
    learner = fit(data, n_components=12)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert learner.components_.shape == (12, WIDE)
    assert learner.certificate_.verify()
    # Dense differences would take 300 * 20,000 * 8 = 48 MB a copy, a square matrix 3.2 GB; twelve
    # directions and their sums take 2 MB each.
    assert peak < 40e6


def test_without_noise_something_is_learned_about_new_people():
    learner = fit(wide_pairs(), epsilon=float("inf"), select="all")
    fresh = wide_pairs(seed=1)
    distance = np.linalg.norm(fresh.differences() @ learner.components_.T, axis=1)
    auc = roc_auc_score(fresh.labels < 0, distance)
    assert auc > 0.64  # a metric that learned nothing has 0.5 +- 0.033: 4 standard deviations
    assert learner.components_.shape[0] <= training.NUMBERS.directions


@pytest.mark.parametrize(("weight", "warned"), [(2.0, True), (0.2, False)])
def test_wide_tables_return_the_learned_directions_and_warn_of_little_signal(
    monkeypatch, weight, warned
):
    monkeypatch.setattr(training, "euclid_weight", lambda *given: weight)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = DPPMetricLearner(random_state=0, n_steps=2).fit(wide_pairs())
    assert any("little signal" in str(w.message) for w in caught) == warned
    assert learner.components_.shape[1] == WIDE
    assert learner.components_.any()


def test_float32_features_give_nearly_the_metric_of_float64():
    rng = np.random.default_rng(1)
    kinds = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 10)) * 0.1 + rng.normal(size=(3, 10))[kinds] * 0.1
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    pairs = design_pairs(400, random_state=0)
    labels = np.where(kinds[pairs[:, 0]] == kinds[pairs[:, 1]], 1, -1)
    wide, narrow, other = (
        fit(PairSet(X.astype(dtype), pairs, labels), epsilon=epsilon).get_mahalanobis_matrix()
        for dtype, epsilon in ((np.float64, 8.0), (np.float32, 8.0), (np.float64, 7.0))
    )
    # Noise is larger by 0.2 %, the cost of float32 sums; the learner asked for epsilon 7 has more.
    gap = np.linalg.norm(wide - narrow) / np.linalg.norm(wide)
    assert 0 < gap < 0.02
    assert np.linalg.norm(wide - other) / np.linalg.norm(wide) > gap
