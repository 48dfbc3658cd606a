"""One-run bounds: the published theorems, the oracle's numbers, and how often they are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from one_fit import epsilon_one_run_gaussian, guess_coins
from scipy.stats import binom, norm

from pairveil.audit.trainer_audit import epsilon_one_run, refutes_curve
from pairveil.errors import InputError
from pairveil.privacy.compose import epsilon_from_mu

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
    # Theirs is the theorem of Steinke et al.; ours tests the curve, and may be a little below it.
    assert plain - 0.02 < epsilon_one_run(correct, guesses, canaries, delta) < plain + 0.1
    found = epsilon_one_run_gaussian(correct, guesses, canaries, delta)
    assert found == pytest.approx(gaussian, abs=5e-6)


def test_pure_bound_is_nearly_a_binomial_test():
    epsilon = epsilon_one_run(170, 200, 200)
    right = 1 / (1 + np.exp(-epsilon))
    assert 0.04 < binom.sf(169, 200, right) <= 0.05


def test_delta_weakens_the_bound():
    bounds = [epsilon_one_run(170, 200, 1000, delta) for delta in (0.0, 1e-3, 1e-2)]
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.parametrize(("delta", "share"), [(0.0, 1.0), (0.05, 1.0), (0.05, 0.2)])
def test_answers_by_coin_that_sometimes_tell_all_are_accused_as_rarely_as_promised(delta, share):
    """The tightest (1, delta)-private mechanism: told outright with probability delta, else by a biased coin.

    At most 0.05 of the bounds may be above 1: 35 of 200 has probability below 1e-9 (and none is expected).
    """
    rng, canaries = np.random.default_rng(5), 400
    bounds, wrong = [], []
    for _ in range(200):
        told = rng.random(canaries) < delta
        right = told | (rng.random(canaries) < 1 / (1 + np.exp(-1.0)))
        # The auditor sees which answers are certain, and guesses these first.
        guessed = np.argsort(~told, kind="stable")[: int(share * canaries)]
        seen = int(right[guessed].sum()), len(guessed), canaries
        bounds.append(epsilon_one_run(*seen, delta))
        wrong.append(epsilon_one_run(*seen, 0.0))
    assert binom.sf(34, 200, 0.05) < 1e-9
    assert sum(bound > 1 for bound in bounds) <= 34
    if delta and share < 1:  # whoever forgets delta accuses an honest mechanism, nearly always
        assert sum(bound > 1 for bound in wrong) > 34


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
