"""Scores against definitions written out by hand."""

import numpy as np
import pytest

from pairveil.errors import InputError
from pairveil.evaluation.scores import gain_kept, knn_guess, pair_auc, sample_test_pairs


def test_pair_auc_is_the_share_of_rightly_ordered_pairs_of_pairs():
    rng = np.random.default_rng(0)
    X, classes = rng.normal(size=(30, 3)), rng.integers(2, size=30)
    L = rng.normal(size=(2, 3))
    pairs = sample_test_pairs(classes, 300, 7)
    gap = (X[pairs[:, 0]] - X[pairs[:, 1]]) @ L.T
    distance = np.sqrt((gap**2).sum(axis=1))
    different = classes[pairs[:, 0]] != classes[pairs[:, 1]]
    far, near = distance[different], distance[~different]
    wanted = np.mean((far[:, None] > near) + 0.5 * (far[:, None] == near))
    assert pair_auc(L, X, classes, 300, 7) == pytest.approx(wanted)


def test_an_uninformative_metric_scores_one_half():
    rng = np.random.default_rng(1)
    X, classes = rng.normal(size=(2000, 5)), rng.integers(2, size=2000)
    # The standard error is below 0.004 even if a person's pairs were fully dependent.
    assert abs(pair_auc(None, X, classes) - 0.5) < 0.02


def test_test_pairs_are_balanced_over_classes_and_never_a_person_with_herself():
    classes = np.array([0] * 990 + [1] * 10)
    pairs = sample_test_pairs(classes, 20_000, 0)
    assert np.all(pairs[:, 0] != pairs[:, 1])
    # 40,000 fair draws of a class: 5 standard deviations are 0.0125 (false failures: 6e-7).
    assert abs(np.mean(classes[pairs]) - 0.5) < 0.0125


def test_one_class_is_refused():
    with pytest.raises(InputError, match="two classes"):
        pair_auc(None, np.eye(3), [1, 1, 1])


def test_knn_uses_the_metric():
    train, test = np.array([[0.0, 0.0], [1.0, 9.0]]), np.array([[0.1, 9.0]])
    assert knn_guess(None, train, [0, 1], test, k=1).tolist() == [1]
    assert knn_guess([[1.0, 0.0]], train, [0, 1], test, k=1).tolist() == [0]


def test_gain_kept_has_no_value_where_there_is_no_gain():
    assert gain_kept(0.6, 0.5, 0.7) == pytest.approx(0.5)
    assert np.isnan(gain_kept(0.6, 0.5, 0.5))
