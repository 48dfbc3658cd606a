"""The Gaussian closed form: against the textbook formula, and where that formula breaks down."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from pairveil.privacy.compose import epsilon_from_mu, mu_from_epsilon


def textbook_delta(epsilon: float, mu: float) -> float:
    """Balle and Wang's Theorem 8 as printed (fine for moderate numbers)."""
    t = epsilon / mu
    return norm.cdf(mu / 2 - t) - math.exp(epsilon) * norm.cdf(-mu / 2 - t)


@pytest.mark.parametrize("mu", [0.01, 0.1, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2, 0.3])
def test_epsilon_is_the_smallest_that_satisfies_the_textbook_formula(mu, delta):
    epsilon = epsilon_from_mu(mu, delta)
    if epsilon == 0.0:
        assert textbook_delta(0.0, mu) <= delta
        return
    assert textbook_delta(epsilon, mu) == pytest.approx(delta, rel=1e-5)
    assert textbook_delta(0.999 * epsilon, mu) > delta


def test_the_classic_formula_is_not_used_where_it_is_invalid():
    # sigma = sqrt(2 ln(1.25/delta))/epsilon is wrong above epsilon 1: too little noise at 30.
    delta, epsilon = 1e-5, 30.0
    classic = epsilon / math.sqrt(2 * math.log(1.25 / delta))
    assert epsilon_from_mu(classic, delta) > epsilon


@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-6, 1e-3, 1.0, 1e3, 1e7])
def test_extreme_numbers_stay_ordered(mu):
    deltas = [1e-300, 1e-100, 1e-12, 1e-5, 0.1, 0.9]
    values = [epsilon_from_mu(mu, delta) for delta in deltas]
    assert values == sorted(values, reverse=True)
    assert all(0.0 <= value < math.inf for value in values)
    bigger = [epsilon_from_mu(1.01 * mu, delta) for delta in deltas]
    assert all(a <= b for a, b in zip(values, bigger, strict=True))


def test_limits():
    assert epsilon_from_mu(0.0, 0.0) == 0.0
    assert epsilon_from_mu(1.0, 0.0) == math.inf
    assert epsilon_from_mu(math.inf, 1e-5) == math.inf
    assert mu_from_epsilon(1.0, 0.0) == 0.0
    # At a huge mu the loss is N(mu^2/2, mu^2): epsilon = mu^2/2 + mu z_delta to first order.
    mu = 1e4
    expected = mu * mu / 2 + mu * norm.isf(1e-5)
    assert epsilon_from_mu(mu, 1e-5) == pytest.approx(expected, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    log_epsilon=st.floats(-7.0, 5.0),
    log_delta=st.floats(-14.0, -0.5),
)
def test_the_inverse_ends_on_the_sound_side(log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    mu = mu_from_epsilon(epsilon, delta)
    assert epsilon_from_mu(mu, delta) <= epsilon
    assert epsilon_from_mu(mu * (1 + 1e-4), delta) > epsilon
