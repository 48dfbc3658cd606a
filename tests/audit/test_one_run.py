"""One-run bounds: the published theorems, the oracle's numbers, and how often they are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from pairveil.audit.one_run import (
    epsilon_one_run,
    epsilon_one_run_gaussian,
    guess_coins,
    one_run_p_value,
    refutes_curve,
)
from pairveil.errors import InputError
from pairveil.privacy.gdp import epsilon_from_mu

# (canaries, guesses, correct, delta) -> jax_privacy 2.0.0's _epsilon_one_run and _epsilon_one_run_fdp.
ORACLE = [
    ((1000, 200, 190, 1e-5), 2.3936181606621587, 3.916104498950318),
    ((1000, 200, 150, 1e-5), 0.8199728373996844, 1.2969160950579595),
    ((500, 500, 400, 1e-6), 1.1986115807070539, 2.6247182392639608),
    ((2000, 100, 99, 1e-5), 2.986137706385838, 4.346109643227432),
    ((10000, 1000, 700, 1e-6), 0.7317406384658977, 1.1315252356761725),
]


@pytest.mark.oracle
@pytest.mark.parametrize(("seen", "plain", "gaussian"), ORACLE)
def test_agrees_with_jax_privacy(seen, plain, gaussian):
    canaries, guesses, correct, delta = seen
    assert epsilon_one_run(correct, guesses, canaries, delta) == pytest.approx(plain, abs=5e-6)
    found = epsilon_one_run_gaussian(correct, guesses, canaries, delta)
    assert found == pytest.approx(gaussian, abs=5e-6)


def test_pure_bound_is_a_binomial_test():
    epsilon = epsilon_one_run(170, 200, 200)
    right = 1 / (1 + np.exp(-epsilon))
    assert binom.sf(169, 200, right) == pytest.approx(0.05, abs=1e-5)


def test_delta_weakens_the_bound():
    assert epsilon_one_run(170, 200, 1000, 1e-3) < epsilon_one_run(170, 200, 1000, 0.0)
    assert one_run_p_value(170, 200, 1000, 2.0, 1e-2) > one_run_p_value(170, 200, 1000, 2.0, 0.0)


def _gaussian_run(rng, mu, canaries, share):
    """One output of m independent Gaussian mechanisms, which is mu-GDP for every coin."""
    coins = rng.integers(0, 2, canaries) * 2 - 1
    which, guess = guess_coins(coins * mu / 2 + rng.normal(size=canaries), share)
    return int((coins[which] == guess).sum()), len(which)


@pytest.mark.parametrize(("share", "factor"), [(0.1, 2), (1.0, 4)])
def test_one_run_rarely_accuses_and_often_finds(share, factor):
    """At the true mu the rate is at most 0.05: more than 20 of 200 has probability below 0.002."""
    rng = np.random.default_rng(3)
    mu, delta, canaries = 1.0, 1e-5, 1000
    honest, false = epsilon_from_mu(mu, delta), epsilon_from_mu(mu / factor, delta)
    found = [_gaussian_run(rng, mu, canaries, share) for _ in range(200)]
    bounds = [epsilon_one_run_gaussian(c, g, canaries, delta) for c, g in found]
    assert binom.sf(20, 200, 0.05) < 0.002
    assert sum(bound > honest for bound in bounds) <= 20
    # The same runs must refute a learner whose noise is `factor` times too small, nearly always.
    assert sum(bound > false for bound in bounds) >= 160
    plain = [epsilon_one_run(c, g, canaries, delta) for c, g in found]
    assert np.median(plain) < np.median(bounds)


def test_the_curve_test_is_for_curves_of_any_kind():
    """Perfect guesses refute every Gaussian curve up to mu = 2, and no guess refutes none."""
    assert refutes_curve(lambda x: float(norm.cdf(norm.ppf(x) - 2.0)), 1000, 1000, 1000)
    assert not refutes_curve(lambda x: float(norm.cdf(norm.ppf(x) - 2.0)), 500, 1000, 1000)


@pytest.mark.parametrize("wrong", [(5, 4, 10), (1, 11, 10), (-1, 4, 10), (0, 0, 10)])
def test_impossible_counts_are_refused(wrong):
    with pytest.raises(InputError):
        epsilon_one_run(*wrong)


def test_a_share_outside_its_range_is_refused():
    with pytest.raises(InputError):
        guess_coins([1.0], share=0.0)
