"""InputPer: its noise, its split, its labels. False-failure rates are stated per test."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.baselines import input_perturbation, perturb_pairs
from reproduction.published import Settings
from scipy import stats

from pairveil.errors import InputError, PrivacyLeakWarning

RATE = 1e-6


def test_features_and_labels_get_their_shares():
    labels = np.ones(20_000, dtype=np.int8)
    seen = perturb_pairs(np.zeros((20_000, 1)), labels, 4.0, feature_share=0.75, random_state=0)
    assert (seen.epsilon_x, seen.epsilon_y) == (3.0, 1.0)
    noise = seen.dx.ravel()
    assert stats.kstest(noise, stats.laplace(scale=4 / 3).cdf).pvalue > RATE
    assert stats.kstest(noise, stats.laplace(scale=4 / 2).cdf).pvalue < RATE
    flips = int((seen.labels < 0).sum())
    assert stats.binomtest(flips, 20_000, 1 / (1 + np.e)).pvalue > RATE
    assert stats.binomtest(flips, 20_000, 1 / (1 + np.e**3)).pvalue < RATE


def problem():
    rng = np.random.default_rng(2)
    X = rng.random((60, 3))
    pairs = rng.permutation(60).reshape(30, 2)
    return X, pairs, rng.choice([1, -1], 30)


def test_costs_kappa_times_its_claim_and_warns():
    plan = Settings(epsilon=1.5, n_components=2, batch_size=10, kappa=4)
    with pytest.warns(PrivacyLeakWarning, match="4 correlated pairs cost 6"):
        result = input_perturbation(*problem(), plan, random_state=0)
    assert result.variant == "inputper"
    assert (result.epsilon_claimed, result.epsilon_sound) == (1.5, 6.0)
    assert result.W.shape == (2, 3)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_nothing_is_refused(share):
    with pytest.raises(InputError, match="feature_share"):
        perturb_pairs(np.zeros((2, 1)), [1, -1], 1.0, feature_share=share)
