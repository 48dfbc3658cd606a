"""Best guess and trade-off curve: upper bounds, against closed forms and brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, norm

from pairveil.errors import InputError
from pairveil.privacy.compose import delta_from_mu, epsilon_from_mu
from pairveil.privacy.events import DisjointGaussianEvent, GaussianEvent, LaplaceEvent
from pairveil.privacy.profile import best_guess_of, delta_of, epsilon_of, mu_of, tradeoff_of

DEFAULT_MU = 0.26810  # zero-out, epsilon 1 at delta 1e-5 (.536 under replace)


def gaussian(mu, steps=1):
    """Full-batch events that are mu-GDP for one replaced pair."""
    return [GaussianEvent(2.0 * math.sqrt(steps) / mu, steps=steps)]


@pytest.mark.parametrize("mu", [1e-4, 0.1, 0.536, 1.0, 3.0, 12.0, 40.0])
@pytest.mark.parametrize("steps", [1, 100])
def test_a_gaussian_plan_gives_phi_of_half_mu(mu, steps):
    found = best_guess_of(gaussian(mu, steps), kappa=1)
    assert found >= ndtr(mu / 2) - 1e-15
    assert found == pytest.approx(ndtr(mu / 2), rel=1e-9, abs=2e-8)


def test_the_numbers_of_theory_section_8():
    noise = 1.0 / DEFAULT_MU
    assert epsilon_of([GaussianEvent(noise)], kappa=1, delta=1e-5) == pytest.approx(1.0, abs=1e-3)
    assert mu_of([GaussianEvent(noise)], kappa=1, adjacency="replace") == pytest.approx(
        0.536, abs=5e-4
    )
    assert best_guess_of([GaussianEvent(noise)], kappa=1) == pytest.approx(0.606, abs=5e-4)
    assert best_guess_of([GaussianEvent(noise)], kappa=2) == pytest.approx(0.704, abs=5e-4)


@pytest.mark.parametrize("prior", [0.001, 0.03, 0.3, 0.5, 0.7, 0.97])
@pytest.mark.parametrize("mu", [0.3, 2.0])
def test_other_priors_by_brute_force(prior, mu):
    x = np.linspace(-12, 14, 400_001)
    yes, no = prior * norm.pdf(x, mu), (1 - prior) * norm.pdf(x)
    truth = np.trapezoid(np.maximum(yes, no), x)
    found = best_guess_of(gaussian(mu), kappa=1, prior=prior)
    assert truth - 1e-9 <= found <= truth + 1e-8


@pytest.mark.parametrize(("kappa", "q", "noise"), [(1, 0.3, 1.0), (3, 0.2, 2.0), (5, 0.5, 3.0)])
def test_one_sampled_step_by_integration(kappa, q, noise):
    counts = np.arange(kappa + 1)
    weights = binom.pmf(counts, kappa, q)
    x = np.linspace(-12, 12, 200_001)
    upper = sum(w * norm.pdf(x, c / noise) for c, w in zip(counts, weights, strict=True))
    lower = sum(w * norm.pdf(x, -c / noise) for c, w in zip(counts, weights, strict=True))
    for epsilon in (0.0, 0.2, 1.0):
        truth = np.trapezoid(np.maximum(upper - math.exp(epsilon) * lower, 0), x)
        event = [GaussianEvent(noise, q, 1)]
        found = delta_of(event, epsilon=epsilon, kappa=kappa, adjacency="replace")
        assert truth - 1e-9 <= found <= truth * 1.01 + 1e-9


def test_two_sampled_steps_by_integration_in_the_plane():
    kappa, q, noise = 2, 0.4, 1.5
    counts, weights = np.arange(3), binom.pmf(np.arange(3), kappa, q)
    x = np.linspace(-9, 9, 2001)
    upper = sum(w * norm.pdf(x, c / noise) for c, w in zip(counts, weights, strict=True))
    lower = upper[::-1]
    gap = np.multiply.outer(upper, upper) - np.multiply.outer(lower, lower)
    truth = 0.5 + 0.25 * np.abs(gap).sum() * (x[1] - x[0]) ** 2
    found = best_guess_of([GaussianEvent(noise, q, 2)], kappa=kappa)
    assert truth - 1e-6 <= found <= truth + 2e-3


@pytest.mark.parametrize("steps", [1, 2, 7, 50])
def test_laplace_compositions_by_counting(steps):
    """k releases of pure epsilon are at worst k randomised responses; their sum is binomial."""
    each = 2.0 / (2.0 * steps)  # replace, kappa 1: the whole is epsilon 1 by plain addition
    heads = np.arange(steps + 1)
    likely = 1.0 / (1.0 + math.exp(-each))
    gap = binom.pmf(heads, steps, likely) - binom.pmf(heads, steps, 1 - likely)
    truth = 0.5 + 0.25 * np.abs(gap).sum()
    found = best_guess_of([LaplaceEvent(2.0 * steps, steps)], kappa=1)
    assert truth - 1e-12 <= found <= truth + 5e-4


def test_a_mixed_plan_lies_between_its_parts_and_their_sum():
    parts = [GaussianEvent(4.0), GaussianEvent(5.0, 0.2, 30), LaplaceEvent(20.0)]
    whole = best_guess_of(parts, kappa=2)
    each = [best_guess_of([part], kappa=2) for part in parts]
    assert max(each) < whole
    gains = sum(2 * share - 1 for share in each)  # total variations add at most
    assert 2 * whole - 1 <= gains + 1e-9


def test_never_more_than_what_epsilon_and_delta_allow():
    """(e^eps + delta)/(1 + e^eps) holds for every (epsilon, delta) of the plan, so it bounds ours."""
    for events in (gaussian(1.3), [GaussianEvent(6.0, 0.1, 200)], [LaplaceEvent(9.0, 5)]):
        for delta in (1e-9, 1e-5, 1e-3, 0.05):
            epsilon = epsilon_of(events, kappa=3, adjacency="replace", delta=delta)
            allowed = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
            assert best_guess_of(events, kappa=3) <= allowed * (1 + 2e-3)


def test_slack_is_added():
    plain, slack = (best_guess_of(gaussian(1.0), kappa=1, delta_slack=s) for s in (0.0, 1e-3))
    assert slack - plain == pytest.approx(5e-4)
    assert best_guess_of(gaussian(1.0), kappa=1, delta_slack=1.0) == 1.0


def test_no_noise_and_far_too_little():
    assert best_guess_of([GaussianEvent(0.0)], kappa=1) == 1.0
    assert best_guess_of([GaussianEvent(1e-6, 0.5, 10)], kappa=10**6) == 1.0
    assert best_guess_of([LaplaceEvent(1e-9)], kappa=1) == pytest.approx(1.0)
    assert mu_of([GaussianEvent(0.0)], kappa=1) is None


def test_mu_only_where_it_is_exact():
    assert mu_of([DisjointGaussianEvent(8.0, 4)], kappa=2) == pytest.approx(0.5)
    both = [GaussianEvent(3.0), DisjointGaussianEvent(4.0, 1)]
    assert mu_of(both, kappa=1, adjacency="replace") == pytest.approx(2 * math.hypot(1 / 3, 1 / 4))
    assert mu_of([GaussianEvent(3.0, 0.5)], kappa=1) is None
    assert mu_of([*both, LaplaceEvent(100.0)], kappa=1) is None


@pytest.mark.parametrize("mu", [0.2, 0.536, 1.072, 4.0])
def test_the_curve_is_the_gaussian_one_from_below(mu):
    curve = tradeoff_of(gaussian(mu), kappa=1)
    wrong = curve.false_positives
    truth = ndtr(ndtri(1.0 - wrong) - mu)
    assert np.all(curve.false_negatives <= truth + 1e-12)
    assert np.max(truth - curve.false_negatives) < 1e-3
    # The best guesser of a fair coin is on the curve.
    assert 1 - 0.5 * np.min(wrong + curve.false_negatives) <= best_guess_of(gaussian(mu), kappa=1)


def test_no_real_guesser_beats_the_curve():
    """Tests on one sampled step, threshold by threshold: their errors are computed exactly."""
    event, kappa, q, noise = [GaussianEvent(2.0, 0.3, 1)], 3, 0.3, 2.0
    weights = binom.pmf(np.arange(4), kappa, q)
    curve = tradeoff_of(event, kappa=kappa)
    for cut in np.linspace(-4, 4, 33):
        over = sum(w * norm.sf(cut + i / noise) for i, w in enumerate(weights))
        under = sum(w * norm.cdf(cut - i / noise) for i, w in enumerate(weights))
        assert under >= curve.at(over) - 1e-12


def test_posterior_of_a_rare_condition():
    curve = tradeoff_of(gaussian(0.536), kappa=1)
    power = ndtr(0.536 - ndtri(0.99))
    truth = 0.01 * power / (0.01 * power + 0.99 * 0.01)
    assert truth <= curve.posterior(0.01, 0.01) <= truth * 1.05
    for bad in (0.0, 1.0, True):
        with pytest.raises(InputError):
            curve.posterior(bad, 0.1)
        with pytest.raises(InputError):
            best_guess_of(gaussian(1.0), kappa=1, prior=bad)
    with pytest.raises(InputError):
        curve.posterior(0.1, 0.0)
    with pytest.raises(InputError):
        curve.at(1.5)


def test_delta_and_epsilon_are_each_others_inverse():
    for mu, delta in itertools.product((0.1, 1.0, 5.0), (1e-9, 1e-5, 1e-2)):
        assert delta_from_mu(mu, epsilon_from_mu(mu, delta)) == pytest.approx(delta, rel=1e-6)
    plan = [GaussianEvent(20.0, 0.05, 200)]
    epsilon = epsilon_of(plan, kappa=13, delta=1e-5)
    assert delta_of(plan, epsilon=epsilon, kappa=13) == pytest.approx(1e-5, rel=0.02)
    with pytest.raises(InputError):
        delta_of(plan, epsilon=-1.0, kappa=13)
